"""Route configurations of clients: the HTTP part of an Outbound.

What is made of one route is kept (`lines`): an edit of one among a thousand makes one anew, and the
rest is bytes that are put together again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.config.route.v3 import route_pb2
from google.protobuf.struct_pb2 import Struct

from isthmus.dialects.envoy import filters as changes
from isthmus.dialects.envoy import names, stats
from isthmus.dialects.envoy.retries import harmless_retry
from isthmus.dialects.envoy.rules import Rule, route_match, wires
from isthmus.dialects.envoy.sending import PROTOCOL, TOLD, cluster_of, key
from isthmus.dialects.xds.hosts import domain
from isthmus.dialects.xds.matches import NOT_PLAIN
from isthmus.engine import View, query
from isthmus.ir.hosts import ANY_HOST, HostRank
from isthmus.ir.names import AnyHost, Exact, Host, Origin, Ref, Source, Suffix
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    GrpcRoute,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    Outbound,
    Spread,
)
from isthmus.ir.precedence import GrpcRank, HttpRank, grpc_rank, http_rank
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import GrpcMatch, HttpMatch, Mirror
from isthmus.ir.target import OriginalDst, Refuse
from isthmus.mesh.queries import RouteAt, grpc_route, http_route, outbound, route_names
from isthmus.proto.xds import ROUTES, Resource, encoded, field, mark

__all__ = [
    "PROTOCOL",
    "TOLD",
    "Parent",
    "cluster_of",
    "clusters_of",
    "configuration",
    "harmless_retry",
    "http_routes",
    "key",
    "of_outbound",
    "route_match",
    "routes_of",
]

_DOMAIN: Final = 2
_ROUTE: Final = 3
_HOST: Final = 2
"""Numbers of fields: of a virtual host, and of a route configuration."""

Route = HttpRoute | GrpcRoute


class Parent(NamedTuple):
    """Whose routes these are, for labels: an object, or the default of this name."""

    ref: Ref | None
    port: int
    name: str = ""


class Line(NamedTuple):
    """One match of a rule: its rank but for the host, and its routes as fields."""

    rank: HttpRank | GrpcRank
    wire: bytes


class Lines(msgspec.Struct, frozen=True):
    """What is made of one route: the hosts it is for, its lines, the clusters they send to."""

    hosts: tuple[Host, ...]
    lines: tuple[Line, ...]
    clusters: tuple[str, ...]


def parent_of(found: Outbound) -> Parent:
    """The parent of an Outbound."""
    return Parent(found.parent, found.port, stats.route_labels(found.source)[3])


def http_routes(found: Outbound) -> tuple[Route, ...]:
    """The HTTP part."""
    match found.protocol:
        case Http1(routes=routes) | Http2(routes=routes):
            return routes
        case Grpc(routes=calls):
            return calls
        case Detect(http=routes):
            return routes
        case _:
            return ()


# ------------------------------------------------------------------------------ resources


@query
def lines(db: View, at: RouteAt) -> Lines:
    """A route at a port of one of its parents."""
    parent = Parent(at.parent, at.port)
    if at.route.kind == "GRPCRoute":
        return _lines(grpc_route(db, at), parent)
    return _lines(http_route(db, at), parent)


def routes_of(db: View, name: OutboundName, resource_name: str) -> Resource | None:
    """The routes of a port; None where it has no HTTP."""
    found = outbound(db, name)
    routes = http_routes(found)
    if not routes:
        return None
    kept = [lines(db, at) for at in route_names(db, name)]
    parts = [*kept, *(_lines(one, parent_of(found)) for one in routes[len(kept) :])]
    wire = route_pb2.RouteConfiguration(name=resource_name, ignore_port_in_host_matching=True)
    head = wire.SerializeToString(deterministic=True)
    value = head + b"".join(field(_HOST, host) for host in _hosts(parts))
    clusters = {each for part in parts for each in part.clusters}
    marks = [
        (_blamed(route, found), _mark(part)) for route, part in zip(routes, parts, strict=True)
    ]
    return encoded(
        ROUTES, resource_name, value, clusters=clusters, origin=found.source, parts=marks
    )


def _blamed(route: Route, found: Outbound) -> Source:
    """The object that a route comes from; of what nobody wrote, the parent."""
    return route.source if isinstance(route.source, Origin) else found.source


def _mark(part: Lines) -> str:
    hosts = ",".join(map(domain, part.hosts)).encode()
    return mark(b"".join([hosts, *(line.wire for line in part.lines)]))


def of_outbound(name: str, found: Outbound) -> route_pb2.RouteConfiguration:
    """The routes of an outbound that has HTTP; none of them where it has not."""
    return configuration(name, parent_of(found), http_routes(found))


def configuration(
    name: str, parent: Parent, routes: Sequence[Route]
) -> route_pb2.RouteConfiguration:
    """Routes as virtual hosts: one for each host that a route names, one for all others."""
    parts = [_lines(route, parent) for route in routes]
    return route_pb2.RouteConfiguration(
        name=name,
        ignore_port_in_host_matching=True,
        virtual_hosts=map(pb.VirtualHost.FromString, _hosts(parts)),
    )


def _hosts(parts: Sequence[Lines]) -> Iterator[bytes]:
    """Virtual hosts. A route for all hosts ranks below those for one, in every host alike."""
    anywhere = [part for part in parts if not part.hosts or AnyHost() in part.hosts]
    rest = b"".join(line.wire for line in _ranked([(ANY_HOST, part) for part in anywhere]))
    named: dict[Host, list[tuple[int, Lines]]] = defaultdict(list)
    for at, part in enumerate(parts):
        for host in set(part.hosts) - {AnyHost()}:
            named[host].append((at, part))
    for host in sorted(named, key=domain):
        mine: dict[int, tuple[HostRank, Lines]] = {}
        for around in _around(host):
            rank = HostRank(2 if isinstance(around, Exact) else 1, len(domain(around)))
            for at, part in named.get(around, ()):
                mine.setdefault(at, (rank, part))
        fits = (mine[at] for at in sorted(mine))
        own = b"".join(line.wire for line in _ranked(fits))
        yield _host(domain(host), _UNCLEAR + own + rest)
    yield _host("*", (_UNCLEAR if named else b"") + rest)


def _around(host: Host) -> Iterator[Host]:
    """The host itself, then every wildcard that holds it, the closest first."""
    yield host
    labels = host.labels if isinstance(host, Suffix) else tuple(domain(host).split("."))
    yield from (Suffix(labels[at:]) for at in range(1, len(labels)))


def _ranked(found: Iterable[tuple[object, Lines]]) -> list[Line]:
    """By the specification's rank: host, then match, then the order in which they stand."""
    some = [
        (line.rank._replace(host=rank), line)  # type: ignore[arg-type]  # a rank of hosts
        for rank, part in found
        for line in part.lines
    ]
    some.sort(key=lambda pair: pair[0], reverse=True)
    return [line for _, line in some]


