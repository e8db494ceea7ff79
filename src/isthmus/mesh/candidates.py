"""What slices say: addresses with their ports resolved, one slice at a time.

A *candidate* is an address of a slice as one Service's port has it, before anybody looks at it. A
*listing* is what one slice has to say, with what others need to know in order not to look closer.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Health
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.services import port_name
from isthmus.mesh.tables import SERVICE_NAME, SLICES
from isthmus.model.discovery import Endpoint as Row
from isthmus.model.discovery import EndpointSlice
from isthmus.model.key import ObjectKey

MIRROR_CLUSTER: Final = "mirror.linkerd.io/cluster-name"
GATEWAY_IDENTITY: Final = "mirror.linkerd.io/remote-gateway-identity"
REMOTE_NAME: Final = "mirror.linkerd.io/remote-svc-fq-name"

REMEMBERED: Final = 1 << 14
"""Endpoints of slices whose candidates are kept for the next time that the slice is read."""

Labels = tuple[tuple[str, str], ...]


class Behind(StrEnum):
    """What a slice says is behind an address."""

    POD = "pod"
    WORKLOAD = "workload"
    BARE = "bare"

    __hash__ = str.__hash__  # members of keys: an enum's own is a Python function


class Locality(StrEnum):
    """Where an endpoint is, seen from the asker; UNKNOWN where either zone is."""

    LOCAL = "local"
    REMOTE = "remote"
    UNKNOWN = "unknown"

    __hash__ = str.__hash__


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


SOCKET: Final = itemgetter(2, 3)
"""Address and port of a member."""


class Candidate(NamedTuple):
    """An address of a slice. `member` is how an asker sees it whose zone is not known.

    `order` ranks candidates that claim one pod: the newest slice last.
    """

    member: Member
    hostname: str
    hints: tuple[str, ...]
    labels: Labels
    order: tuple[str, str]


class Listing(msgspec.Struct, frozen=True):
    """The addresses of a slice, and what those that are ready claim.

    `sockets` are the addresses with their ports, `targets` the pods and workloads. `plain`: each
    address and each target once. `hinted`: some are hinted to zones. `ipv6`: some are addresses of
    that family. `resting` are not ready. `members`, of `candidates`, are in order of address.
    """

    candidates: tuple[Candidate, ...] = ()
    members: tuple[Member, ...] = ()
    sockets: frozenset[tuple[str, int]] = frozenset()
    targets: frozenset[ObjectKey] = frozenset()
    plain: bool = True
    hinted: bool = False
    ipv6: bool = False
    resting: tuple[Candidate, ...] = ()


@query
def listing(db: View, part: ObjectKey, service: ObjectKey, port: int) -> Listing:
    """What one slice has to say about a Service's port, the port resolved.

    A port that the Service does not declare is taken as the endpoints' own.
    """
    ready: list[Candidate] = []
    resting: list[Candidate] = []
    for one, health in listed(db, part, service, port):
        (ready if health is Health.HEALTHY else resting).append(one)
    members = sorted([one[0] for one in ready], key=SOCKET)
    sockets = frozenset(map(SOCKET, members))
    bound = [one[1] for one in members if one[0] is not Behind.BARE]
    targets = frozenset(bound)
    return Listing(
        candidates=tuple(ready),
        members=tuple(members),
        sockets=sockets,
        targets=targets,
        plain=len(sockets) == len(ready) and len(targets) == len(bound),
        hinted=any([one.hints for one in ready]),  # noqa: C419 - a list is twice as fast
        ipv6=any([":" in one[2] for one in members]),  # noqa: C419
        resting=tuple(resting),
    )


@query
def leaving_candidates(
    db: View, part: ObjectKey, service: ObjectKey, port: int
) -> tuple[Candidate, ...]:
    """The addresses of a slice that are on their way out and still serve what they have."""
    found = listed(db, part, service, port)
    return tuple(one for one, health in found if health is Health.DRAINING)


def listed(
    db: View, part: ObjectKey, service: ObjectKey, port: int
) -> list[tuple[Candidate, Health]]:
    """Every address of a slice, ready or not; nothing where the Service's port leads nowhere."""
    row = SLICES.get(db, part)
    if row is None or row.address_type not in ("", "IPv4", "IPv6"):
        return []
    name = port_name(db, service, port)
    target_port = port if name is None else _slice_port(row, name)
    return _candidates(row, part, port, target_port) if target_port else []


