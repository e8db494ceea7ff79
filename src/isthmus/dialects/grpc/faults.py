"""What gRPC itself cannot be told, as a client and as a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.dialects.grpc.clients import http_routes
from isthmus.dialects.grpc.servers import attached
from isthmus.dialects.grpc.tls import joins
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.inbound import Inbound
from isthmus.ir.names import Source
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import InboundName, OutboundName
from isthmus.ir.target import Target, To, Via
from isthmus.ir.target import Tls as TlsMode
from isthmus.mesh.queries import GATEWAY_PROTOCOL, inbound, outbound

DIALECT: Final = "grpc"


@query
def faults(db: View, name: OutboundName) -> tuple[Unsupported, ...]:
    """What gRPC clients are not told of a Service's port, in order, each once."""
    return tuple(dict.fromkeys(_faults(outbound(db, name))))


def _faults(found: Outbound) -> Iterator[Unsupported]:
    if not http_routes(found):
        yield _fault(found.source, "ports that are no HTTP")
    for route in http_routes(found):
        for rule in route.rules:
            if rule.filters:
                yield _fault(rule.source, "filters")
            if rule.timeouts.idle or rule.timeouts.attempt:
                yield _fault(rule.source, "timeouts of silence and of one attempt")
            if rule.retry is not None and not rule.retry.grpc:
                yield _fault(rule.source, "retries by HTTP status")
            targets = [one for one in rule.backends if isinstance(one, To)]
            if len(targets) < len(rule.backends):
                yield _fault(rule.source, "backends that answer by themselves")
            if any(one.target.ejection is not None for one in targets):
                yield _fault(rule.source, "failure accrual")
            meshed = [one.target for one in targets if one.target.tls is TlsMode.MESH]
            if not all(map(joins, meshed)):
                detail = "not all are behind our own sidecars here: calls to them are plaintext"
                yield _fault(rule.source, "mesh TLS", detail)
            if any(one.via is Via.REMOTE_GATEWAY for each in targets for one in _all(each)):
                yield _fault(rule.source, GATEWAY_PROTOCOL, "gateways forward nothing but mesh TLS")


def _all(one: To) -> tuple[Target, ...]:
    return (one.target, *one.failover)


@query
def inbound_faults(db: View, name: InboundName) -> tuple[Unsupported, ...]:
    """What a server without a proxy does not do on a port as it is written."""
    return tuple(dict.fromkeys(_inbound(inbound(db, name))))


def _inbound(found: Inbound) -> Iterator[Unsupported]:
    if found.rate_limit is not None:
        yield _fault(found.rate_limit.source, "rate limits")
    for route in attached(found):
        for rule in route.rules:
            if rule.filters:
                detail = "headers stay as they are; what would be answered otherwise is refused"
                yield _fault(route.source, "filters", detail)


def _fault(source: Source, feature: str, detail: str = "") -> Unsupported:
    return Unsupported(source, feature, DIALECT, detail)
