"""Listeners and routes of what leaves a workload.

Everything is redirected to `outbound`, which hands a connection to the listener of its destination
(a Service's port, an endpoint that is dialled by its address), or else to `detect`. So a Service
that changes is one small listener, and one whose protocol is known waits for no inspection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb
from google.protobuf.wrappers_pb2 import BoolValue

from isthmus.dialects.envoy import clusters, manager, names, routes, stats, streams
from isthmus.dialects.envoy.endpoints import mode, socket_address
from isthmus.dialects.envoy.routes import Parent
from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint
from isthmus.ir.names import Default, Dns, Origin, Source
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    Outbound,
    Spread,
    Tcp,
    TcpRoute,
    Tls,
    TlsRoute,
    Vip,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import HttpMatch
from isthmus.ir.target import OriginalDst
from isthmus.mesh.queries import (
    AddressHost,
    ProfileKey,
    classed,
    outbound,
    profile,
    settings,
)
from isthmus.proto.xds import Resource, resource

PORT: Final = 4140
INBOUND_PORT: Final = 4143
ADMIN_PORT: Final = 4191

ENDPOINT_ROUTE: Final = Default("endpoint")
ENDPOINT: Final = Parent(None, 0, "endpoint")
"""What is dialled by its own address has no parent of its own."""

DETECT_TIMEOUT: Final = 10_000
_NO: Final = BoolValue(value=False)


# ------------------------------------------------------------------------------ services


@query
def service_listener(db: View, name: OutboundName) -> Resource | None:
    """The listener of a Service's port; None for one without an address."""
    own = classed(db, name)
    if own != name:
        return service_listener(db, own)
    found = outbound(db, name)
    vips = [front for front in found.fronts if isinstance(front, Vip)]
    if not vips:
        return None
    wire = _handed(names.service(name), [(vip.address, vip.port) for vip in vips])
    sent = _chains(wire, found)
    return resource(wire, wire.name, clusters=sent, origin=found.source)


@query
def service_routes(db: View, name: OutboundName) -> Resource | None:
    """The routes of a Service's port; None where it has no HTTP."""
    own = classed(db, name)
    if own != name:
        return service_routes(db, own)
    return routes.routes_of(db, name, names.service(name))


def _handed(name: str, sockets: Sequence[tuple[str, int]]) -> pb.Listener:
    """A listener that binds nothing: connections to these addresses are handed to it."""
    first, *more = (socket_address(ip, port) for ip, port in sockets)
    return pb.Listener(
        name=name,
        address=first,
        additional_addresses=[pb.AdditionalAddress(address=each) for each in more],
        bind_to_port=_NO,
        traffic_direction=base.OUTBOUND,
    )


def _chains(wire: pb.Listener, found: Outbound) -> set[str]:
    """The chains of what a port speaks; returned are the clusters that bytes are sent to."""
    parent = routes.parent_of(found)
    match found.protocol:
        case Detect(timeout=timeout, tcp=tcp_routes):
            _detected(wire, timeout)
            return _default(wire, tcp_routes, parent)
        case Http1():
            client = manager.client_side(wire.name, manager.HTTP1)
            wire.filter_chains.append(manager.chain("http", [client]))
        case Http2() | Grpc():
            client = manager.client_side(wire.name, manager.HTTP2)
            wire.filter_chains.append(manager.chain("http", [client]))
        case Tcp(routes=tcp_routes):
            return _default(wire, tcp_routes, parent)
        case Tls(routes=tls_routes):
            return _by_server_name(wire, tls_routes, parent)
    return set()


def _detected(wire: pb.Listener, timeout: int) -> None:
    """HTTP if it looks like it."""
    wire.listener_filters.append(manager.SEE_HTTP)
    wire.listener_filters_timeout.CopyFrom(manager.limit(timeout))
    wire.continue_on_listener_filters_timeout = True
    match = component.FilterChainMatch(application_protocols=manager.PLAINTEXT_HTTP)
    wire.filter_chains.append(manager.chain("http", [manager.client_side(wire.name)], match))


def _default(wire: pb.Listener, tcp: Sequence[TcpRoute], parent: Parent) -> set[str]:
    """Everything else, by the first route; without one it is refused."""
    for route in tcp[:1]:
        raw = streams.raw(route, parent)
        chain = manager.chain("tcp", raw.filters, labels=raw.labels)
        wire.default_filter_chain.CopyFrom(chain)
        return set(raw.clusters)
    wire.default_filter_chain.CopyFrom(manager.chain("tcp", [manager.refuse()]))
    return {names.REFUSED}