def _host(name: str, routes: bytes) -> bytes:
    """A name with a dot behind it is the same name."""
    text = name.encode()
    twin = field(_DOMAIN, text + b".") if name != "*" else b""
    return field(1, text) + field(_DOMAIN, text) + twin + routes


def _unclear() -> bytes:
    """400 to hosts that their server may read otherwise, where a host decides what may go."""
    match = pb.RouteMatch(prefix="/", headers=[NOT_PLAIN])
    return field(_ROUTE, changes.reply(match, 400, "").SerializeToString(deterministic=True))


_UNCLEAR: Final = _unclear()


# ---------------------------------------------------------------------------- one route


def _lines(route: Route, parent: Parent) -> Lines:
    found = tuple(
        Line(_rank(match), _wire(rule, match, route, parent))
        for rule in route.rules
        for match in rule.matches or _every(route)
    )
    return Lines(route.hosts, found, tuple(sorted(set(_clusters(route.rules)))))


def _every(route: Route) -> tuple[HttpMatch] | tuple[GrpcMatch]:
    """A rule without matches is for everything."""
    return (HttpMatch(),) if isinstance(route, HttpRoute) else (GrpcMatch(),)


def _rank(match: HttpMatch | GrpcMatch) -> HttpRank | GrpcRank:
    if isinstance(match, HttpMatch):
        return http_rank(ANY_HOST, match)
    return grpc_rank(ANY_HOST, match)


def _wire(rule: Rule, match: HttpMatch | GrpcMatch, route: Route, parent: Parent) -> bytes:
    """A match of a rule as routes of a virtual host, named and labelled."""
    name = "/".join(filter(None, stats.route_labels(rule.source)))
    labels = metadata(parent, route.source, rule)
    parts = []
    for wire in wires(rule, match, parent.port):
        wire.name = name
        wire.metadata.CopyFrom(labels)
        parts.append(field(_ROUTE, wire.SerializeToString(deterministic=True)))
    return b"".join(parts)


def metadata(parent: Parent, source: Source, rule: Rule | None = None) -> base.Metadata:
    """Labels as metrics take them (see `stats`).

    `labels` is all of them. Where the port is only known when a request comes, they are put
    together of `parent`, the port and `route`. Of rules whose requests go where they were going the
    backend stands behind the route.
    """
    before = stats.parent_labels(parent.ref, parent.port, parent.name)
    after: tuple[str, ...] = stats.route_labels(source)
    backends = rule.backends if rule is not None else ()
    if backends and all(isinstance(one, OriginalDst) for one in backends):
        after = (*after, *stats.backend_labels(backends[0].source))
    said = Struct()
    said.update({"labels": stats.joined(before, after)})
    if parent.ref is not None and not parent.port:
        said.update({"parent": stats.joined(before[:4]), "route": stats.joined(("",), after)})
    return base.Metadata(filter_metadata={"isthmus": said})


def clusters_of(found: Outbound) -> Iterator[str]:
    """Every cluster that the HTTP part sends to, or copies to."""
    for route in http_routes(found):
        yield from _clusters(route.rules)


def _clusters(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        yield from (cluster_of(one) for one in rule.backends if not isinstance(one, Refuse))
        copied = (one for one in rule.filters if isinstance(one, Mirror))
        yield from map(changes.mirror_key, copied)


def passthrough(source: Source) -> route_pb2.RouteConfiguration:
    """Every request to where it was going."""
    everything = HttpRule(
        source, matches=(HttpMatch(),), backends=(OriginalDst(source),), spread=Spread.FIRST
    )
    route = HttpRoute(source, (), (everything,))
    return configuration(names.PASSTHROUGH, Parent(None, 0, stats.route_labels(source)[3]), [route])
