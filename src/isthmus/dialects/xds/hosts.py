"""Virtual hosts: which routes count for which host, and in which order Envoy is to try them.

Envoy takes the virtual host that fits best, and in it the first route that matches. So each host
that some route names gets the routes that are for it, all their matches by the specification's rank
(`ir.precedence`): host first, then match, then the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, assert_never

from isthmus.ir.hosts import ANY_HOST, HostRank, host_rank
from isthmus.ir.inbound import InboundGrpcRoute, InboundGrpcRule, InboundRoute, InboundRule
from isthmus.ir.names import AnyHost, Exact, Host, Suffix
from isthmus.ir.outbound import GrpcRoute, GrpcRule, HttpRoute, HttpRule
from isthmus.ir.precedence import GrpcRank, HttpRank, grpc_rank, http_rank
from isthmus.ir.rules import GrpcMatch, HttpMatch

Route = HttpRoute | GrpcRoute | InboundRoute | InboundGrpcRoute
Rule = HttpRule | GrpcRule | InboundRule | InboundGrpcRule


class Way(NamedTuple):
    """One match of one rule."""

    route: Route
    rule: Rule
    match: HttpMatch | GrpcMatch


def by_host(routes: Sequence[Route]) -> Iterator[tuple[str, list[Way]]]:
    """A domain, and the ways in the order in which they are tried; the domain `*` comes last."""
    named = {host for route in routes for host in route.hosts if not isinstance(host, AnyHost)}
    for host in (*sorted(named, key=domain), AnyHost()):
        yield domain(host), _ways(routes, host)


def domain(host: Host) -> str:
    """A host as Envoy and certificates write it."""
    match host:
        case Exact(name=name):
            return name
        case Suffix(labels=labels):
            return ".".join(("*", *labels))
        case AnyHost():
            return "*"
        case _:
            assert_never(host)


def _ways(routes: Sequence[Route], host: Host) -> list[Way]:
    found = [
        (_rank(rank, match), Way(route, rule, match))
        for route in routes
        if (rank := host_fit(route.hosts, host)) is not None
        for rule in route.rules
        for match in rule.matches or _every(rule)
    ]
    # Ranks of HTTP and gRPC are never compared: an Outbound has one kind of routes.
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [way for _, way in found]


def _rank(host: HostRank, match: HttpMatch | GrpcMatch) -> HttpRank | GrpcRank:
    return http_rank(host, match) if isinstance(match, HttpMatch) else grpc_rank(host, match)


def _every(rule: Rule) -> tuple[HttpMatch] | tuple[GrpcMatch]:
    """A rule without matches is for everything."""
    http = isinstance(rule, HttpRule | InboundRule)
    return (HttpMatch(),) if http else (GrpcMatch(),)


def host_fit(conditions: tuple[Host, ...], host: Host) -> HostRank | None:
    """How well a route with these conditions fits every request to `host`; None if not."""
    fitting = tuple(one for one in conditions if _covers(one, host))
    if conditions and not fitting:
        return None
    match host:
        case Exact(name=name):
            return host_rank(fitting, name)
        case Suffix(labels=labels):
            return host_rank(fitting, ".".join(("-", *labels)))
        case AnyHost():
            return ANY_HOST
        case _:
            assert_never(host)


def _covers(condition: Host, host: Host) -> bool:
    match condition, host:
        case AnyHost(), _:
            return True
        case Suffix(labels=suffix), Exact(name=name):
            labels = tuple(name.split("."))
            return len(labels) > len(suffix) and labels[-len(suffix) :] == suffix
        case Suffix(labels=suffix), Suffix(labels=labels):
            return len(labels) >= len(suffix) and labels[-len(suffix) :] == suffix
        case _:
            return condition == host
