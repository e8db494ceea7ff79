"""Assignments: the endpoints of a cluster, as one class of askers sees them.

An endpoint is encoded once; an assignment is made of the encoded parts, so that one endpoint that
changes costs one small message and one concatenation.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from envoy.config.core.v3 import address_pb2 as address
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import health_check_pb2 as health
from envoy.config.endpoint.v3 import endpoint_components_pb2 as pb
from envoy.config.endpoint.v3 import endpoint_pb2 as assignment_pb
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.envoy import clusters, names
from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, Health, Mesh, Speaks
from isthmus.ir.names import TargetId
from isthmus.mesh.queries import (
    GetKey,
    Member,
    Protocol,
    SetKey,
    endpoint,
    forwards_to,
    gateway_protocol,
    groups,
    is_local,
    leaving,
    mirror_of,
    service_of,
    sets,
    target_named,
    through_gateway,
    trust_domain,
)
from isthmus.proto.xds import ENDPOINTS, Resource, encoded, field

OVERPROVISIONING: Final = 100_000
"""Per cent. One healthy endpoint carries all there is to carry, before another priority is used."""

_POLICY: Final = field(
    4,
    assignment_pb.ClusterLoadAssignment.Policy(
        overprovisioning_factor=UInt32Value(value=OVERPROVISIONING)
    ).SerializeToString(deterministic=True),
)

_HEALTH: Final = {
    Health.HEALTHY: health.HEALTHY,
    Health.DRAINING: health.DRAINING,
    Health.UNHEALTHY: health.UNHEALTHY,
}


@query
def assignment(db: View, key: str, node: str) -> Resource | None:
    """The endpoints of a target as proxies on a node see them. All that see the same share it."""
    name = target_named(db, key)
    if name is None or name.variant not in names.VARIANTS:
        return None
    return assignment_of(db, name, parts_of(db, name, node))


def parts_of(db: View, name: TargetId, node: str) -> tuple[SetKey, ...]:
    """The sets of a target; of one behind a gateway the gateway's addresses.

    A gateway behind which nobody is has nothing to offer (decision 6), and one that wants linkerd's
    transport header cannot be told what is meant.
    """
    service, port = service_of(name), name.port or 0
    if through_gateway(name):
        spoken = gateway_protocol(db, name.cluster) is Protocol.SNI
        found = spoken and forwards_to(db, service, port, name.subset)
        mirror = mirror_of(db, service, name.subset)
        return sets(db, GetKey(mirror, port, "", node)) if found else ()
    return sets(db, GetKey(service, port, name.subset, node))


class Place(NamedTuple):
    """Where an endpoint is: the cluster ("" = this one) and its zone ("" = unknown)."""

    cluster: str
    zone: str


@query
def assignment_of(db: View, name: TargetId, parts: tuple[SetKey, ...]) -> Resource:
    """The union of sets by place; an address that several have is in the first of them."""
    found: dict[tuple[str, int], tuple[Place, bytes]] = {}
    for part in parts:
        for group in groups(db, part):
            _add(db, found, name, group.members, Health.HEALTHY)
    for part in parts:
        _add(db, found, name, leaving(db, part), Health.DRAINING)
    places: dict[Place, list[bytes]] = {}
    for _, (place, wire) in sorted(found.items()):
        places.setdefault(place, []).append(wire)
    key = name.key(trust_domain(db, name.cluster))
    locality = b"".join(field(2, _locality(place, some)) for place, some in sorted(places.items()))
    return encoded(ENDPOINTS, key, field(1, key.encode()) + locality + _POLICY)


def _add(
    db: View,
    found: dict[tuple[str, int], tuple[Place, bytes]],
    name: TargetId,
    members: tuple[Member, ...],
    state: Health,
) -> None:
    through = through_gateway(name)
    domain = trust_domain(db, name.cluster)
    for member in members:
        home = name.cluster if through else member.target.cluster
        away = not through and trust_domain(db, home) != domain
        place = Place("" if is_local(db, home) else home, member.zone)
        kind = Kind(name.variant, place.cluster, "foreign" if away else "")
        wire = lb_endpoint(db, member, state, kind)
        if wire is not None:
            found.setdefault((member.ip, member.port), (place, wire))


def _locality(place: Place, endpoints: list[bytes]) -> bytes:
    where = base.Locality(region=place.cluster, zone=place.zone).SerializeToString()
    return (field(1, where) if where else b"") + b"".join(field(2, each) for each in endpoints)


class Kind(NamedTuple):
    """Of which kind of target an endpoint is told: its variant, and the cluster if not this one.

    `foreign` is "" or a word: its trust domain is another than the target's.
    """

    variant: str
    cluster: str
    foreign: str


@query
def lb_endpoint(db: View, member: Member, state: Health, kind: Kind) -> bytes | None:
    """An endpoint, encoded; None for one that Envoy cannot be told."""
    found = endpoint(db, member)
    how = _how(found, kind.variant, kind.foreign) if found is not None else None
    if found is None or how is None:
        return None
    wire = pb.LbEndpoint(
        endpoint=pb.Endpoint(
            address=socket_address(found.address, found.port),
            # Its own name is the server name that it wants to be asked for.
            hostname=found.server_name if how in (clusters.LINKERD, clusters.FOREIGN) else "",
        ),
        health_status=_HEALTH[state],
        load_balancing_weight=UInt32Value(value=max(1, found.weight)),
    )
    if how:
        _say(wire, clusters.MATCH, clusters.MODE, how)
    if kind.cluster:
        _say(wire, "isthmus", "cluster", kind.cluster)
    return wire.SerializeToString(deterministic=True)


def _say(wire: pb.LbEndpoint, namespace: str, key: str, value: str) -> None:
    said = Struct()
    said.update({key: value})
    wire.metadata.filter_metadata[namespace].CopyFrom(said)


def _how(found: Endpoint, variant: str, foreign: str) -> str | None:
    """How an endpoint of a target is reached, "" is plainly; None if not at all."""
    native = isinstance(found.reach, Mesh) and found.reach.native
    match variant:
        case names.THROUGH | names.THROUGH_RAW:
            return clusters.NATIVE if found.authority is not None else None
        case names.FORWARDED:
            return "" if native else None
    if unreachable(found):
        return None
    if variant == names.PLAIN:
        return ""
    return clusters.FOREIGN if native and foreign else mode(found)


def unreachable(found: Endpoint) -> bool:
    """Whether only linkerd's own transport leads there: a gateway that must be told a name."""
    nameless = found.identity is not None and not found.server_name
    return found.authority is not None or nameless


def mode(found: Endpoint) -> str:
    """How an endpoint is reached; "" is plainly.

    An opaque port behind a linkerd2-proxy takes mesh TLS only with linkerd's transport header,
    which Envoy does not speak: it is dialled as it is (see `faults`).
    """
    if found.identity is None:
        return ""
    if isinstance(found.reach, Mesh) and found.reach.native:
        return clusters.NATIVE
    return "" if found.speaks is Speaks.OPAQUE else clusters.LINKERD


def socket_address(ip: str, port: int) -> address.Address:
    """An address and port."""
    return address.Address(socket_address=address.SocketAddress(address=ip, port_value=port))
