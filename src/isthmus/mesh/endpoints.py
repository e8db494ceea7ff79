"""Endpoints of Services: from candidates to members, and from members to endpoints.

A *member* is a candidate that an asker sees. Filters in order: host name, then node or zone, then
address family. An endpoint is one cell for all sets and askers that see it alike.

A set comes in *pieces*. Where nothing that one slice says can change what another one means (no
hints, nobody claimed twice) each slice is a piece of its own, and a change costs what its slice
holds, however many there are. Otherwise all slices are one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, EndpointSet, SetState, Speaks
from isthmus.ir.names import Dns
from isthmus.mesh.asked import GetKey
from isthmus.mesh.candidates import (
    SOCKET,
    Behind,
    Candidate,
    Labels,
    Listing,
    Locality,
    Member,
    leaving_candidates,
    listed,
    listing,
)
from isthmus.mesh.clusters import is_local
from isthmus.mesh.external import workload_endpoint, workload_known
from isthmus.mesh.pods import pod_endpoint, pod_ips, pod_node
from isthmus.mesh.services import Absent, SetKey, Topology, discovery
from isthmus.mesh.sets import sets
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SLICES_BY_SERVICE
from isthmus.model.key import ObjectKey


class Holder(NamedTuple):
    """Whom a slice names, ready or not, and the port of theirs that is meant."""

    behind: Behind
    target: ObjectKey
    ip: str
    port: int
    gateway: str


class Piece(NamedTuple):
    """Part of a set: what one slice gives to it; or all of it, where `part` is None."""

    whole: SetKey
    part: ObjectKey | None


class Group(NamedTuple):
    """Members that share the labels of their set."""

    labels: Labels
    members: tuple[Member, ...]


@query
def holders(db: View, part: ObjectKey, service: ObjectKey, port: int) -> tuple[Holder, ...]:
    """Everybody that a slice names for a Service's port, ready or not."""
    members = [one.member for one, _ in listed(db, part, service, port)]
    found = {Holder(one.behind, one.target, one.ip, one.port, one.gateway) for one in members}
    return tuple(sorted(found))


# ------------------------------------------------------------------------------- members


def pieces(db: View, key: SetKey) -> tuple[Piece, ...]:
    """The pieces of a set. No address is in two of them."""
    if isinstance(discovery(db, key.service), Absent):
        return ()
    parts = SLICES_BY_SERVICE.get(db, key.service)
    said = [listing(db, part, key.service, key.port) for part in parts]
    if _separable(key, said):
        return tuple([Piece(key, part) for part in parts])
    return (Piece(key, None),)


def _separable(key: SetKey, said: Sequence[Listing]) -> bool:
    """Whether each slice can be looked at alone."""
    zoned = key.topology is Topology.ZONE and key.zone
    for one in said:
        if not one.plain or (zoned and one.hinted):
            return False
    if len(said) < 2:
        return True
    return all(
        len(frozenset().union(*claims)) == sum(map(len, claims))
        for claims in ([one.sockets for one in said], [one.targets for one in said])
    )


def piece_groups(db: View, piece: Piece) -> tuple[Group, ...]:
    """The members of a piece by the labels they share; each address once, all in order.

    Of pods that are not there too: they have no endpoint.
    """
    key, part = piece
    if part is None:
        return _together(db, key)
    said = listing(db, part, key.service, key.port)
    if not said.candidates:
        return ()
    members = said.members
    if key.instance or key.topology is Topology.NODE or said.ipv6:
        members = _of_part(db, key, said)
    if key.zone:
        members = tuple([_near(one, key.zone) for one in members])
    return (Group(said.candidates[0].labels, members),) if members else ()


def _of_part(db: View, key: SetKey, said: Listing) -> tuple[Member, ...]:
    """Those of a plain slice that count, in order of address."""
    found: Sequence[Candidate] = said.candidates
    if key.instance:
        found = [one for one in found if one.hostname == key.instance]
    if key.topology is Topology.NODE:
        found = _by_topology(db, key, found)
    ipv6 = settings(db).ipv6
    members = [
        one.member
        for one in found
        if ipv6 or one.member.behind is not Behind.POD or ":" not in one.member.ip
    ]
    return tuple(sorted(members, key=SOCKET))


def resting(db: View, piece: Piece) -> list[Member]:
    """Those of a slice that are not ready, in no order: what may be members in a moment."""
    key, part = piece
    if part is None or key.instance or key.topology is Topology.NODE:
        return []
    said = listing(db, part, key.service, key.port).resting
    return [_near(one.member, key.zone) for one in said]


