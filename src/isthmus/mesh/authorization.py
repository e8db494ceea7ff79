"""Who may reach a Server or a route on it: what the policies for them grant.

Grants only ever add up. One whose references lead nowhere, or that says something that cannot be
understood, grants nothing until that is mended; why is part of its value, for conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from isthmus.engine import View, query
from isthmus.ir.inbound import (
    ANYWHERE,
    Anybody,
    Authentication,
    Authorization,
    Network,
    Peers,
    TlsOnly,
)
from isthmus.ir.names import IdentityMatch, Origin, Ref, Value
from isthmus.mesh.authentication import (
    ACCOUNT,
    NAMESPACE,
    account_identity,
    authenticated_networks,
    mesh_identities,
    read_identities,
    read_networks,
)
from isthmus.mesh.matches import Fault
from isthmus.mesh.policy_tables import (
    AUTHORIZATION_POLICIES,
    AUTHORIZATIONS_BY_SERVER,
    AUTHORIZED_SERVERS,
    POLICIES_BY_TARGET,
    POLICY_GROUP,
    SERVER,
    SERVER_AUTHORIZATIONS,
    KindName,
    PolicyTarget,
    kind_name,
)
from isthmus.mesh.settings import settings
from isthmus.model.key import ObjectKey
from isthmus.model.policy import Client, MeshTls
from isthmus.model.references import Ref as ReferenceRow

MESH_TLS: Final = kind_name(POLICY_GROUP, "MeshTLSAuthentication")
NETWORKS: Final = kind_name(POLICY_GROUP, "NetworkAuthentication")

_NOBODY: Final = "nobody can prove what is asked, so nobody is let in"


class Grant(Value, frozen=True):
    """What one policy object grants; no authorization: nothing, as the faults say.

    `unresolved` are references to objects that do not exist, `faults` everything else.
    """

    authorization: Authorization | None = None
    unresolved: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()


@query
def server_grants(db: View, server: ObjectKey) -> tuple[Authorization, ...]:
    """What objects grant to whoever comes to a Server: for it by name, by label, by namespace."""
    granted = [server_authorization(db, key) for key in _authorizations(db, server)]
    for what, name in ((SERVER, server.name), (NAMESPACE, server.namespace)):
        target = PolicyTarget(server.cluster, what, server.namespace, name)
        granted += [authorization_policy(db, key) for key in POLICIES_BY_TARGET.get(db, target)]
    return _in_order(granted)


def _authorizations(db: View, server: ObjectKey) -> tuple[ObjectKey, ...]:
    by_name = AUTHORIZATIONS_BY_SERVER.get(db, server)
    return (*by_name, *AUTHORIZED_SERVERS.selectors(db, server))


@query
def route_grants(db: View, route: Ref) -> tuple[Authorization, ...]:
    """What objects grant to requests of one route."""
    what = kind_name(route.group, route.kind)
    target = PolicyTarget(route.cluster, what, route.namespace, route.name)
    return _in_order([authorization_policy(db, key) for key in POLICIES_BY_TARGET.get(db, target)])


def _in_order(granted: Sequence[Grant]) -> tuple[Authorization, ...]:
    """By kind and name: the order in which proxies name the one that lets a client in."""
    found = {one.authorization for one in granted if one.authorization is not None}
    return tuple(sorted(found, key=_place))


def _place(one: Authorization) -> tuple[str, str, str]:
    if not isinstance(one.source, Origin):
        return ("default", "", one.source.name)
    ref = one.source.ref
    return (ref.kind.lower(), ref.namespace, ref.name)


# ------------------------------------------------------------------- AuthorizationPolicy


class _Asked(NamedTuple):
    """What a policy's references ask for so far; None where nothing is asked."""

    identities: tuple[IdentityMatch, ...] | None = None
    networks: tuple[Network, ...] | None = None
    unresolved: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()


@query
def authorization_policy(db: View, key: ObjectKey) -> Grant:
    """What an AuthorizationPolicy grants: to clients that prove all that it requires."""
    row = AUTHORIZATION_POLICIES.get(db, key)
    if row is None:
        return Grant()
    asked = _Asked()
    for at, ref in enumerate(row.spec.required_authentication_refs):
        asked = _required(db, key, ref, f"requiredAuthenticationRefs[{at}]", asked)
    ref = row.spec.target_ref
    if kind_name(ref.group, ref.kind) == NAMESPACE and ref.name != key.namespace:
        said = f"a policy is for its own namespace, not for {ref.name[:64]!r}"
        asked = asked._replace(faults=(*asked.faults, Fault("targetRef.name", said)))
    networks = ANYWHERE if asked.networks is None else asked.networks
    proof: Authentication = Anybody() if asked.identities is None else Peers(asked.identities)
    return _grant(_origin(key, "AuthorizationPolicy"), networks, proof, asked)


