"""What Envoy cannot be told of an Outbound: a condition on the object, never silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.dialects.envoy import filters, routes
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Source
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.queries import (
    GATEWAY_PROTOCOL,
    ObjectKey,
    Protocol,
    accrues_by_rate,
    answerers,
    gateway_protocol,
    load_bias,
    mirrored,
    outbound,
)

DIALECT: Final = "envoy"


@query
def faults(db: View, name: OutboundName) -> tuple[Unsupported, ...]:
    """What sidecars are not told of a Service's port, in order, each once."""
    found = outbound(db, name)
    service = ObjectKey(name.parent.cluster, name.parent.namespace, name.parent.name)
    return tuple(dict.fromkeys((*_of_service(db, service, found), *_of_routes(found))))


def _of_service(db: View, service: ObjectKey, found: Outbound) -> Iterator[Unsupported]:
    if accrues_by_rate(db, service):
        yield _fault(
            found.source, "failure accrual by success rate", "only failures in a row count"
        )
    if load_bias(db, service) is not None:
        yield _fault(found.source, "load bias", "endpoints are chosen by their open requests")
    mirror = mirrored(db, service)
    if mirror is not None:
        yield from _of_gateway(db, mirror.service, found)
        return
    who = answerers(db, service, found.port)
    if who.opaque_linkerd:
        detail = "opaque ports behind linkerd2-proxy take mesh TLS only with its transport header"
        yield _fault(found.source, "mesh TLS to opaque ports of linkerd2-proxy", detail)
    if who.gateways:
        detail = "a gateway that is told names in linkerd's transport header is left out"
        yield _fault(found.source, "linkerd gateways", detail)


def _of_gateway(db: View, remote: ObjectKey, found: Outbound) -> Iterator[Unsupported]:
    """A Service behind a gateway: of the three kinds of proxies, all must be of one mind."""
    if gateway_protocol(db, remote.cluster) is Protocol.LINKERD:
        detail = f"the gateway of {remote.cluster} is told names in linkerd's transport header"
        yield _fault(found.source, GATEWAY_PROTOCOL, detail)
    elif answerers(db, remote, found.port).linkerd:
        detail = f"pods of {remote.cluster} behind linkerd2-proxy are not reached by server name"
        yield _fault(found.source, GATEWAY_PROTOCOL, detail)


def _of_routes(found: Outbound) -> Iterator[Unsupported]:
    for route in routes.http_routes(found):
        for rule in route.rules:
            for feature in filters.unsaid(rule.filters):
                yield _fault(rule.source, feature)
            limits = rule.timeouts
            if limits.request and limits.response:
                detail = "the shorter one counts, from the end of the request on"
                yield _fault(rule.source, "request and response timeouts together", detail)


def _fault(source: Source, feature: str, detail: str = "") -> Unsupported:
    return Unsupported(source, feature, DIALECT, detail)
