"""The status of policies and of what they refer to (decision 25).

Accepted         whether the object counts; False names what means nothing
ResolvedRefs     whether what an authorization refers to is there
Enforced         whether there is something here to decide; False says why not
Overlapped       True: an older Server describes ports of this one
PartiallyInvalid True names the parts that are left out although the rest counts
RawPathMatching  True: a proxy compares paths as they were sent, so this may be evaded
Supported        False names what proxies in scope will not do as it is written

The last four are there only while they have something to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from isthmus.controllers.conditions import Says, news
from isthmus.controllers.route_faults import parent_faults, server_faults
from isthmus.controllers.saying import RAW_PATHS, listed, supported
from isthmus.controllers.steps import JSON, Plan, Update, canonical
from isthmus.engine import Table, View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Ref
from isthmus.mesh.attachment import ACCEPTED
from isthmus.mesh.authorization import (
    Grant,
    authorization_policy,
    grant_faults,
    server_authorization,
)
from isthmus.mesh.carried import Fate, Taken, asks, fates
from isthmus.mesh.census import CensusKey, Place
from isthmus.mesh.egress import EGRESS_NETWORKS, OVERLAPS, network_ref, overlaps
from isthmus.mesh.matches import Fault
from isthmus.mesh.policy_tables import (
    AUTHORIZATION_POLICIES,
    AUTHORIZED_SERVERS,
    MESH_TLS_AUTHENTICATIONS,
    NETWORK_AUTHENTICATIONS,
    POLICY_GROUP,
    RATE_LIMITS,
    SERVER_AUTHORIZATIONS,
    SERVERS,
)
from isthmus.mesh.rate_limits import LimitState, limit_state
from isthmus.mesh.reported import POLICY_STATUS
from isthmus.mesh.routes import SERVER as SERVER_KIND
from isthmus.mesh.servers import overlaps as server_overlaps
from isthmus.mesh.standing import (
    Standing,
    authorization_standing,
    authorized_servers,
    policy_standing,
    server_standing,
)
from isthmus.model.annotations import parent_warnings
from isthmus.model.annotations.keys import CARRY
from isthmus.model.key import ObjectKey
from isthmus.model.reported import LimitStatus, Reported, TargetRef

REST: Final = 0.2
"""Seconds between two writes of one status."""

CARRIED: Final = "multicluster.isthmus.dev/carried-"
"""Conditions of a carried policy, one for each member: the cluster's name follows."""
ENFORCED: Final = "Enforced"
OVERLAPPED: Final = "Overlapped"
PARTLY: Final = "PartiallyInvalid"
RESOLVED: Final = "ResolvedRefs"
OURS: Final = (ACCEPTED, RESOLVED, ENFORCED, OVERLAPPED, PARTLY, RAW_PATHS, "Supported")

_ELSEWHERE: Final = (
    "nothing here to decide: no workload of this cluster is selected. Policies are enforced where"
    " requests arrive: workloads of other clusters need the policy in theirs, or one whose target"
    f" is their mirror or federated Service here, with the annotation {CARRY}"
)
_WHY: Final[Mapping[Standing, tuple[str, str]]] = {
    Standing.IN_FORCE: ("Enforced", "it decides at proxies of this cluster"),
    Standing.NO_TARGET: ("NoMatchingTarget", "what it is for is not there"),
    Standing.NOT_ON_A_SERVER: (
        "NotOnAServer",
        "no Server takes the route: it decides nothing where requests arrive",
    ),
    Standing.ELSEWHERE: ("NoWorkloads", _ELSEWHERE),
    Standing.SHADOWED: ("Shadowed", "older Servers describe all the ports"),
}


@query
def keys(db: View, where: Place) -> tuple[CensusKey, ...]:
    """Every object of these kinds in a namespace."""
    return tuple(
        CensusKey(key.cluster, resource, key.namespace, key.name)
        for resource in sorted(_TABLES)
        for key in _TABLES[resource].names(db, where)
    )


@query
def plan(db: View, key: CensusKey) -> Plan:
    """Say what is not said yet, and take back what is not so any more."""
    at = ObjectKey(key.cluster, key.namespace, key.name)
    row, said = _TABLES[key.resource].get(db, at), POLICY_STATUS[key.resource].get(db, at)
    if row is None or said is None or row.metadata.deletion_timestamp:
        return ()
    wanted = conditions(db, key)
    ours = (*OURS, *(one.type for one in said.status.conditions if one.type.startswith(CARRIED)))
    status: dict[str, JSON] = {}
    if found := news(said.status.conditions, wanted, ours, said.metadata.generation):
        status["conditions"] = found
    status |= _target(row, said)
    if not status:
        return ()
    merge = canonical({"status": status})
    return (Update(key.resource, key.namespace, key.name, row.metadata.uid, merge, "status"),)


