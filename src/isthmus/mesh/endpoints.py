"""Endpoints of Services: from slices to members, and from members to endpoints.

A *candidate* is an address of a slice with its port resolved; a *member* is a candidate that an
asker sees. Filters in order: host name, then node or zone, then address family. An endpoint is one
cell for all sets and askers that see it alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, EndpointSet, Health, SetState, Speaks
from isthmus.ir.names import Dns
from isthmus.mesh.asked import GetKey
from isthmus.mesh.external import workload_endpoint, workload_known
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.pods import pod_endpoint, pod_ips, pod_node
from isthmus.mesh.services import (
    Absent,
    SetKey,
    Topology,
    discovery,
    port_name,
    sets,
)
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICE_NAME, SLICES, SLICES_BY_SERVICE
from isthmus.model.discovery import Endpoint as Row
from isthmus.model.discovery import EndpointSlice
from isthmus.model.key import ObjectKey

MIRROR_CLUSTER: Final = "mirror.linkerd.io/cluster-name"
GATEWAY_IDENTITY: Final = "mirror.linkerd.io/remote-gateway-identity"
REMOTE_NAME: Final = "mirror.linkerd.io/remote-svc-fq-name"

Labels = tuple[tuple[str, str], ...]


class Behind(StrEnum):
    """What a slice says is behind an address."""

    POD = "pod"
    WORKLOAD = "workload"
    BARE = "bare"


class Locality(StrEnum):
    """Where an endpoint is, seen from the asker; UNKNOWN where either zone is."""

    LOCAL = "local"
    REMOTE = "remote"
    UNKNOWN = "unknown"


class Member(NamedTuple):
    """An endpoint as a class of askers sees it.

    `target` is the pod or workload; of a bare address only its cluster counts. `gateway` is the
    identity of a gateway that leads further, `authority` the name to ask it for; "" if none.
    """

    behind: Behind
    target: ObjectKey
    ip: str
    port: int
    zone: str
    locality: Locality
    gateway: str
    authority: str


class Candidate(NamedTuple):
    """An address of a slice. `order` ranks candidates that claim one pod: the newest slice last."""

    behind: Behind
    target: ObjectKey
    ip: str
    port: int
    zone: str
    hostname: str
    hints: tuple[str, ...]
    gateway: str
    authority: str
    labels: Labels
    order: tuple[str, str]


class Holder(NamedTuple):
    """Whom a slice names, ready or not, and the port of theirs that is meant."""

    behind: Behind
    target: ObjectKey
    ip: str
    port: int
    gateway: str


class Group(NamedTuple):
    """Members that share the labels of their set."""

    labels: Labels
    members: tuple[Member, ...]


# ---------------------------------------------------------------------------- candidates


@query
def candidates(db: View, part: ObjectKey, service: ObjectKey, port: int) -> tuple[Candidate, ...]:
    """What one slice has to say about a Service's port: ready addresses only, port resolved.

    A port that the Service does not declare is taken as the endpoints' own.
    """
    found = _listed(db, part, service, port)
    return tuple(one for one, health in found if health is Health.HEALTHY)


@query
def leaving_candidates(
    db: View, part: ObjectKey, service: ObjectKey, port: int
) -> tuple[Candidate, ...]:
    """The addresses of a slice that are on their way out and still serve what they have."""
    found = _listed(db, part, service, port)
    return tuple(one for one, health in found if health is Health.DRAINING)


@query
def holders(db: View, part: ObjectKey, service: ObjectKey, port: int) -> tuple[Holder, ...]:
    """Everybody that a slice names for a Service's port, ready or not."""
    found = {
        Holder(one.behind, one.target, one.ip, one.port, one.gateway)
        for one, _ in _listed(db, part, service, port)
    }
    return tuple(sorted(found))


def _listed(
    db: View, part: ObjectKey, service: ObjectKey, port: int
) -> Iterator[tuple[Candidate, Health]]:
    row = SLICES.get(db, part)
    if row is None or row.address_type not in ("", "IPv4", "IPv6"):
        return
    name = port_name(db, service, port)
    target_port = port if name is None else _slice_port(row, name)
    if target_port:
        yield from _candidates(row, part, port, target_port)


def _health(each: Row) -> Health:
    """Ready unless it says otherwise; leaving if it is terminating and still serves."""
    said = each.conditions
    if said.ready is not False:
        return Health.HEALTHY
    drains = said.terminating is True and said.serving is not False
    return Health.DRAINING if drains else Health.UNHEALTHY