def _slice_port(row: EndpointSlice, name: str) -> int:
    """The number of the port of that name; 0 if there is none, as in the middle of a rollout."""
    return next((port.port or 0 for port in row.ports if port.name == name), 0)


class _Common(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What one slice says of all its endpoints. One object for all that say the same."""

    part: ObjectKey
    port: int
    gateway: str
    authority: str
    labels: Labels
    order: tuple[str, str]


_common: Final = lru_cache(maxsize=REMEMBERED // 4)(_Common)


def _candidates(
    row: EndpointSlice, part: ObjectKey, asked: int, port: int
) -> list[tuple[Candidate, Health]]:
    meta = row.metadata
    gateway, remote = meta.annotations.get(GATEWAY_IDENTITY, ""), meta.annotations.get(REMOTE_NAME)
    authority = f"{remote}:{asked}" if remote else ""
    order = (meta.creation_timestamp, part.name)
    common = _common(part, port, gateway, authority, set_labels(row, part), order)
    found: list[tuple[Candidate, Health]] = []
    for each in row.endpoints:
        found += _addresses(each, common)
    return found


@lru_cache(maxsize=REMEMBERED)
def _addresses(each: Row, common: _Common) -> tuple[tuple[Candidate, Health], ...]:
    """The addresses of one endpoint. Remembered: most of a slice stays as it was."""
    part, port, gateway, authority, labels, order = msgspec.structs.astuple(common)
    zone, ref = each.zone, each.target_ref
    if ref is None:
        behind: Behind | None = Behind.BARE
        target, zone = ObjectKey(part.cluster, "", ""), ""
    else:
        behind = _BEHIND.get(ref.kind)
        target = ObjectKey(part.cluster, ref.namespace or part.namespace, ref.name)
        gateway = authority = ""
    if behind is None:  # a kind that nobody knows: such an endpoint does not count
        return ()
    health = _health(each)
    hints = tuple([one.name for one in each.hints.for_zones]) if each.hints else ()
    members = [
        Member(behind, target, ip, port, zone, Locality.UNKNOWN, gateway, authority)
        for address in each.addresses
        if (ip := canonical_ip(address)) is not None
    ]
    return tuple([(Candidate(one, each.hostname, hints, labels, order), health) for one in members])


_BEHIND: Final = {"Pod": Behind.POD, "ExternalWorkload": Behind.WORKLOAD}


def _health(each: Row) -> Health:
    """Ready unless it says otherwise; leaving if it is terminating and still serves."""
    said = each.conditions
    if said.ready is not False:
        return Health.HEALTHY
    drains = said.terminating is True and said.serving is not False
    return Health.DRAINING if drains else Health.UNHEALTHY


def set_labels(row: EndpointSlice, part: ObjectKey) -> Labels:
    """Metric labels of a slice's endpoints: whose they are, and of a mirror what it mirrors."""
    meta = row.metadata
    owners = (owner.name for owner in meta.owner_references if owner.kind == "Service")
    service = meta.labels.get(SERVICE_NAME) or next(owners, "")
    own = (("namespace", part.namespace), ("service", service))
    if MIRROR_CLUSTER not in meta.labels:
        return own
    found = {"target_cluster": meta.labels[MIRROR_CLUSTER]}
    match meta.annotations.get(REMOTE_NAME, "").split("."):
        case [remote, namespace, *_]:
            found |= {"target_service": remote, "target_service_namespace": namespace}
    return (*own, *sorted(found.items()))
