"""A node's Envoy: Services' addresses for those beside whom no sidecar runs. Bytes, and no more.

What the node redirects arrives at `outbound` and is handed to the listener of its destination, as
in a sidecar. Each Service's port is the cluster `plain~` of its target: the node proves nobody's
identity, so endpoints are dialled without mesh TLS, and see the node as the peer. There are no
routes, limits or retries: they are for proxies that see requests.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_pb2 as pb
from google.protobuf.wrappers_pb2 import BoolValue

from isthmus.dialects.envoy import manager, names, stats
from isthmus.dialects.envoy.clusters import fixed_cluster, target_cluster
from isthmus.dialects.envoy.endpoints import assignment, socket_address
from isthmus.dialects.envoy.outbound import PORT
from isthmus.dialects.envoy.view import Names, SidecarView
from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.outbound import Vip
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.queries import (
    EVERYTHING,
    ObjectKey,
    in_scope,
    outbound,
    service_ref,
    settings,
    target_id,
    trust_domain,
)
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, Resource, resource

_PLAIN: Final = f"{names.PLAIN}~"
_SCOPE: Final = ("*/*",)


class NodeAsker(msgspec.Struct, frozen=True):
    """The Envoy of a node of a cluster."""

    cluster: str
    node: str


@query
def node_view(db: View, cluster: str) -> SidecarView:
    """What all nodes of a cluster are told: every TCP port of a Service that has an address."""
    found = [name for name in in_scope(db, cluster, EVERYTHING) if _vips(db, name)]
    keys = tuple(sorted({plain(db, name) for name in found}))
    listeners = sorted({names.OUTBOUND, *map(names.service, found)})
    return SidecarView(
        Names(tuple(sorted((*keys, names.REFUSED))), keys, tuple(listeners)), scope=_SCOPE
    )


def _vips(db: View, name: OutboundName) -> list[Vip]:
    return [front for front in outbound(db, name).fronts if isinstance(front, Vip)]


def _service(name: OutboundName) -> ObjectKey:
    return ObjectKey(name.parent.cluster, name.parent.namespace, name.parent.name)


def plain(db: View, name: OutboundName) -> str:
    """The cluster of a Service's port, without mesh TLS."""
    service = _service(name)
    return target_id(service, name.port, names.PLAIN).key(trust_domain(db, service.cluster))


@query
def node_listener(db: View) -> Resource:
    """Where everything is redirected to. What no Service's port is behind is closed."""
    wire = pb.Listener(
        name=names.OUTBOUND,
        address=socket_address("::" if settings(db).ipv6 else "0.0.0.0", PORT),  # noqa: S104
        use_original_dst=BoolValue(value=True),
        listener_filters=[manager.ORIGINAL_DST],
        traffic_direction=base.OUTBOUND,
    )
    wire.address.socket_address.ipv4_compat = settings(db).ipv6
    wire.default_filter_chain.CopyFrom(manager.chain("refused", [manager.refuse()]))
    return resource(wire, wire.name, clusters=[names.REFUSED])


@query
def node_service_listener(db: View, name: OutboundName) -> Resource | None:
    """The listener of a Service's port; None for one without an address."""
    vips = _vips(db, name)
    if not vips:
        return None
    first, *more = (socket_address(vip.address, vip.port) for vip in vips)
    wire = pb.Listener(
        name=names.service(name),
        address=first,
        additional_addresses=[pb.AdditionalAddress(address=each) for each in more],
        bind_to_port=BoolValue(value=False),
        traffic_direction=base.OUTBOUND,
    )
    key = plain(db, name)
    labels = stats.joined(stats.parent_labels(name.parent, name.port), ("", "default", "", "node"))
    carry = manager.carry("outbound", [(key, 1)], stats.OUTBOUND.connections)
    wire.default_filter_chain.CopyFrom(manager.chain("tcp", [carry], labels=labels))
    origin = service_ref(_service(name))
    return resource(wire, wire.name, clusters=[key], origin=origin)


class NodeDialect:
    """What the xDS surface is handed for nodes' Envoys."""

    name: Final = "envoy"

    def view_query(self, asker: NodeAsker, /) -> tuple[Any, ...]:
        """The cell of its view."""
        return (node_view, asker.cluster)

    def resource_query(
        self, asker: NodeAsker, type_url: str, name: str, /
    ) -> tuple[Any, ...] | None:
        """The cell of a resource; None for a name that cannot be one."""
        if len(name) > names.LONGEST:
            return None
        match type_url:
            case _ if type_url == CLUSTER and name == names.REFUSED:
                return (fixed_cluster, name)
            case _ if type_url == CLUSTER and name.startswith(_PLAIN):
                return (target_cluster, name)
            case _ if type_url == ENDPOINTS and name.startswith(_PLAIN):
                return (assignment, name, asker.node)
            case _ if type_url == LISTENER:
                return _listener(asker, name)
        return None


def _listener(asker: NodeAsker, name: str) -> tuple[Any, ...] | None:
    if name == names.OUTBOUND:
        return (node_listener,)
    kind, rest = names.split(name)
    found = names.read_service(rest) if kind == names.SERVICE else None
    if found is None:
        return None
    parent = Ref(asker.cluster, "", "Service", found.namespace, found.service)
    return (node_service_listener, OutboundName(parent, found.port, ""))
