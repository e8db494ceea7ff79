"""What clients must prove: who they are (MeshTLSAuthentication) and whence (NetworkAuthentication).

What cannot be read admits nobody, and is a `Fault` besides. Identities are parsed here, once, and
compared as parsed values ever after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.identity import account, accounts, parse_identity_match
from isthmus.ir.inbound import Network
from isthmus.ir.names import Dns, IdentityMatch, IdentitySuffix, Value
from isthmus.mesh.clusters import cluster
from isthmus.mesh.matches import Fault
from isthmus.mesh.policy_tables import (
    MESH_TLS_AUTHENTICATIONS,
    NETWORK_AUTHENTICATIONS,
    kind_name,
)
from isthmus.mesh.settings import settings
from isthmus.model.key import ObjectKey
from isthmus.model.policy import Network as NetworkRow
from isthmus.model.references import Ref

ACCOUNT: Final = kind_name("", "ServiceAccount")
NAMESPACE: Final = kind_name("", "Namespace")


class Identities(Value, frozen=True):
    """Whom an authentication means; none of them: nobody."""

    matches: tuple[IdentityMatch, ...]
    faults: tuple[Fault, ...] = ()


class Networks(Value, frozen=True):
    """Where clients may come from; none of them: from nowhere."""

    networks: tuple[Network, ...]
    faults: tuple[Fault, ...] = ()


# ---------------------------------------------------------------------------- identities


@query
def mesh_identities(db: View, key: ObjectKey) -> Identities | None:
    """Whom a MeshTLSAuthentication means, any one of them; None if there is no such object."""
    row = MESH_TLS_AUTHENTICATIONS.get(db, key)
    if row is None:
        return None
    found = read_identities(row.spec.identities, "identities")
    refs = [_referred(db, key, ref, at) for at, ref in enumerate(row.spec.identity_refs)]
    matches = (*found.matches, *(one for one in refs if not isinstance(one, Fault)))
    faults = (*found.faults, *(one for one in refs if isinstance(one, Fault)))
    return Identities(tuple(dict.fromkeys(matches)), faults)


def read_identities(texts: Iterable[str], path: str) -> Identities:
    """Identities as people write them: SPIFFE ids, mesh names, `*`, `*.suffix`."""
    matches: list[IdentityMatch] = []
    faults: list[Fault] = []
    for at, text in enumerate(texts):
        match = parse_identity_match(text)
        if match is None:
            faults.append(Fault(f"{path}[{at}]", f"{text[:64]!r} is no identity"))
        else:
            matches.append(match)
    return Identities(tuple(matches), tuple(faults))


def _referred(db: View, key: ObjectKey, ref: Ref, at: int) -> IdentityMatch | Fault:
    """An account by its name alone: it may live in another cluster of the mesh."""
    kind = kind_name(ref.group, ref.kind)
    if kind == ACCOUNT and ref.name:
        return account_identity(db, key.cluster, ref.namespace or key.namespace, ref.name)
    if kind == NAMESPACE and ref.name:
        return namespace_identities(db, key.cluster, ref.name)
    said = f"{ref.kind[:64]} {ref.name[:64]!r} is no ServiceAccount and no Namespace"
    return Fault(f"identityRefs[{at}]", said)


@query
def account_identity(db: View, where: str, namespace: str, name: str) -> Dns:
    """The mesh name of a ServiceAccount, whether it exists or not."""
    ending = _ending(db, where)
    return account(name, namespace, control_plane=ending[0], trust_domain=ending[1])


@query
def namespace_identities(db: View, where: str, namespace: str) -> IdentitySuffix:
    """The mesh names of all ServiceAccounts of a namespace."""
    ending = _ending(db, where)
    return accounts(namespace, control_plane=ending[0], trust_domain=ending[1])


def _ending(db: View, where: str) -> tuple[str, str]:
    """Control-plane namespace and trust domain of a cluster's identities."""
    ours, home = settings(db), cluster(db, where)
    if home is None:
        return ours.control_plane_namespace, ours.trust_domain
    return home.control_plane_namespace or ours.control_plane_namespace, home.trust_domain


# ------------------------------------------------------------------------------ networks


@query
def authenticated_networks(db: View, key: ObjectKey) -> Networks | None:
    """Where a NetworkAuthentication lets clients come from; None if there is no such object."""
    row = NETWORK_AUTHENTICATIONS.get(db, key)
    return read_networks(row.spec.networks, "networks") if row is not None else None


def read_networks(rows: Iterable[NetworkRow], path: str) -> Networks:
    """Blocks without their exceptions; one with an exception that cannot be read does not count."""
    networks: list[Network] = []
    faults: list[Fault] = []
    for at, row in enumerate(rows):
        bad = [text for text in (row.cidr, *row.excepts) if not _is_block(text)]
        faults += _unread(bad, f"{path}[{at}]")
        if not bad:
            networks.append(Network(row.cidr, row.excepts))
    return Networks(tuple(networks), tuple(faults))


def _unread(texts: Iterable[str], path: str) -> Iterator[Fault]:
    return (Fault(path, f"{text[:64]!r} is no network") for text in texts)


def _is_block(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text  # an IPv6 zone means something on one machine only
