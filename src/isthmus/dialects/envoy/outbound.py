"""Listeners and routes of what leaves a workload.

Everything is redirected to `outbound`, which hands a connection to the listener of its destination
(a Service's port, an endpoint that is dialled by its address), or else to `detect`. So a Service
that changes is one small listener, and one whose protocol is known waits for no inspection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from envoy.config.core.v3 import address_pb2 as address
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from isthmus.dialects.envoy import clusters, manager, names, routes, stats
from isthmus.dialects.envoy.endpoints import mode, socket_address
from isthmus.dialects.envoy.routes import cluster_of
from isthmus.dialects.xds import rbac
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
    Vip,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import Forbid, HttpMatch
from isthmus.ir.target import Backend, OriginalDst, To
from isthmus.mesh.queries import (
    AddressHost,
    ProfileKey,
    outbound,
    profile,
    refused_networks,
    settings,
)
from isthmus.proto.xds import Resource, resource

PORT: Final = 4140
INBOUND_PORT: Final = 4143
ADMIN_PORT: Final = 4191

OWN_PORTS: Final = (PORT, INBOUND_PORT)
"""Whoever dials the proxy itself is refused, or it would dial itself for ever."""

UNMESHED: Final = Default("egress-fallback")
DETECT_TIMEOUT: Final = 10_000
_NO: Final = BoolValue(value=False)


# ------------------------------------------------------------------------------ services


@query
def service_listener(db: View, name: OutboundName) -> Resource | None:
    """The listener of a Service's port; None for one without an address."""
    found = outbound(db, name)
    vips = [front for front in found.fronts if isinstance(front, Vip)]
    if not vips:
        return None
    wire = _handed(names.service(name), [(vip.address, vip.port) for vip in vips])
    raw = [_raw(each, found) for each in _tcp(found)]
    _chains(wire, found, raw)
    return resource(
        wire,
        wire.name,
        clusters=[one for each in raw for one in each.clusters],
        origin=found.source,
    )


@query
def service_routes(db: View, name: OutboundName) -> Resource | None:
    """The routes of a Service's port; None where it has no HTTP."""
    found = outbound(db, name)
    if not routes.http_routes(found):
        return None
    wire = routes.of_outbound(names.service(name), found)
    return resource(wire, wire.name, clusters=routes.clusters_of(found), origin=found.source)


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


class Raw(NamedTuple):
    """A chain for bytes, to be put anywhere in a listener, and where it sends them."""

    filters: tuple[component.Filter, ...]
    clusters: tuple[str, ...]
    labels: str


def _tcp(found: Outbound) -> tuple[TcpRoute, ...]:
    match found.protocol:
        case Tcp(routes=some) | Detect(tcp=some):
            return some[:1]
        case _:
            return ()


def _raw(route: TcpRoute, found: Outbound) -> Raw:
    """The route of a whole connection. All of its backends, or none, are told what follows."""
    labels = stats.joined(
        stats.parent_labels(found.parent, found.port), stats.route_labels(route.source)
    )
    backends = route.backends[:1] if route.spread is Spread.FIRST else route.backends
    refused = route.spread is Spread.NONE or any(isinstance(one, Forbid) for one in route.filters)
    if refused or not backends:
        return Raw((manager.refuse(),), (names.REFUSED,), labels)
    apart = any(map(_apart, backends))
    weights = [(_cluster(one, apart=apart), one.weight or len(backends) == 1) for one in backends]
    carry = manager.carry("outbound", weights, stats.OUTBOUND_TCP)
    meshed = any(isinstance(one, To) for one in backends) and not apart
    filters = (manager.SPEAKS_RAW, carry) if meshed else (carry,)
    return Raw(filters, tuple(cluster for cluster, _ in weights), labels)


def _apart(backend: Backend) -> bool:
    """Whether raw bytes need clusters of their own: a linkerd2-proxy is to be offered no ALPN."""
    some = (backend.target, *backend.failover) if isinstance(backend, To) else ()
    return any(one.linkerd for one in some)


def _cluster(backend: Backend, *, apart: bool) -> str:
    return cluster_of(backend, names.RAW if apart else "")