def _by_server_name(wire: pb.Listener, tls: Sequence[TlsRoute], parent: Parent) -> set[str]:
    """By the server name that a client asks for; what is no TLS, or for no route, is refused."""
    wire.listener_filters.append(manager.SEE_TLS)
    wire.listener_filters_timeout.CopyFrom(manager.limit(DETECT_TIMEOUT))
    sent = {names.REFUSED}
    for chain, raw in streams.tls_chains("tls", tls, parent, component.FilterChainMatch()):
        wire.filter_chains.append(chain)
        sent.update(raw.clusters)
    wire.default_filter_chain.CopyFrom(manager.chain("refused", [manager.refuse()]))
    return sent


# ------------------------------------------------------------- endpoints by their addresses


@query
def direct_listener(db: View, cluster: str, ip: str, port: int) -> Resource | None:
    """The listener of an endpoint that clients dial by its own address; None if it is not meshed.

    Its proxy must prove the identity of exactly this workload.
    """
    said = profile(db, ProfileKey(AddressHost(cluster, ip), port, ""))
    endpoint = said.endpoint
    proof = provable(endpoint) if endpoint is not None else None
    if endpoint is None or proof is None:
        return None
    linkerd = mode(endpoint) == clusters.LINKERD
    to = names.direct(proof, linkerd=linkerd)
    wire = _handed(names.address(names.IP, ip, port), [(ip, port)])
    labels = routes.metadata(ENDPOINT, ENDPOINT_ROUTE)
    carry = manager.carry("outbound", [(to, 1)], stats.OUTBOUND.connections)
    filters = (carry,) if linkerd else (manager.SPEAKS_RAW, carry)
    if not said.opaque:
        _detected(wire, DETECT_TIMEOUT)
        wire.filter_chains[0].filters[0].CopyFrom(manager.client_side(to))
    wire.default_filter_chain.CopyFrom(manager.chain("tcp", filters, labels=labels))
    return resource(wire, wire.name, clusters=[to], origin=_origin(endpoint))


def _origin(endpoint: Endpoint) -> Source | None:
    return Origin(endpoint.origin) if endpoint.origin is not None else None


def provable(endpoint: Endpoint) -> Dns | None:
    """The identity by which an endpoint is dialled at its own address; None if not by mesh TLS."""
    proof = endpoint.identity
    return proof if isinstance(proof, Dns) and mode(endpoint) else None


@query
def direct_routes(_db: View, name: str) -> Resource:
    """The routes to whoever is dialled: all requests to the cluster of that name."""
    everything = HttpRule(
        ENDPOINT_ROUTE,
        matches=(HttpMatch(),),
        backends=(OriginalDst(ENDPOINT_ROUTE),),
        spread=Spread.FIRST,
    )
    route = HttpRoute(ENDPOINT_ROUTE, rules=(everything,))
    wire = routes.configuration(name, ENDPOINT, [route])
    for each in wire.virtual_hosts[0].routes:
        each.route.cluster = name
        each.request_headers_to_add.append(routes.TOLD)
    return resource(wire, name, clusters=[name])


@query
def refusing_listener(_db: View, ip: str, port: int) -> Resource:
    """The listener of an endpoint that is out of scope: it closes (decision 17)."""
    wire = _handed(names.address(names.REFUSE, ip, port), [(ip, port)])
    wire.default_filter_chain.CopyFrom(manager.chain("refused", [manager.refuse()]))
    return resource(wire, wire.name, clusters=[names.REFUSED])


# ---------------------------------------------------------------------------- everything


@query
def outbound_listener(db: View) -> Resource:
    """Where all that leaves is redirected to. It looks at nothing but the destination.

    Filters here would run before the hand-off and make an opaque port wait.
    """
    wire = pb.Listener(
        name=names.OUTBOUND,
        address=socket_address("::" if settings(db).ipv6 else "0.0.0.0", PORT),  # noqa: S104
        use_original_dst=BoolValue(value=True),
        listener_filters=[manager.ORIGINAL_DST],
        traffic_direction=base.OUTBOUND,
    )
    wire.address.socket_address.ipv4_compat = settings(db).ipv6
    onward = [manager.ORIGINAL, manager.carry("outbound", [(names.DETECT, 1)], None)]
    wire.default_filter_chain.CopyFrom(manager.chain("detect", onward))
    return resource(wire, wire.name, clusters=[names.DETECT])