def _slice_port(row: EndpointSlice, name: str) -> int:
    """The number of the port of that name; 0 if there is none, as in the middle of a rollout."""
    return next((port.port or 0 for port in row.ports if port.name == name), 0)


def _candidates(
    row: EndpointSlice, part: ObjectKey, asked: int, port: int
) -> Iterator[tuple[Candidate, Health]]:
    notes = row.metadata.annotations
    gateway, remote = notes.get(GATEWAY_IDENTITY, ""), notes.get(REMOTE_NAME, "")
    authority = f"{remote}:{asked}" if remote else ""
    labels, order = set_labels(row, part), (row.metadata.creation_timestamp, part.name)
    for each in row.endpoints:
        behind = _behind(each)
        if behind is None:
            continue
        health = _health(each)
        bare = behind is Behind.BARE
        for address in each.addresses:
            ip = canonical_ip(address)
            if ip is None:
                continue
            one = Candidate(
                behind=behind,
                target=_target(each, part),
                ip=ip,
                port=port,
                zone="" if bare else each.zone,
                hostname=each.hostname,
                hints=tuple(zone.name for zone in each.hints.for_zones) if each.hints else (),
                gateway=gateway if bare else "",
                authority=authority if bare else "",
                labels=labels,
                order=order,
            )
            yield one, health


def _behind(each: Row) -> Behind | None:
    """None for a target of a kind that nobody knows: such an endpoint does not count."""
    if each.target_ref is None:
        return Behind.BARE
    match each.target_ref.kind:
        case "Pod":
            return Behind.POD
        case "ExternalWorkload":
            return Behind.WORKLOAD
        case _:
            return None


def _target(each: Row, part: ObjectKey) -> ObjectKey:
    ref = each.target_ref
    if ref is None:
        return ObjectKey(part.cluster, "", "")
    return ObjectKey(part.cluster, ref.namespace or part.namespace, ref.name)


def set_labels(row: EndpointSlice, part: ObjectKey) -> Labels:
    """Metric labels of a slice's endpoints: whose they are, and of a mirror what it mirrors."""
    meta = row.metadata
    owners = (owner.name for owner in meta.owner_references if owner.kind == "Service")
    service = meta.labels.get(SERVICE_NAME) or next(owners, "")
    found = {"service": service, "namespace": part.namespace}
    if MIRROR_CLUSTER in meta.labels:
        found["target_cluster"] = meta.labels[MIRROR_CLUSTER]
        match meta.annotations.get(REMOTE_NAME, "").split("."):
            case [remote, namespace, *_]:
                found |= {"target_service": remote, "target_service_namespace": namespace}
    return tuple(sorted(found.items()))


# ------------------------------------------------------------------------------- members


@query
def groups(db: View, key: SetKey) -> tuple[Group, ...]:
    """The members of a set by the labels they share; each address once, all in order."""
    if isinstance(discovery(db, key.service), Absent):
        return ()
    found = [
        one
        for part in SLICES_BY_SERVICE.get(db, key.service)
        for one in candidates(db, part, key.service, key.port)
        if key.instance in ("", one.hostname) and _known(db, one)
    ]
    near = _by_topology(db, key, found)
    distinct: dict[tuple[str, int], Candidate] = {}
    for one in sorted(_by_family(db, near), key=_rank):
        distinct.setdefault((one.ip, one.port), one)
    by_labels: dict[Labels, list[Member]] = {}
    for _, one in sorted(distinct.items()):
        by_labels.setdefault(one.labels, []).append(_member(one, key.zone))
    return tuple(Group(labels, tuple(some)) for labels, some in sorted(by_labels.items()))


@query
def leaving(db: View, key: SetKey) -> tuple[Member, ...]:
    """Members of a set that take nothing new and finish what they have, in order of address."""
    if isinstance(discovery(db, key.service), Absent):
        return ()
    found = {
        (one.ip, one.port): _member(one, key.zone)
        for part in SLICES_BY_SERVICE.get(db, key.service)
        for one in leaving_candidates(db, part, key.service, key.port)
        if key.instance in ("", one.hostname) and _known(db, one)
    }
    return tuple(one for _, one in sorted(found.items()))


def _known(db: View, one: Candidate) -> bool:
    """Whether what is behind the address is there; others of the slice do not suffer."""
    match one.behind:
        case Behind.POD:
            return pod_node(db, one.target) is not None
        case Behind.WORKLOAD:
            return workload_known(db, one.target)
        case Behind.BARE:
            return True


def _rank(one: Candidate) -> tuple[bool, tuple[str, str], ObjectKey]:
    """Of several that claim one address: what is known beats the bare, then the order is fixed."""
    return one.behind is Behind.BARE, one.order, one.target


