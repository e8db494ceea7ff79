"""Routes as clients' proxies are told of them: one cell per route, parent and port.

So an edit of one route makes one route anew, however many others its parent has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from isthmus.engine import View, query
from isthmus.ir.names import Origin, Ref
from isthmus.ir.outbound import GrpcRoute, GrpcRule, HttpRoute, HttpRule, TcpRoute, TlsRoute
from isthmus.ir.rules import RuleFilter
from isthmus.mesh.destinations import Home, Sending, destinations, mirror_target
from isthmus.mesh.limits import grpc_retry, http_retry, timeouts
from isthmus.mesh.matches import grpc_matches, hosts, http_matches, rule_filters
from isthmus.mesh.routes import BY_KIND, GRPC_ROUTES, TCP_ROUTES, TLS_ROUTES, key_of
from isthmus.model import gateway as rows
from isthmus.model.gateway import Filter, StreamRule


class RouteAt(NamedTuple):
    """A route as a port of one of its parents has it."""

    route: Ref
    parent: Ref
    port: int


def _home(at: RouteAt) -> Home:
    return Home(at.route.namespace, at.parent, at.port)


def _filters(db: View, filters: Iterable[Filter], at: RouteAt) -> tuple[RuleFilter, ...]:
    return rule_filters(filters, lambda ref: mirror_target(db, ref, _home(at)))


def rule_path(index: int) -> str:
    """Where in a route a rule stands."""
    return f"rules[{index}]"


# ------------------------------------------------------------------------------------ HTTP


@query
def http_route(db: View, at: RouteAt) -> HttpRoute:
    """An HTTPRoute of either group. A rule none of whose matches is understood is left out."""
    row = BY_KIND[at.route.group, at.route.kind].table.get(db, key_of(at.route))
    if row is None:
        return HttpRoute(Origin(at.route))
    rules = map(partial(_http_rule, db, at, row), range(len(row.spec.rules)))
    return HttpRoute(
        Origin(at.route), hosts(row.spec.hostnames), tuple(one for one in rules if one.matches)
    )


def _http_rule(db: View, at: RouteAt, row: rows.HttpRoute, index: int) -> HttpRule:
    rule, said = row.spec.rules[index], row.metadata.annotations
    sending = destinations(db, rule.backend_refs, _home(at))
    return HttpRule(
        Origin(at.route, rule_path(index)),
        matches=http_matches(rule),
        filters=_filters(db, rule.filters, at),
        backends=sending.backends,
        spread=sending.spread,
        timeouts=timeouts(db, said, at.parent, rule.timeouts),
        retry=http_retry(db, said, at.parent, rule.retry),
    )


# ------------------------------------------------------------------------------------ gRPC


@query
def grpc_route(db: View, at: RouteAt) -> GrpcRoute:
    """A GRPCRoute. A rule none of whose matches is understood is left out."""
    row = GRPC_ROUTES.get(db, key_of(at.route))
    if row is None:
        return GrpcRoute(Origin(at.route))
    rules = map(partial(_grpc_rule, db, at, row), range(len(row.spec.rules)))
    return GrpcRoute(
        Origin(at.route), hosts(row.spec.hostnames), tuple(one for one in rules if one.matches)
    )


def _grpc_rule(db: View, at: RouteAt, row: rows.GrpcRoute, index: int) -> GrpcRule:
    rule, said = row.spec.rules[index], row.metadata.annotations
    sending = destinations(db, rule.backend_refs, _home(at))
    return GrpcRule(
        Origin(at.route, rule_path(index)),
        matches=grpc_matches(rule),
        filters=_filters(db, rule.filters, at),
        backends=sending.backends,
        spread=sending.spread,
        timeouts=timeouts(db, said, at.parent),
        retry=grpc_retry(db, said, at.parent),
    )


# ------------------------------------------------------------------------- whole connections


@query
def tls_route(db: View, at: RouteAt) -> TlsRoute:
    """A TLSRoute: its one rule."""
    row = TLS_ROUTES.get(db, key_of(at.route))
    if row is None:
        return TlsRoute(Origin(at.route))
    sending = _stream(db, row.spec.rules, at)
    return TlsRoute(
        Origin(at.route),
        hosts(row.spec.hostnames),
        backends=sending.backends,
        spread=sending.spread,
    )


@query
def tcp_route(db: View, at: RouteAt) -> TcpRoute:
    """A TCPRoute: its one rule."""
    row = TCP_ROUTES.get(db, key_of(at.route))
    if row is None:
        return TcpRoute(Origin(at.route))
    sending = _stream(db, row.spec.rules, at)
    return TcpRoute(Origin(at.route), backends=sending.backends, spread=sending.spread)


def _stream(db: View, rules: tuple[StreamRule, ...], at: RouteAt) -> Sending:
    """Of several rules, which only old versions may have, the first counts."""
    refs = rules[0].backend_refs if rules else ()
    return destinations(db, refs, _home(at))