def _together(db: View, key: SetKey) -> tuple[Group, ...]:
    found = [
        one
        for part in SLICES_BY_SERVICE.get(db, key.service)
        for one in listing(db, part, key.service, key.port).candidates
        if _counts(db, key, one)
    ]
    near = _by_topology(db, key, found)
    distinct: dict[tuple[str, int], Candidate] = {}
    for one in sorted(_by_family(db, near), key=_rank):
        distinct.setdefault((one.member.ip, one.member.port), one)
    by_labels: dict[Labels, list[Member]] = {}
    for _, one in sorted(distinct.items()):
        by_labels.setdefault(one.labels, []).append(_near(one.member, key.zone))
    return tuple(Group(labels, tuple(some)) for labels, some in sorted(by_labels.items()))


@query
def groups(db: View, key: SetKey) -> tuple[Group, ...]:
    """The members of a set by the labels they share; each address once, all in order."""
    by_labels: dict[Labels, list[Member]] = {}
    for piece in pieces(db, key):
        for labels, members in piece_groups(db, piece):
            known = [one for one in members if _known(db, one)]
            if known:
                by_labels.setdefault(labels, []).extend(known)
    return tuple(
        Group(labels, tuple(sorted(some, key=SOCKET))) for labels, some in sorted(by_labels.items())
    )


@query
def leaving(db: View, key: SetKey) -> tuple[Member, ...]:
    """Members of a set that take nothing new and finish what they have, in order of address."""
    if isinstance(discovery(db, key.service), Absent):
        return ()
    found = {
        (one.member.ip, one.member.port): _near(one.member, key.zone)
        for part in SLICES_BY_SERVICE.get(db, key.service)
        for one in leaving_candidates(db, part, key.service, key.port)
        if _counts(db, key, one)
    }
    return tuple(one for _, one in sorted(found.items()))


def _counts(db: View, key: SetKey, one: Candidate) -> bool:
    """Whether it is asked for, and there."""
    return key.instance in ("", one.hostname) and _known(db, one.member)


def _known(db: View, member: Member) -> bool:
    """Whether what is behind an address is there; others of the slice do not suffer."""
    match member.behind:
        case Behind.POD:
            return pod_node(db, member.target) is not None
        case Behind.WORKLOAD:
            return workload_known(db, member.target)
        case Behind.BARE:
            return True


def _rank(one: Candidate) -> tuple[bool, tuple[str, str], ObjectKey]:
    """Of several that claim one address: what is known beats the bare, then the order is fixed."""
    return one.member.behind is Behind.BARE, one.order, one.member.target


def _near(member: Member, zone: str) -> Member:
    """As an asker in a zone sees it."""
    if not zone or not member.zone:
        return member
    return member._replace(locality=Locality.LOCAL if member.zone == zone else Locality.REMOTE)


def _by_topology(db: View, key: SetKey, found: Sequence[Candidate]) -> Sequence[Candidate]:
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
                if one.member.behind is Behind.POD and pod_node(db, one.member.target) == key.node
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
        behind, target = one.member[:2]
        if behind is Behind.BARE:
            yield one
        else:
            claims.setdefault((behind, target), []).append(one)
    ipv6 = settings(db).ipv6
    for (behind, target), claim in claims.items():
        old, new = (
            [one for one in claim if (":" in one.member.ip) is six] for six in (False, True)
        )
        chosen = (new or old) if ipv6 else old
        if not chosen and behind is Behind.WORKLOAD:
            chosen = new
        if chosen:
            yield _newest(db, target, chosen)


def _newest(db: View, target: ObjectKey, claim: Sequence[Candidate]) -> Candidate:
    """Of addresses that slices give one pod: one it has now, of the newest slice."""
    if len({one.member.ip for one in claim}) == 1:
        return min(claim, key=lambda one: one.order)
    own = pod_ips(db, target)
    return max(claim, key=lambda one: (one.member.ip in own, one.order, one.member.ip))


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
    """With zone and weight as the asker sees them; one of another cluster says which."""
    if found is None:
        return None
    where = {"zone": member.zone, "zone_locality": member.locality.value}
    if not is_local(db, member.target.cluster):
        where["target_cluster"] = member.target.cluster
    labels = tuple(sorted((dict(found.labels) | where).items()))
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
