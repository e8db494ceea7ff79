"""What slices say: addresses with their ports resolved, one slice at a time.

A *candidate* is an address of a slice as one Service's port has it, before anybody looks at it. A
*listing* is what one slice has to say, with what others need to know in order not to look closer.
"""

from __future__ import annotations

from enum import StrEnum
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
    address and each target once. `hinted`: some are hinted to zones. `resting` are not ready.
    """

    candidates: tuple[Candidate, ...] = ()
    sockets: frozenset[tuple[str, int]] = frozenset()
    targets: frozenset[ObjectKey] = frozenset()
    plain: bool = True
    hinted: bool = False
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
    sockets = frozenset([one[0][2:4] for one in ready])
    bound = [one[0][1] for one in ready if one[0][0] is not Behind.BARE]
    targets = frozenset(bound)
    return Listing(
        candidates=tuple(ready),
        sockets=sockets,
        targets=targets,
        plain=len(sockets) == len(ready) and len(targets) == len(bound),
        hinted=any([one.hints for one in ready]),  # noqa: C419 - a list is twice as fast
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


def _candidates(
    row: EndpointSlice, part: ObjectKey, asked: int, port: int
) -> list[tuple[Candidate, Health]]:
    found: list[tuple[Candidate, Health]] = []
    notes = row.metadata.annotations
    gateway, remote = notes.get(GATEWAY_IDENTITY, ""), notes.get(REMOTE_NAME, "")
    led = (gateway, f"{remote}:{asked}" if remote else "")
    labels, order = set_labels(row, part), (row.metadata.creation_timestamp, part.name)
    nobody = ObjectKey(part.cluster, "", "")
    for each in row.endpoints:
        ref = each.target_ref
        if ref is None:
            behind: Behind | None = Behind.BARE
            target, zone, (identity, authority) = nobody, "", led
        else:
            behind = _BEHIND.get(ref.kind)
            target = ObjectKey(part.cluster, ref.namespace or part.namespace, ref.name)
            zone, identity, authority = each.zone, "", ""
        if behind is None:  # a kind that nobody knows: such an endpoint does not count
            continue
        health = _health(each)
        hints = tuple([zone.name for zone in each.hints.for_zones]) if each.hints else ()
        for address in each.addresses:
            ip = canonical_ip(address)
            if ip is not None:
                unknown = Locality.UNKNOWN
                one = Member(behind, target, ip, port, zone, unknown, identity, authority)
                found.append((Candidate(one, each.hostname, hints, labels, order), health))
    return found


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
    found = {"service": service, "namespace": part.namespace}
    if MIRROR_CLUSTER in meta.labels:
        found["target_cluster"] = meta.labels[MIRROR_CLUSTER]
        match meta.annotations.get(REMOTE_NAME, "").split("."):
            case [remote, namespace, *_]:
                found |= {"target_service": remote, "target_service_namespace": namespace}
    return tuple(sorted(found.items()))