def _chains(wire: pb.Listener, found: Outbound, raw: Sequence[Raw]) -> None:
    match found.protocol:
        case Detect(timeout=timeout):
            wire.listener_filters.append(manager.SEE_HTTP)
            wire.listener_filters_timeout.CopyFrom(manager.limit(timeout))
            wire.continue_on_listener_filters_timeout = True
            match = component.FilterChainMatch(application_protocols=manager.PLAINTEXT_HTTP)
            client = manager.client_side(wire.name)
            wire.filter_chains.append(manager.chain("http", [client], match))
        case Http1():
            client = manager.client_side(wire.name, manager.HTTP1)
            wire.filter_chains.append(manager.chain("http", [client]))
        case Http2() | Grpc():
            client = manager.client_side(wire.name, manager.HTTP2)
            wire.filter_chains.append(manager.chain("http", [client]))
        case Tcp() | Tls():
            pass
    if not raw and isinstance(found.protocol, Detect | Tcp | Tls):
        raw = [Raw((manager.refuse(),), (names.REFUSED,), "")]
    for one in raw:
        wire.default_filter_chain.CopyFrom(manager.chain("tcp", one.filters, labels=one.labels))


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
    labels = stats.joined(stats.parent_labels(None, 0), ("", "default", "", "endpoint"))
    carry = manager.carry("outbound", [(to, 1)], stats.OUTBOUND_TCP)
    filters = (carry,) if linkerd else (manager.SPEAKS_RAW, carry)
    raw = Raw(filters, (to,), labels)
    if said.opaque:
        wire.default_filter_chain.CopyFrom(manager.chain("tcp", raw.filters, labels=raw.labels))
    else:
        _chains(wire, _direct(to), [raw])
        wire.filter_chains[0].filters[0].CopyFrom(manager.client_side(to))
    return resource(wire, wire.name, clusters=[to], origin=_origin(endpoint))


def _direct(name: str) -> Outbound:
    return Outbound(None, Default(name), 0, Detect(DETECT_TIMEOUT))


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
        Default("endpoint"),
        matches=(HttpMatch(),),
        backends=(OriginalDst(Default("endpoint")),),
        spread=Spread.FIRST,
    )
    route = HttpRoute(Default("endpoint"), rules=(everything,))
    wire = routes.configuration(name, routes.Parent(None, 0), [route])
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


@query
def detect_listener(db: View, cluster: str) -> Resource:
    """What no other listener is for: unmeshed destinations pass, addresses of Services do not."""
    wire = pb.Listener(
        name=names.DETECT,
        internal_listener=pb.Listener.InternalListenerConfig(),
        listener_filters=[manager.ORIGINAL_DST, manager.SEE_HTTP],
        listener_filters_timeout=manager.limit(DETECT_TIMEOUT),
        continue_on_listener_filters_timeout=True,
        traffic_direction=base.OUTBOUND,
        filter_chains=_detected(refused_networks(db, cluster)),
    )
    labels = stats.joined(stats.parent_labels(None, 0), stats.route_labels(UNMESHED))
    carry = manager.carry("outbound", [(names.PASSTHROUGH, 1)], stats.OUTBOUND_TCP)
    wire.default_filter_chain.CopyFrom(manager.chain("tcp", [carry], labels=labels))
    return resource(wire, wire.name, clusters=[names.PASSTHROUGH, names.REFUSED])


def _detected(networks: Iterable[str]) -> Iterator[component.FilterChain]:
    for port in OWN_PORTS:
        match = component.FilterChainMatch(destination_port=UInt32Value(value=port))
        yield manager.chain(f"own-{port}", [manager.refuse()], match)
    ranges: list[address.CidrRange] = [rbac.cidr_range(each) for each in networks]
    if ranges:
        match = component.FilterChainMatch(prefix_ranges=ranges)
        yield manager.chain("refused", [manager.refuse()], match)
    match = component.FilterChainMatch(application_protocols=manager.PLAINTEXT_HTTP)
    passing = routes.passthrough(UNMESHED)
    yield manager.chain("http", [manager.client_side(passing)], match)