def _target(row: Any, said: Reported) -> dict[str, JSON]:  # noqa: ANN401  # a row of any kind
    """What the status of a rate limit is about."""
    if not isinstance(said.status, LimitStatus):
        return {}
    wanted = TargetRef(group=POLICY_GROUP, kind=SERVER_KIND, name=row.spec.target_ref.name)
    if said.status.target_ref == wanted:
        return {}
    return {"targetRef": {"group": wanted.group, "kind": wanted.kind, "name": wanted.name}}


@query
def conditions(db: View, key: CensusKey) -> tuple[Says, ...]:
    """What an object says of itself."""
    return tuple(_SAYS[key.resource](db, ObjectKey(key.cluster, key.namespace, key.name)))


# --------------------------------------------------------------------------- authorizations


def _policy(db: View, key: ObjectKey) -> Iterator[Says]:
    grant, standing = authorization_policy(db, key), policy_standing(db, key)
    if is_carried(db, key):
        yield from _carried(db, key, grant)
        return
    yield _accepted(grant.faults)
    yield _resolved(grant, standing)
    yield from _standing(standing)
    yield from supported(
        _faults_of(db, _ref(key, "AuthorizationPolicy"), authorized_servers(db, key))
    )


@query
def is_carried(db: View, policy: ObjectKey) -> bool:
    """Whether a policy is for a Service of other clusters, and is to be carried there."""
    row = AUTHORIZATION_POLICIES.get(db, policy)
    return row is not None and asks(row)


def _carried(db: View, key: ObjectKey, grant: Grant) -> Iterator[Says]:
    """What each member made of a policy, and all of them together."""
    found = fates(db, key)
    yield _accepted(grant.faults)
    yield _resolved(grant, None if found else Standing.NO_TARGET)
    if not found:
        text = "its target is no mirror and no federated Service: there is nowhere to carry it"
        yield Says(ENFORCED, False, "NotMirrored", text)
        return
    worst = next((one for one in (Taken.REFUSED, Taken.PENDING) if _some(found, one)), None)
    told = [f"{one.cluster}: {one.taken}{': ' if one.why else ''}{one.why}" for one in found]
    reason = worst.value.capitalize() if worst is not None else ENFORCED
    yield Says(ENFORCED, worst is None, reason, listed(told))
    for one in found:
        yield Says(f"{CARRIED}{one.cluster}", _HOLDS[one.taken], one.taken.capitalize(), one.why)


def _some(found: Iterable[Fate], taken: Taken) -> bool:
    return any(one.taken is taken for one in found)


_HOLDS: Final = {Taken.ENFORCED: True, Taken.REFUSED: False, Taken.PENDING: None}


def _server_authorization(db: View, key: ObjectKey) -> Iterator[Says]:
    grant, standing = server_authorization(db, key), authorization_standing(db, key)
    mine = _ref(key, "ServerAuthorization")
    yield _accepted(grant.faults)
    yield _resolved(grant, standing)
    yield from _standing(standing)
    if not grant.faults:
        yield from _partly(grant_faults(db, mine))
    row = SERVER_AUTHORIZATIONS.get(db, key)
    name = row.spec.server.name if row is not None else ""
    chosen = (key._replace(name=name),) if name else AUTHORIZED_SERVERS.members(db, key)
    yield from supported(_faults_of(db, mine, chosen))


def _accepted(faults: Iterable[Fault]) -> Says:
    told = [_told(each) for each in faults]
    if told:
        return Says(ACCEPTED, False, "Invalid", f"{listed(told)}; it grants nothing")
    return Says(ACCEPTED, True, ACCEPTED, "")


def _told(fault: Fault) -> str:
    return f"spec.{fault.path}: {fault.message}" if fault.path else fault.message


def _resolved(grant: Grant, standing: Standing | None) -> Says:
    told = [_told(each) for each in grant.unresolved]
    if told:
        return Says(RESOLVED, False, "RefNotFound", f"{listed(told)}; it grants nothing")
    if standing is Standing.NO_TARGET:
        return Says(RESOLVED, False, "NoMatchingTarget", _WHY[standing][1])
    return Says(RESOLVED, True, RESOLVED, "")


def _standing(standing: Standing | None) -> Iterator[Says]:
    if standing is not None:
        reason, text = _WHY[standing]
        yield Says(ENFORCED, standing is Standing.IN_FORCE, reason, text)