def _member(one: Candidate, zone: str) -> Member:
    if not one.zone or not zone:
        locality = Locality.UNKNOWN
    else:
        locality = Locality.LOCAL if one.zone == zone else Locality.REMOTE
    return Member(
        one.behind, one.target, one.ip, one.port, one.zone, locality, one.gateway, one.authority
    )


def _by_topology(db: View, key: SetKey, found: list[Candidate]) -> Sequence[Candidate]:
    """Pods of the asker's node, without fallback; or what is hinted to its zone.

    Hints count as with kube-proxy: only if every candidate has some, and some are for this zone.
    """
    match key.topology:
        case Topology.NONE:
            return found
        case Topology.NODE:
            return [
                one
                for one in found
                if one.behind is Behind.POD and pod_node(db, one.target) == key.node
            ]
        case Topology.ZONE:
            if not key.zone or not all(one.hints for one in found):
                return found
            return [one for one in found if key.zone in one.hints] or found


def _by_family(db: View, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """Each pod and workload by one address of one family, bare addresses as they are.

    With IPv6 on, that family is preferred. With IPv6 off, pods have none of it, and workloads only
    where they have nothing else.
    """
    claims: dict[tuple[Behind, ObjectKey], list[Candidate]] = {}
    for one in found:
        if one.behind is Behind.BARE:
            yield one
        else:
            claims.setdefault((one.behind, one.target), []).append(one)
    ipv6 = settings(db).ipv6
    for (behind, target), claim in claims.items():
        old, new = ([one for one in claim if (":" in one.ip) is six] for six in (False, True))
        chosen = (new or old) if ipv6 else old
        if not chosen and behind is Behind.WORKLOAD:
            chosen = new
        if chosen:
            yield _newest(db, target, chosen)


def _newest(db: View, target: ObjectKey, claim: Sequence[Candidate]) -> Candidate:
    """Of addresses that slices give one pod: one it has now, of the newest slice."""
    if len({one.ip for one in claim}) == 1:
        return min(claim, key=lambda one: one.order)
    own = pod_ips(db, target)
    return max(claim, key=lambda one: (one.ip in own, one.order, one.ip))


# ----------------------------------------------------------------------------- endpoints


@query
def endpoint(db: View, member: Member) -> Endpoint | None:
    """An endpoint with everything that a client's proxy is told about it; None if unreadable."""
    match member.behind:
        case Behind.POD:
            return _placed(db, pod_endpoint(db, member.target, member.ip, member.port), member)
        case Behind.WORKLOAD:
            return _placed(db, workload_endpoint(db, member.target, member.ip, member.port), member)
        case Behind.BARE:
            return _bare(db, member)


def _placed(db: View, found: Endpoint | None, member: Member) -> Endpoint | None:
    """With zone and weight as the asker sees them."""
    if found is None:
        return None
    zone = {"zone": member.zone, "zone_locality": member.locality.value}
    labels = tuple(sorted((dict(found.labels) | zone).items()))
    near = settings(db).zone_weights and member.locality is Locality.LOCAL
    return msgspec.structs.replace(found, zone=member.zone, labels=labels, weight=10 if near else 1)


def _bare(db: View, member: Member) -> Endpoint:
    """An address that no object is behind: plain, or a gateway to another cluster."""
    gateway = Dns(member.gateway) if member.gateway else None
    upgrades = gateway is not None and settings(db).h2_upgrade
    return Endpoint(
        address=member.ip,
        port=member.port,
        identity=gateway,
        speaks=Speaks.HTTP2 if upgrades else Speaks.UNKNOWN,
        authority=member.authority or None,
        labels=(("zone_locality", member.locality.value),),
        meshed=gateway is not None,
    )


@query
def endpoint_sets(db: View, key: GetKey) -> tuple[EndpointSet, ...]:
    """What `key` asks for, as sets that share labels; one EMPTY or ABSENT set if nobody is there.

    An address that several members of a federated Service have is in the first of them.
    """
    found: list[EndpointSet] = []
    seen: set[tuple[str, int]] = set()
    for part in sets(db, key):
        for labels, members in groups(db, part):
            some = [
                one
                for member in members
                if (member.ip, member.port) not in seen and (one := endpoint(db, member))
            ]
            seen.update((one.address, one.port) for one in some)
            if some:
                found.append(EndpointSet(tuple(some), labels, SetState.SOME))
    if found:
        return tuple(found)
    absent = isinstance(discovery(db, key.service), Absent)
    return (EndpointSet(state=SetState.ABSENT if absent else SetState.EMPTY),)
