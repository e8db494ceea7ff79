"""Which of several fitting matches counts (Gateway API, HTTPRoute and GRPCRoute).

Host first, then the match, then the order in which they stand. `mesh` sorts routes by these ranks,
oldest first among equals, so that a proxy that takes the first fit takes the best one.

The specification leaves the rank of regular expressions open: here they stand between exact paths
and prefixes, longer expressions first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from isthmus.ir.hosts import ANY_HOST, HostRank, host_of, host_rank
from isthmus.ir.matching import grpc_fits, http_fits
from isthmus.ir.names import Host
from isthmus.ir.request import HttpRequest
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch

M_co = TypeVar("M_co", covariant=True)


class HasHosts(Protocol):
    """A route of any kind: no hosts means every host."""

    @property
    def hosts(self) -> tuple[Host, ...]: ...


class HasMatches(Protocol[M_co]):
    """A rule of any kind: no matches means that everything matches."""

    @property
    def matches(self) -> tuple[M_co, ...]: ...


RouteT = TypeVar("RouteT", bound=HasHosts)
HttpRuleT = TypeVar("HttpRuleT", bound=HasMatches[HttpMatch])
GrpcRuleT = TypeVar("GrpcRuleT", bound=HasMatches[GrpcMatch])


class PathRank(NamedTuple):
    """Exact over expression over prefix; then the longer one."""

    kind: int
    length: int


class HttpRank(NamedTuple):
    """Larger is better."""

    host: HostRank
    path: PathRank
    method: bool
    headers: int
    query: int


class GrpcRank(NamedTuple):
    """Larger is better."""

    host: HostRank
    service: int
    method: int
    headers: int


class HttpFound(NamedTuple, Generic[RouteT, HttpRuleT]):
    """The route, rule and match that count, and why."""

    route: RouteT
    rule: HttpRuleT
    match: HttpMatch
    rank: HttpRank


class GrpcFound(NamedTuple, Generic[RouteT, GrpcRuleT]):
    """The route, rule and match that count, and why."""

    route: RouteT
    rule: GrpcRuleT
    match: GrpcMatch
    rank: GrpcRank


def path_rank(match: PathMatch | None) -> PathRank:
    """The rank of a path condition; none is the prefix `/`."""
    if match is None:
        return PathRank(1, 1)
    match match.match:
        case Match.EXACT:
            return PathRank(3, len(match.value))
        case Match.PREFIX:
            return PathRank(1, len(match.value.rstrip("/")) or 1)
        case _:
            return PathRank(2, len(match.value))


def http_rank(host: HostRank, match: HttpMatch) -> HttpRank:
    """The rank of an HTTP match below a host."""
    return HttpRank(
        host, path_rank(match.path), bool(match.method), len(match.headers), len(match.query)
    )


def grpc_rank(host: HostRank, match: GrpcMatch) -> GrpcRank:
    """The rank of a gRPC match below a host."""
    service = match.service.removeprefix(".")
    return GrpcRank(host, len(service), len(match.method), len(match.headers))


def best_http(
    rules: Iterable[tuple[RouteT, HttpRuleT]], request: HttpRequest
) -> HttpFound[RouteT, HttpRuleT] | None:
    """The best fit among rules with their routes, the first of equals; None if nothing fits."""
    name, found = host_of(request.authority), None
    for route, rule in rules:
        host = host_rank(route.hosts, name)
        for match in (rule.matches or (HttpMatch(),)) if host is not None else ():
            rank = http_rank(host or ANY_HOST, match)
            if (found is None or rank > found.rank) and http_fits(match, request):
                found = HttpFound(route, rule, match, rank)
    return found


def best_grpc(
    rules: Iterable[tuple[RouteT, GrpcRuleT]], request: HttpRequest
) -> GrpcFound[RouteT, GrpcRuleT] | None:
    """The best fit among rules with their routes, the first of equals; None if nothing fits."""
    name, found = host_of(request.authority), None
    for route, rule in rules:
        host = host_rank(route.hosts, name)
        for match in (rule.matches or (GrpcMatch(),)) if host is not None else ():
            rank = grpc_rank(host or ANY_HOST, match)
            if (found is None or rank > found.rank) and grpc_fits(match, request):
                found = GrpcFound(route, rule, match, rank)
    return found
