"""What Envoy cannot be told of an Outbound: a condition on the object, never silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isthmus.dialects.envoy import filters, routes
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Origin, Source
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.ir.target import To
from isthmus.mesh.queries import (
    GATEWAY_PROTOCOL,
    ObjectKey,
    Place,
    ProfileKey,
    Protocol,
    ServiceHost,
    accrual,
    accrues_by_rate,
    answerers,
    egress_place,
    gateway_protocol,
    load_bias,
    mirrored,
    opaque_somewhere,
    outbound,
    profile,
)

DIALECT: Final = "envoy"


@query
def faults(db: View, name: OutboundName) -> tuple[Unsupported, ...]:
    """What sidecars are not told of a port of a Service or EgressNetwork, in order, each once."""
    found = outbound(db, name)
    parent = ObjectKey(name.parent.cluster, name.parent.namespace, name.parent.name)
    own: Iterable[Unsupported]
    if name.parent.kind == "EgressNetwork":
        own = _of_network(db, parent, name.namespace, found)
    else:
        own = (*_of_service(db, parent, found), *_of_profile(db, parent, name))
    return tuple(dict.fromkeys((*own, *_of_routes(found), *_of_backends(db, found))))


def _of_profile(db: View, service: ObjectKey, name: OutboundName) -> Iterator[Unsupported]:
    said = profile(db, ProfileKey(ServiceHost(service), name.port, name.namespace))
    if said.routes and said.profile is not None:
        detail = "Gateway API routes are followed instead"
        yield _fault(Origin(said.profile), "routes of ServiceProfiles", detail)


def _of_network(
    db: View, network: ObjectKey, namespace: str, found: Outbound
) -> Iterator[Unsupported]:
    where = egress_place(db, Place(network.cluster, namespace))
    if opaque_somewhere(db, network, where):
        detail = "ports that are opaque at one EgressNetwork of several are looked at"
        yield _fault(found.source, "opaque ports", detail)


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


def _of_backends(db: View, found: Outbound) -> Iterator[Unsupported]:
    """Endpoints of other Services rest by what those say themselves, not by what the parent says.

    linkerd2-proxy takes the parent's word for all backends of its routes.
    """
    if found.parent is None or found.parent.kind != "Service":
        return
    parent = ObjectKey(found.parent.cluster, found.parent.namespace, found.parent.name)
    if accrual(db, parent) is None:
        return
    backends = (
        one
        for route in routes.http_routes(found)
        for rule in route.rules
        for one in rule.backends
        if isinstance(one, To) and isinstance(one.source, Origin)
    )
    if any(one.source != found.source and one.target.ejection is None for one in backends):
        detail = "endpoints of other Services rest as those Services say"
        yield _fault(found.source, "failure accrual of backends", detail)


def _fault(source: Source, feature: str, detail: str = "") -> Unsupported:
    return Unsupported(source, feature, DIALECT, detail)
