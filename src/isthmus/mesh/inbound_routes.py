"""Routes on Servers: HTTPRoutes of both groups and GRPCRoutes that name one as a parent.

A route counts where its Server is: in its own namespace, named without port or section. What of
it a proxy cannot do answers for itself (see `matches`), so that nothing passes unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from isthmus.engine import View, query
from isthmus.ir.inbound import (
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
)
from isthmus.ir.names import Origin, Ref
from isthmus.mesh import matches
from isthmus.mesh.authorization import route_grants
from isthmus.mesh.matches import Fault
from isthmus.mesh.policy_tables import SERVERS
from isthmus.mesh.routes import (
    BY_KIND,
    GRPC,
    HTTP,
    POLICY_API,
    SERVER,
    ParentPort,
    key_of,
    naming,
    parents,
    service_key,
)
from isthmus.model.key import ObjectKey

# ------------------------------------------------------------------------ what is attached


@query
def http_routes_on(db: View, server: ObjectKey) -> tuple[InboundRoute, ...]:
    """The HTTPRoutes on a Server, the oldest first, each with what is granted on it."""
    found = (inbound_http(db, ref) for ref in routes_on(db, server) if ref.kind == HTTP.kind)
    return tuple(one for one in found if one is not None)


@query
def grpc_routes_on(db: View, server: ObjectKey) -> tuple[InboundGrpcRoute, ...]:
    """The GRPCRoutes on a Server, the oldest first, each with what is granted on it."""
    found = (inbound_grpc(db, ref) for ref in routes_on(db, server) if ref.kind == GRPC.kind)
    return tuple(one for one in found if one is not None)


@query
def routes_on(db: View, server: ObjectKey) -> tuple[Ref, ...]:
    """The routes that a Server takes, by age, then name, then group (Linkerd's order)."""
    parent = Ref(server.cluster, POLICY_API, SERVER, server.namespace, server.name)
    found = [
        (age, ref.name, ref.group, ref)
        for ref in naming(db, parent)
        if (age := route_age(db, ref)) is not None
    ]
    return tuple(ref for *_, ref in sorted(found, key=lambda one: one[:3]))


@query
def route_age(db: View, route: Ref) -> tuple[bool, str] | None:
    """When a usable route was created, those that do not say so last; None if it is not usable."""
    row = _row(db, route)
    if row is None or any(unusable(route, one) for one in _servers(db, route)):
        return None
    created: str = row.metadata.creation_timestamp
    return (not created, created)


def _row(db: View, route: Ref) -> Any:  # noqa: ANN401  # a route of several kinds
    return BY_KIND[route.group, route.kind].table.get(db, key_of(route))


def _servers(db: View, route: Ref) -> Iterator[ParentPort]:
    return (one for one in parents(db, route) if (one.group, one.kind) == (POLICY_API, SERVER))


def unusable(route: Ref, parent: ParentPort) -> str:
    """Why a parent that is a Server makes the whole route mean nothing to Servers; "" if not."""
    if parent.namespace != route.namespace:
        return "a Server must be in the route's own namespace"
    if parent.port or parent.section:
        return "a Server is one port: its parentRef may have neither port nor sectionName"
    return ""


@query
def refused_by_server(db: View, route: Ref, parent: ParentPort) -> str:
    """Why a route is not accepted by a parent that is a Server; "" if it is (decision 14)."""
    why = unusable(route, parent)
    if why:
        return why
    found = SERVERS.get(db, service_key(parent)) is not None
    return "" if found else f"there is no Server {parent.name}"


# ---------------------------------------------------------------------------- one by one


@query
def inbound_http(db: View, route: Ref) -> InboundRoute | None:
    """An HTTPRoute as a server's proxy reads it; a rule that matches nothing is left out."""
    row = _row(db, route)
    if row is None:
        return None
    rules = [
        InboundRule(found, matches.rule_filters(rule.filters))
        for rule in row.spec.rules
        if (found := matches.http_matches(rule))
    ]
    hosts = matches.hosts(row.spec.hostnames)
    return InboundRoute(Origin(route), hosts, tuple(rules), route_grants(db, route))


@query
def inbound_grpc(db: View, route: Ref) -> InboundGrpcRoute | None:
    """A GRPCRoute as a server's proxy reads it; a rule that matches nothing is left out."""
    row = _row(db, route)
    if row is None:
        return None
    rules = [
        InboundGrpcRule(found, matches.rule_filters(rule.filters))
        for rule in row.spec.rules
        if (found := matches.grpc_matches(rule))
    ]
    hosts = matches.hosts(row.spec.hostnames)
    return InboundGrpcRoute(Origin(route), hosts, tuple(rules), route_grants(db, route))


@query
def inbound_route_faults(db: View, route: Ref) -> tuple[Fault, ...]:
    """What of a route on a Server is left out or answers for itself, for conditions."""
    row = _row(db, route)
    if row is None:
        return ()
    named = parents(db, route)
    only = all((one.group, one.kind) == (POLICY_API, SERVER) for one in named)
    return tuple(_faults(row.spec.rules, only=only))


def _faults(rules: Iterable[Any], *, only: bool) -> Iterator[Fault]:
    """`only`: the route is for nothing but Servers, so that it needs no backends."""
    for at, rule in enumerate(rules):
        path = f"rules[{at}]"
        yield from matches.match_faults(rule, path)
        yield from matches.filter_faults(rule.filters, f"{path}.filters")
        for number, one in enumerate(rule.filters):
            if one.type == "RequestMirror":
                said = "no copies are made of requests that have arrived"
                yield Fault(f"{path}.filters[{number}]", said)
        if only and rule.backend_refs:
            said = "requests that have arrived go to the workload, not to a backend"
            yield Fault(f"{path}.backendRefs", said)
