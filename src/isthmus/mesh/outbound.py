"""Outbound: what a client's proxy does with connections to a port of a Service or EgressNetwork.

One cell per parent, port and class of askers, shared by all proxies of that class. Without routes
there are default ones, as Linkerd has them: `http` for requests and `opaq` for raw connections to a
Service; to an EgressNetwork one that lets pass or refuses, behind all routes.
"""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Default, Origin, Ref
from isthmus.ir.outbound import (
    Cidr,
    Detect,
    EveryNamespace,
    Grpc,
    GrpcRoute,
    GrpcRule,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    OneNamespace,
    Outbound,
    Protocol,
    Spread,
    Tcp,
    TcpRoute,
    Tls,
    TlsRoute,
    Vip,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import Fail, Forbid, HttpMatch, Match, PathMatch
from isthmus.ir.target import OriginalDst
from isthmus.mesh.attachment import Served, classed, served
from isthmus.mesh.destinations import by_default
from isthmus.mesh.egress import allows, annotated_opaque_ports, blocks, opaque_ports
from isthmus.mesh.limits import parent_grpc_retry, parent_http_retry, parent_timeouts
from isthmus.mesh.opaque import OfService, opaque, service_opaque_ports
from isthmus.mesh.routes import EGRESS_NETWORK, SERVICE, key_of
from isthmus.mesh.routing import RouteAt, grpc_route, http_route, tcp_route, tls_route
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.tables import SERVICES
from isthmus.mesh.targets import vips
from isthmus.model.key import ObjectKey

DETECT_TIMEOUT: Final = 10_000
"""Milliseconds that a client may take to show what it speaks (Linkerd's)."""

HTTP: Final = Default("http")
OPAQUE: Final = Default("opaq")
UNDEFINED: Final = Default("undefined-port")

UNMANAGED: Final = Default("egress-fallback")
"""What leaves the cluster and belongs to no EgressNetwork that its client sees."""

INSIDE: Final = Default("fallback")
"""Addresses of the cluster that are no Service's."""

DENIED: Final = "traffic not allowed"
_PERMISSION_DENIED: Final = 7

_EVERY: Final = (HttpMatch(path=PathMatch(Match.PREFIX, "/")),)
_HTTP1: Final = ("http", "kubernetes.io/ws")
_HTTP2: Final = ("kubernetes.io/h2c", "grpc")


def parent_ref(service: ObjectKey) -> Ref:
    """A Service as the parent of routes."""
    return Ref(service.cluster, "", SERVICE, service.namespace, service.name)


def parent_key(parent: Ref) -> ObjectKey:
    """Where the parent is found."""
    return key_of(parent)


@query
def outbound(db: View, name: OutboundName) -> Outbound:
    """What clients of a namespace do with connections to a port of a parent.

    A port that a Service does not declare is refused, and so is one of a Service that is gone. Port
    0 of an EgressNetwork stands for all that no route speaks of.
    """
    own = classed(db, name)
    if own != name:
        return outbound(db, own)
    if name.parent.kind == EGRESS_NETWORK:
        return _to_network(db, name)
    return _to_service(db, name)


def _audience(name: OutboundName) -> EveryNamespace | OneNamespace:
    return OneNamespace(name.namespace) if name.namespace else EveryNamespace()


@query
def route_names(db: View, name: OutboundName) -> tuple[RouteAt, ...]:
    """The routes among those of an Outbound with HTTP or gRPC, in its order; defaults follow them.

    By these names what is made of single routes can be kept (`http_route`, `grpc_route`).
    """
    own = classed(db, name)
    routes = served(db, own)
    refs: tuple[Ref, ...] = ()
    match outbound(db, own).protocol:
        case Grpc():
            refs = routes.grpc
        case Http1() | Http2() | Detect():
            refs = routes.http
        case Tcp() | Tls():
            pass
    return tuple(RouteAt(ref, name.parent, name.port) for ref in refs)


# --------------------------------------------------------------------------------- Services


def _to_service(db: View, name: OutboundName) -> Outbound:
    service, source = key_of(name.parent), Origin(name.parent, port=name.port)
    if port_state(db, service, name.port) is not PortState.DECLARED:
        return Outbound(name.parent, source, name.port, Tcp((_undefined(),)))
    return Outbound(
        parent=name.parent,
        source=source,
        port=name.port,
        protocol=_service_protocol(db, name, served(db, name)),
        audience=_audience(name),
        fronts=tuple(Vip(ip, name.port) for ip in vips(db, service)),
    )


def _undefined() -> TcpRoute:
    return TcpRoute(UNDEFINED, filters=(Forbid("undefined port"),), spread=Spread.NONE)


def _service_protocol(db: View, name: OutboundName, routes: Served) -> Protocol:
    """Declared, by the port or by the most specific kind of routes; else looked for."""
    said = app_protocol(db, key_of(name.parent), name.port)
    if _opaque(db, name, routes, said):
        return Tcp(_tcp(db, name, routes))
    if said in _HTTP1:
        return Http1(_http(db, name, routes))
    if routes.grpc:
        return Grpc(_grpc(db, name, routes))
    if said in _HTTP2:
        return Http2(_http(db, name, routes))
    if routes.http:
        return Detect(DETECT_TIMEOUT, _http(db, name, routes), tcp=(_raw(db, name),))
    if routes.tls:
        return Tls(_tls(db, name, routes))
    if routes.tcp:
        return Tcp(_tcp(db, name, routes))
    return Detect(DETECT_TIMEOUT, _http(db, name, routes), tcp=(_raw(db, name),))


def _opaque(db: View, name: OutboundName, routes: Served, said: str) -> bool:
    """Whether a Service's port is opaque for these clients: their own routes declare it for them.

    What the producers' routes declare is known to `opaque` itself.
    """
    service = key_of(name.parent)
    if not opaque(db, OfService(service, name.port)):
        return False
    by_default_only = not said and service_opaque_ports(db, service) is None
    return not (by_default_only and _declared(routes))


def _declared(routes: Served) -> bool:
    return bool(routes.grpc or routes.http or routes.tls)


def _http(db: View, name: OutboundName, routes: Served) -> tuple[HttpRoute, ...]:
    """The HTTPRoutes; without any, all requests to the Service itself."""
    found = tuple(http_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.http)
    return found or (_requests(db, name),)


def _grpc(db: View, name: OutboundName, routes: Served) -> tuple[GrpcRoute, ...]:
    return tuple(grpc_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.grpc)


def _tls(db: View, name: OutboundName, routes: Served) -> tuple[TlsRoute, ...]:
    return tuple(tls_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.tls)


def _tcp(db: View, name: OutboundName, routes: Served) -> tuple[TcpRoute, ...]:
    """The first TCPRoute alone: there is nothing by which connections could be told apart."""
    found = tuple(tcp_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.tcp[:1])
    return found or (_raw(db, name),)


def _requests(db: View, name: OutboundName) -> HttpRoute:
    sending = by_default(db, name.parent, name.port)
    rule = HttpRule(
        HTTP,
        matches=_EVERY,
        backends=sending.backends,
        spread=sending.spread,
        timeouts=parent_timeouts(db, name.parent),
        retry=parent_http_retry(db, name.parent),
    )
    return HttpRoute(HTTP, rules=(rule,))


def _raw(db: View, name: OutboundName) -> TcpRoute:
    sending = by_default(db, name.parent, name.port)
    return TcpRoute(OPAQUE, backends=sending.backends, spread=sending.spread)


@query
def app_protocol(db: View, service: ObjectKey, port: int) -> str:
    """The `appProtocol` of a Service's port in lower case, "" without one. TCP before UDP."""
    row = SERVICES.get(db, service)
    found = [each for each in row.spec.ports if each.port == port] if row is not None else []
    found.sort(key=lambda each: each.protocol != "TCP")
    return found[0].app_protocol.lower() if found else ""


# --------------------------------------------------------------------------- EgressNetworks


def _to_network(db: View, name: OutboundName) -> Outbound:
    network = key_of(name.parent)
    return Outbound(
        parent=name.parent,
        source=Origin(name.parent, port=name.port),
        port=name.port,
        protocol=_network_protocol(db, name, served(db, name)),
        audience=_audience(name),
        fronts=tuple(Cidr(one.cidr, one.excepts, name.port) for one in blocks(db, network)),
    )


def _network_protocol(db: View, name: OutboundName, routes: Served) -> Protocol:
    """As of a Service's port, with the default behind all routes instead of for want of them."""
    if _network_opaque(db, name, routes):
        return Tcp(_tcp_out(db, name, routes))
    if routes.grpc:
        return Grpc((*_grpc(db, name, routes), _calls_out(db, name)))
    if routes.http:
        return _detect_out(db, name, routes)
    if routes.tls:
        return Tls((*_tls(db, name, routes), _tls_out(db, name)))
    if routes.tcp:
        return Tcp(_tcp_out(db, name, routes))
    return _detect_out(db, name, routes)


def _network_opaque(db: View, name: OutboundName, routes: Served) -> bool:
    network = key_of(name.parent)
    listed = annotated_opaque_ports(db, network)
    if listed is not None:
        return listed.holds(name.port)
    return opaque_ports(db, network).holds(name.port) and not _declared(routes)


def _detect_out(db: View, name: OutboundName, routes: Served) -> Detect:
    http = tuple(http_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.http)
    return Detect(
        DETECT_TIMEOUT, (*http, _requests_out(db, name)), tcp=(_connections_out(db, name),)
    )


def _tcp_out(db: View, name: OutboundName, routes: Served) -> tuple[TcpRoute, ...]:
    found = tuple(tcp_route(db, RouteAt(ref, name.parent, name.port)) for ref in routes.tcp[:1])
    return found or (_connections_out(db, name),)


def _word(db: View, name: OutboundName, protocol: str) -> tuple[Default, bool]:
    """The name of a default route, and whether it lets pass."""
    allowed = allows(db, key_of(name.parent))
    return Default(f"{protocol}-egress-{'allow' if allowed else 'deny'}"), allowed


def _requests_out(db: View, name: OutboundName) -> HttpRoute:
    source, allowed = _word(db, name, "http")
    rule = HttpRule(
        source,
        matches=_EVERY,
        filters=() if allowed else (Fail(403, _PERMISSION_DENIED, DENIED),),
        backends=(OriginalDst(Origin(name.parent, port=name.port)),),
        spread=Spread.FIRST,
        timeouts=parent_timeouts(db, name.parent),
        retry=parent_http_retry(db, name.parent),
    )
    return HttpRoute(source, rules=(rule,))


def _calls_out(db: View, name: OutboundName) -> GrpcRoute:
    source, allowed = _word(db, name, "grpc")
    rule = GrpcRule(
        source,
        filters=() if allowed else (Fail(403, _PERMISSION_DENIED, DENIED),),
        backends=(OriginalDst(Origin(name.parent, port=name.port)),),
        spread=Spread.FIRST,
        timeouts=parent_timeouts(db, name.parent),
        retry=parent_grpc_retry(db, name.parent),
    )
    return GrpcRoute(source, rules=(rule,))


def _tls_out(db: View, name: OutboundName) -> TlsRoute:
    source, allowed = _word(db, name, "tls")
    return TlsRoute(
        source,
        filters=() if allowed else (Forbid(DENIED),),
        backends=(OriginalDst(Origin(name.parent, port=name.port)),),
        spread=Spread.FIRST,
    )


def _connections_out(db: View, name: OutboundName) -> TcpRoute:
    source, allowed = _word(db, name, "tcp")
    return TcpRoute(
        source,
        filters=() if allowed else (Forbid(DENIED),),
        backends=(OriginalDst(Origin(name.parent, port=name.port)),),
        spread=Spread.FIRST,
    )


def unmanaged(source: Default, port: int) -> Outbound:
    """Connections to where no object speaks of: as they come, to where they were going."""
    backends = (OriginalDst(source),)
    rule = HttpRule(source, matches=(HttpMatch(),), backends=backends, spread=Spread.FIRST)
    raw = TcpRoute(source, backends=backends, spread=Spread.FIRST)
    protocol = Detect(DETECT_TIMEOUT, (HttpRoute(source, rules=(rule,)),), tcp=(raw,))
    return Outbound(None, source, port, protocol)
