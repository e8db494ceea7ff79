"""What carried policies become at the Services that they mean: objects like a person's.

For each port of such a Service a Server that denies, for each policy an AuthorizationPolicy with
what it requires: identities and networks, resolved where the policy was written. All belong to the
Service and go with it, with the policy, or when the Service or the Link accepts it no more. A
policy that grants nothing leaves the Servers, so that nobody is let in; while a linked cluster was
not heard of, what came from it stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.controllers.names import child, suffix
from isthmus.controllers.steps import JSON, Create, Delete, Plan, Update, canonical
from isthmus.engine import Table, View, query
from isthmus.ir.inbound import ANYWHERE, Authorization, Network, Peers
from isthmus.ir.names import AnyIdentity, Dns, IdentityMatch, IdentitySuffix, Spiffe
from isthmus.mesh.authorization import authorization_policy
from isthmus.mesh.carried import policies_for, unheard
from isthmus.mesh.census import BY_OWNER, Place
from isthmus.mesh.policy_tables import (
    AUTHORIZATION_POLICIES,
    MESH_TLS_AUTHENTICATIONS,
    NETWORK_AUTHENTICATIONS,
    POLICY_GROUP,
    SERVERS,
)
from isthmus.mesh.tables import SERVICES
from isthmus.mesh.workloads import led_ports
from isthmus.model.annotations.keys import CARRIED_FROM, CARRIED_UID
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey
from isthmus.model.policy import (
    AuthorizationPolicySpec,
    MeshTlsAuthenticationSpec,
    NetworkAuthenticationSpec,
    ServerSpec,
)

_PORTS: Final = 64
"""Ports of one Service that get a Server."""


class _Sort(NamedTuple):
    """A kind of objects that carried policies become."""

    kind: str
    version: str
    table: Table[ObjectKey, Any]
    spec: type[msgspec.Struct]


_SORTS: Final[Mapping[str, _Sort]] = {
    f"authorizationpolicies.{POLICY_GROUP}": _Sort(
        "AuthorizationPolicy", "v1alpha1", AUTHORIZATION_POLICIES, AuthorizationPolicySpec
    ),
    f"meshtlsauthentications.{POLICY_GROUP}": _Sort(
        "MeshTLSAuthentication", "v1alpha1", MESH_TLS_AUTHENTICATIONS, MeshTlsAuthenticationSpec
    ),
    f"networkauthentications.{POLICY_GROUP}": _Sort(
        "NetworkAuthentication", "v1alpha1", NETWORK_AUTHENTICATIONS, NetworkAuthenticationSpec
    ),
    f"servers.{POLICY_GROUP}": _Sort("Server", "v1beta3", SERVERS, ServerSpec),
}
_POLICIES, _TLS, _NETWORKS, _SERVERS = _SORTS


class Wanted(NamedTuple):
    """One object that should be there."""

    resource: str
    name: str
    spec: JSON
    notes: Mapping[str, str]


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Service of a namespace."""
    return SERVICES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The difference between what policies for a Service come to and what is there."""
    row = SERVICES.get(db, key)
    if row is None or row.metadata.deletion_timestamp:
        return ()
    found = wanted(db, key)
    grants = [one for one in found if one.resource != _SERVERS]
    steps = [step for one in grants for step in _write(db, key, row, one)]
    if not steps:  # who is let in stands before the door is shut
        shut = (one for one in found if one.resource == _SERVERS)
        steps = [step for one in shut for step in _write(db, key, row, one)]
    return (*steps, *_ended(db, key, row, {(one.resource, one.name) for one in found}))


def _ended(db: View, key: ObjectKey, row: Service, found: set[tuple[str, str]]) -> Plan:
    """Take away what is not wanted any more: doors before those who are let in."""
    waiting = unheard(db, key)
    gone = [
        each
        for each in _held(db, key, row)
        if each not in found and not _stays(db, key, each, waiting)
    ]
    doors = [each for each in gone if each[0] == _SERVERS]
    rows = (
        (each, _SORTS[each[0]].table.get(db, key._replace(name=each[1]))) for each in doors or gone
    )
    return tuple(
        Delete(resource, key.namespace, name, one.metadata.uid)
        for (resource, name), one in rows
        if one is not None and not one.metadata.deletion_timestamp
    )


def _held(db: View, key: ObjectKey, row: Service) -> list[tuple[str, str]]:
    """What belongs to the Service already."""
    return [
        (at.resource, at.name)
        for at in BY_OWNER.get(db, row.metadata.uid)
        if at.cluster == key.cluster and at.namespace == key.namespace and at.resource in _SORTS
    ]


def _stays(db: View, key: ObjectKey, each: tuple[str, str], waiting: tuple[str, ...]) -> bool:
    """Whether something may be of a policy of a cluster that was not heard of yet."""
    if not waiting or each[0] == _SERVERS:
        return bool(waiting)
    row = _SORTS[each[0]].table.get(db, key._replace(name=each[1]))
    said = row.metadata.annotations.get(CARRIED_FROM, "") if row is not None else ""
    return said.partition("/")[0] in waiting


# ----------------------------------------------------------------------------- what should be


@query
def wanted(db: View, service: ObjectKey) -> tuple[Wanted, ...]:
    """All objects that the policies for a Service come to."""
    row, policies = SERVICES.get(db, service), policies_for(db, service)
    if row is None or not policies or not row.spec.selector:
        return ()
    ports = led_ports(db, service)[:_PORTS]
    servers = tuple(_server(service, row, port) for port in ports)
    some = (one for policy in policies for one in _policy(db, service, policy, servers))
    return (*servers, *some)


def _server(service: ObjectKey, row: Service, port: int | str) -> Wanted:
    spec = {
        "podSelector": {"matchLabels": dict(row.spec.selector)},
        "port": port,
        "proxyProtocol": "unknown",
        "accessPolicy": "deny",
    }
    return Wanted(_SERVERS, child(f"carried-{service.name}", str(port), length=10), spec, {})


def _policy(
    db: View, service: ObjectKey, policy: ObjectKey, servers: tuple[Wanted, ...]
) -> Iterator[Wanted]:
    granted = authorization_policy(db, policy).authorization
    row = AUTHORIZATION_POLICIES.get(db, policy)
    if granted is None or row is None:
        return
    notes = {CARRIED_FROM: "/".join(policy), CARRIED_UID: row.metadata.uid}
    name = f"carried-{suffix(service.name, *policy, length=16)}"
    needs = list(_needed(granted, name))
    yield from (one._replace(notes=notes) for one in needs)
    refs = [
        {"group": POLICY_GROUP, "kind": _SORTS[one.resource].kind, "name": name} for one in needs
    ]
    for server in servers:
        spec = {
            "targetRef": {"group": POLICY_GROUP, "kind": "Server", "name": server.name},
            "requiredAuthenticationRefs": refs,
        }
        yield Wanted(_POLICIES, child(name, server.name, length=10), spec, notes)


def _needed(granted: Authorization, name: str) -> Iterator[Wanted]:
    """What clients must prove, spelt out: references mean nothing in another cluster."""
    match granted.authentication:
        case Peers(identities):
            yield Wanted(_TLS, name, {"identities": list(map(_text, identities))}, {})
        case _:
            pass
    if granted.networks != ANYWHERE:
        yield Wanted(_NETWORKS, name, {"networks": list(map(_network, granted.networks))}, {})


def _text(one: IdentityMatch) -> str:
    match one:
        case AnyIdentity():
            return "*"
        case IdentitySuffix(labels):
            return ".".join(("*", *labels))
        case Dns(name):
            return name
        case Spiffe():
            return one.uri


def _network(one: Network) -> JSON:
    return {"cidr": one.cidr, **({"except": list(one.excepts)} if one.excepts else {})}


# -------------------------------------------------------------------------------------- steps


def _write(db: View, key: ObjectKey, row: Service, one: Wanted) -> Plan:
    sort = _SORTS[one.resource]
    held = sort.table.get(db, key._replace(name=one.name))
    if held is None:
        return (_create(key, row, one, sort),)
    if row.metadata.uid not in {owner.uid for owner in held.metadata.owner_references}:
        return ()
    if held.metadata.deletion_timestamp:
        return ()
    notes = {
        name: said
        for name, said in one.notes.items()
        if held.metadata.annotations.get(name) != said
    }
    merge: dict[str, JSON] = {"metadata": {"annotations": notes}} if notes else {}
    if held.spec != msgspec.convert(one.spec, sort.spec):
        merge["spec"] = one.spec
    if not merge:
        return ()
    where = (one.resource, key.namespace, one.name, held.metadata.uid)
    return (Update(*where, canonical(merge)),)


def _create(key: ObjectKey, row: Service, one: Wanted, sort: _Sort) -> Create:
    owner = {"apiVersion": "v1", "kind": "Service", "name": key.name, "uid": row.metadata.uid}
    document = {
        "apiVersion": f"{POLICY_GROUP}/{sort.version}",
        "kind": sort.kind,
        "metadata": {
            "name": one.name,
            "namespace": key.namespace,
            "annotations": dict(one.notes),
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": one.spec,
    }
    return Create(one.resource, key.namespace, one.name, canonical(document))