def _partly(faults: Iterable[Fault]) -> Iterator[Says]:
    told = [_told(each) for each in faults]
    if told:
        yield Says(PARTLY, True, "Invalid", f"{listed(told)}; the rest counts")


def _faults_of(db: View, mine: Ref, servers: Iterable[ObjectKey]) -> tuple[Unsupported, ...]:
    found: dict[Unsupported, None] = {}
    for server in servers:
        found |= dict.fromkeys(_faults_at(db, mine, server))
    return tuple(found)


@query
def _faults_at(db: View, mine: Ref, server: ObjectKey) -> tuple[Unsupported, ...]:
    return server_faults(db, server).get(mine, ())


def _ref(key: ObjectKey, kind: str) -> Ref:
    return Ref(key.cluster, POLICY_GROUP, kind, key.namespace, key.name)


# ----------------------------------------------------------------------------- Servers


def _server(db: View, key: ObjectKey) -> Iterator[Says]:
    yield Says(ACCEPTED, True, ACCEPTED, "")
    yield from _standing(server_standing(db, key))
    lost = server_overlaps(db, key)
    if lost:
        told = [
            f"port {one.port} of {one.workload.namespace}/{one.workload.name} is described by"
            f" the older Server {one.to.name}"
            for one in lost
        ]
        yield Says(OVERLAPPED, True, OVERLAPPED, listed(told))


def _rate_limit(db: View, key: ObjectKey) -> Iterator[Says]:
    state = limit_state(db, key)
    reason = _LIMITS.get(state, ACCEPTED) if state is not None else ACCEPTED
    yield Says(ACCEPTED, state is LimitState.ACCEPTED, reason, "")
    row = RATE_LIMITS.get(db, key)
    if row is not None and state is LimitState.ACCEPTED:
        server = key._replace(name=row.spec.target_ref.name)
        yield from supported(_faults_at(db, _ref(key, "HTTPLocalRateLimitPolicy"), server))


_LIMITS: Final = {
    LimitState.NO_TARGET: "NoMatchingTarget",
    LimitState.ALREADY_EXISTS: "RateLimitReasonAlreadyExists",
}


# ---------------------------------------------------------------- authentications, egress


def _mesh_tls(db: View, key: ObjectKey) -> Iterator[Says]:
    yield from _authentication(grant_faults(db, _ref(key, "MeshTLSAuthentication")))


def _networks(db: View, key: ObjectKey) -> Iterator[Says]:
    yield from _authentication(grant_faults(db, _ref(key, "NetworkAuthentication")))


def _authentication(faults: Iterable[Fault]) -> Iterator[Says]:
    yield Says(ACCEPTED, True, ACCEPTED, "")
    yield from _partly(faults)


def _egress(db: View, key: ObjectKey) -> Iterator[Says]:
    if overlaps(db, key):
        yield Says(ACCEPTED, False, "EgressReasonNetworkOverlap", OVERLAPS)
    else:
        yield Says(ACCEPTED, True, ACCEPTED, "")
    row = EGRESS_NETWORKS.get(db, key)
    wrong = list(parent_warnings(row.metadata.annotations)) if row is not None else []
    if wrong:
        yield Says(PARTLY, True, "InvalidAnnotations", listed(wrong))
    yield from supported(parent_faults(db, network_ref(key)))


_SAYS: Final[Mapping[str, Callable[[View, ObjectKey], Iterator[Says]]]] = {
    f"authorizationpolicies.{POLICY_GROUP}": _policy,
    f"egressnetworks.{POLICY_GROUP}": _egress,
    f"httplocalratelimitpolicies.{POLICY_GROUP}": _rate_limit,
    f"meshtlsauthentications.{POLICY_GROUP}": _mesh_tls,
    f"networkauthentications.{POLICY_GROUP}": _networks,
    f"serverauthorizations.{POLICY_GROUP}": _server_authorization,
    f"servers.{POLICY_GROUP}": _server,
}
_TABLES: Final[Mapping[str, Table[ObjectKey, Any]]] = {
    f"authorizationpolicies.{POLICY_GROUP}": AUTHORIZATION_POLICIES,
    f"egressnetworks.{POLICY_GROUP}": EGRESS_NETWORKS,
    f"httplocalratelimitpolicies.{POLICY_GROUP}": RATE_LIMITS,
    f"meshtlsauthentications.{POLICY_GROUP}": MESH_TLS_AUTHENTICATIONS,
    f"networkauthentications.{POLICY_GROUP}": NETWORK_AUTHENTICATIONS,
    f"serverauthorizations.{POLICY_GROUP}": SERVER_AUTHORIZATIONS,
    f"servers.{POLICY_GROUP}": SERVERS,
}
