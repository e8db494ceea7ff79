"""A gateway between clusters: mesh TLS goes on by its server name, untouched.

One listener, and one chain for each name that is let in; whoever asks for another one is closed.
The gateway terminates nothing, so it sees neither identities nor content, and the client's identity
is proved to the workload itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb

from isthmus.dialects.envoy import manager, names, stats
from isthmus.dialects.envoy.endpoints import socket_address
from isthmus.dialects.envoy.outbound import INBOUND_PORT as PORT
from isthmus.dialects.xds.hosts import domain
from isthmus.engine import View, query
from isthmus.ir.gateway import ToTarget
from isthmus.ir.names import Origin, Ref
from isthmus.mesh.queries import settings, sni_gateway, trust_domain
from isthmus.proto.xds import Resource, resource

HELLO: Final = 10_000
"""Milliseconds that a client may take to say which name it means."""


@query
def gateway_listener(db: View, workload: Ref) -> Resource:
    """Where other clusters come in."""
    some = list(_forwarded(db, workload))
    wire = pb.Listener(
        name=names.GATEWAY,
        address=socket_address("::" if settings(db).ipv6 else "0.0.0.0", PORT),  # noqa: S104
        listener_filters=[manager.SEE_TLS],
        listener_filters_timeout=manager.limit(HELLO),
        traffic_direction=base.INBOUND,
        filter_chains=[_chain(one) for one in some],
    )
    wire.address.socket_address.ipv4_compat = settings(db).ipv6
    if not some:
        # A listener must have a chain.
        wire.default_filter_chain.CopyFrom(manager.chain("refused", [manager.refuse()]))
    return resource(wire, wire.name, clusters=[names.REFUSED, *(one.cluster for one in some)])


@query
def gateway_clusters(db: View, workload: Ref) -> tuple[str, ...]:
    """The clusters that a gateway forwards to, sorted."""
    return tuple(sorted({one.cluster for one in _forwarded(db, workload)}))


class Forward(NamedTuple):
    """A server name, the cluster it leads to, and metric labels."""

    name: str
    cluster: str
    labels: str


def _forwarded(db: View, workload: Ref) -> Iterator[Forward]:
    for one in sni_gateway(db, workload).routes:
        if isinstance(one.to, ToTarget):
            target = one.to.target
            key = target.key(trust_domain(db, target.cluster))
            ref = one.source.ref if isinstance(one.source, Origin) else None
            parent = stats.parent_labels(ref, target.port or 0)
            yield Forward(domain(one.sni), key, stats.joined(parent, _ROUTE))


_ROUTE: Final = ("", "default", "", "gateway")
"""Labels of the route, in their order."""


def _chain(one: Forward) -> component.FilterChain:
    """A name's chain keeps its connections while others come and go."""
    match = component.FilterChainMatch(transport_protocol="tls", server_names=[one.name])
    carry = manager.carry("gateway", [(one.cluster, 1)], stats.OUTBOUND.connections)
    return manager.chain(one.name, [carry], match, labels=one.labels)
