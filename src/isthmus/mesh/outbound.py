"""Outbound: what a client's proxy does with connections to a port of a Service.

One cell per Service, port and class of askers, shared by all proxies of that class. Without routes
there is a default one, as Linkerd has it: `http` for requests, `opaq` for raw connections.
"""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Default, Origin, Ref
from isthmus.ir.outbound import (
    Detect,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    Outbound,
    Protocol,
    Spread,
    Tcp,
    TcpRoute,
    Vip,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import Forbid, HttpMatch, Match, PathMatch, Retry, Timeouts
from isthmus.mesh.backends import service_backends
from isthmus.mesh.opaque import OfService, opaque
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.tables import SERVICES
from isthmus.mesh.targets import vips
from isthmus.model.annotations import Problem
from isthmus.model.annotations import http_retry as parse_retry
from isthmus.model.annotations import timeouts as parse_timeouts
from isthmus.model.key import ObjectKey

DETECT_TIMEOUT: Final = 10_000
"""Milliseconds that a client may take to show what it speaks (Linkerd's)."""

HTTP: Final = Default("http")
OPAQUE: Final = Default("opaq")
UNDEFINED: Final = Default("undefined-port")

_EVERY: Final = (HttpMatch(path=PathMatch(Match.PREFIX, "/")),)
_HTTP1: Final = ("http", "kubernetes.io/ws")
_HTTP2: Final = ("kubernetes.io/h2c", "grpc")


def parent_ref(service: ObjectKey) -> Ref:
    """A Service as the parent of routes."""
    return Ref(service.cluster, "", "Service", service.namespace, service.name)


def parent_key(parent: Ref) -> ObjectKey:
    """Where the parent is found."""
    return ObjectKey(parent.cluster, parent.namespace, parent.name)


@query
def outbound(db: View, name: OutboundName) -> Outbound:
    """What clients of a namespace do with connections to a port of a Service.

    A port that the Service does not declare is refused, and so is one of a Service that is gone.
    """
    service = parent_key(name.parent)
    source = Origin(name.parent, port=name.port)
    if port_state(db, service, name.port) is not PortState.DECLARED:
        return Outbound(name.parent, source, name.port, Tcp((_undefined(),)))
    return Outbound(
        parent=name.parent,
        source=source,
        port=name.port,
        protocol=_protocol(db, service, name.port),
        fronts=tuple(Vip(ip, name.port) for ip in vips(db, service)),
    )


def _undefined() -> TcpRoute:
    return TcpRoute(UNDEFINED, filters=(Forbid("undefined port"),), spread=Spread.NONE)


def _protocol(db: View, service: ObjectKey, port: int) -> Protocol:
    tcp = (_raw(db, service, port),)
    if opaque(db, OfService(service, port)):
        return Tcp(tcp)
    http = (_requests(db, service, port),)
    match app_protocol(db, service, port):
        case word if word in _HTTP1:
            return Http1(http)
        case word if word in _HTTP2:
            return Http2(http)
        case _:
            return Detect(DETECT_TIMEOUT, http, tcp=tcp)


def _requests(db: View, service: ObjectKey, port: int) -> HttpRoute:
    rule = HttpRule(
        HTTP,
        matches=_EVERY,
        backends=service_backends(db, service, port),
        spread=Spread.FIRST,
        timeouts=timeouts(db, service),
        retry=http_retry(db, service),
    )
    return HttpRoute(HTTP, rules=(rule,))


def _raw(db: View, service: ObjectKey, port: int) -> TcpRoute:
    return TcpRoute(OPAQUE, backends=service_backends(db, service, port), spread=Spread.FIRST)


# ---------------------------------------------------------------------- what a Service says


@query
def app_protocol(db: View, service: ObjectKey, port: int) -> str:
    """The `appProtocol` of a Service's port in lower case, "" without one. TCP before UDP."""
    row = SERVICES.get(db, service)
    found = [each for each in row.spec.ports if each.port == port] if row is not None else []
    found.sort(key=lambda each: each.protocol != "TCP")
    return found[0].app_protocol.lower() if found else ""


@query
def timeouts(db: View, service: ObjectKey) -> Timeouts:
    """The limits that the Service's annotations set; none where they are not understood."""
    row = SERVICES.get(db, service)
    found = parse_timeouts(row.metadata.annotations) if row is not None else None
    if found is None or isinstance(found, Problem):
        return Timeouts()
    return Timeouts(found.request or None, None, found.response or None, found.idle or None)


@query
def http_retry(db: View, service: ObjectKey) -> Retry | None:
    """The retry that the Service's annotations ask for, if it is understood."""
    row = SERVICES.get(db, service)
    found = parse_retry(row.metadata.annotations) if row is not None else None
    if found is None or isinstance(found, Problem):
        return None
    return Retry(found.limit, found.statuses, attempt_timeout=found.timeout)