def _required(db: View, key: ObjectKey, ref: ReferenceRow, path: str, asked: _Asked) -> _Asked:
    """One more reference. Of each sort one may stand: two would both have to hold."""
    kind = kind_name(ref.group, ref.kind)
    where = ObjectKey(key.cluster, ref.namespace or key.namespace, ref.name)
    twice = "only one may be required"
    if kind == NETWORKS:
        some = authenticated_networks(db, where)
        if some is None:
            return _missing(asked, ref, where, path)
        if asked.networks is not None:
            return _faulty(asked, path, twice)
        return asked._replace(networks=some.networks)
    if kind not in (MESH_TLS, ACCOUNT):
        return _faulty(asked, path, f"{ref.kind[:64]} is nothing that a client can prove")
    if asked.identities is not None:
        return _faulty(asked, path, twice)
    if kind == ACCOUNT:
        return asked._replace(
            identities=(account_identity(db, key.cluster, where.namespace, ref.name),)
        )
    found = mesh_identities(db, where)
    return (
        _missing(asked, ref, where, path)
        if found is None
        else asked._replace(identities=found.matches)
    )


def _missing(asked: _Asked, ref: ReferenceRow, where: ObjectKey, path: str) -> _Asked:
    said = f"there is no {ref.kind} {where.namespace}/{where.name}"
    return asked._replace(unresolved=(*asked.unresolved, Fault(path, said)))


def _faulty(asked: _Asked, path: str, message: str) -> _Asked:
    return asked._replace(faults=(*asked.faults, Fault(path, message)))


def _grant(
    source: Origin, networks: tuple[Network, ...], proof: Authentication, asked: _Asked
) -> Grant:
    """Whatever is missing or not understood makes it nothing: rather nobody than anybody."""
    faults = asked.faults
    if not asked.unresolved and not faults and _admits_nobody(networks, proof):
        faults = (Fault("", _NOBODY),)
    if asked.unresolved or faults:
        return Grant(None, asked.unresolved, faults)
    return Grant(Authorization(source, networks, proof))


def _admits_nobody(networks: tuple[Network, ...], proof: Authentication) -> bool:
    return not networks or (isinstance(proof, Peers) and not proof.identities)


def _origin(key: ObjectKey, kind: str) -> Origin:
    return Origin(Ref(key.cluster, POLICY_GROUP, kind, key.namespace, key.name))


# ------------------------------------------------------------------- ServerAuthorization


@query
def server_authorization(db: View, key: ObjectKey) -> Grant:
    """What a ServerAuthorization grants. Without networks it means the cluster's."""
    row = SERVER_AUTHORIZATIONS.get(db, key)
    if row is None:
        return Grant()
    client = row.spec.client
    named = read_networks(client.networks, "client.networks")
    networks = named.networks
    if not client.networks:
        networks = tuple(map(Network, settings(db).cluster_networks))
    proof, faults = _proof(db, key, client)
    return _grant(_origin(key, "ServerAuthorization"), networks, proof, _Asked(faults=faults))


def _proof(db: View, key: ObjectKey, client: Client) -> tuple[Authentication, tuple[Fault, ...]]:
    """Exactly one of the two ways: no proof at all, or mesh TLS."""
    if client.unauthenticated == (client.mesh_tls is not None):
        said = "must say either unauthenticated or meshTLS"
        return Peers(()), (Fault("client", said),)
    if client.mesh_tls is None:
        return Anybody(), ()
    if client.mesh_tls.unauthenticated_tls:
        named = client.mesh_tls.identities or client.mesh_tls.service_accounts
        said = "may not name clients beside unauthenticatedTLS"
        return TlsOnly(), (Fault("client.meshTLS", said),) if named else ()
    return Peers(_clients(db, key, client.mesh_tls)), ()


def _clients(db: View, key: ObjectKey, said: MeshTls) -> tuple[IdentityMatch, ...]:
    named = read_identities(said.identities, "client.meshTLS.identities").matches
    accounts = (
        account_identity(db, key.cluster, one.namespace or key.namespace, one.name)
        for one in said.service_accounts
    )
    return tuple(dict.fromkeys((*named, *accounts)))


# ---------------------------------------------------------------------------- conditions


@query
def grant_faults(db: View, source: Ref) -> tuple[Fault, ...]:
    """What of a policy object counts for nothing although the rest of it grants something."""
    key = ObjectKey(source.cluster, source.namespace, source.name)
    match kind_name(source.group, source.kind):
        case KindName(kind="serverauthorization"):
            return _authorization_faults(db, key)
        case KindName(kind="meshtlsauthentication"):
            found = mesh_identities(db, key)
            return found.faults if found is not None else ()
        case KindName(kind="networkauthentication"):
            networks = authenticated_networks(db, key)
            return networks.faults if networks is not None else ()
        case _:
            return ()


def _authorization_faults(db: View, key: ObjectKey) -> tuple[Fault, ...]:
    row = SERVER_AUTHORIZATIONS.get(db, key)
    if row is None:
        return ()
    networks = read_networks(row.spec.client.networks, "client.networks")
    tls = row.spec.client.mesh_tls
    named = tls.identities if tls is not None else ()
    return (*networks.faults, *read_identities(named, "client.meshTLS.identities").faults)
