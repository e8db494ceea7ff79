"""Routes of whole connections in Envoy's words: chains of a listener that look at no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from envoy.config.accesslog.v3 import accesslog_pb2 as accesslog
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component

from isthmus.dialects.envoy import manager, names, stats
from isthmus.dialects.envoy.routes import Parent, metadata
from isthmus.dialects.envoy.sending import cluster_of
from isthmus.dialects.xds.hosts import domain
from isthmus.ir.names import AnyHost, Host
from isthmus.ir.outbound import Spread, TcpRoute, TlsRoute
from isthmus.ir.rules import Fail, Forbid
from isthmus.ir.target import Backend, To

TLS: str = "tls"
"""What the inspector calls a connection that begins with TLS."""


class Raw(NamedTuple):
    """A chain for bytes, to be put anywhere in a listener, and where it sends them."""

    filters: tuple[component.Filter, ...]
    clusters: tuple[str, ...]
    labels: base.Metadata


def raw(
    route: TcpRoute | TlsRoute,
    parent: Parent,
    log: accesslog.AccessLog = stats.OUTBOUND.connections,
) -> Raw:
    """The route of a whole connection. All of its backends, or none, are told what follows."""
    labels = metadata(parent, route.source)
    backends = _chosen(route)
    if not backends or any(isinstance(one, Forbid | Fail) for one in route.filters):
        return Raw((manager.refuse(log),), (names.REFUSED,), labels)
    apart = any(map(_apart, backends))
    variant = names.RAW if apart else ""
    weights = [(cluster_of(one, variant), one.weight) for one in backends]
    carry = manager.carry("outbound", weights, log)
    meshed = any(isinstance(one, To) for one in backends) and not apart
    filters = (manager.SPEAKS_RAW, carry) if meshed else (carry,)
    return Raw(filters, tuple(cluster for cluster, _ in weights), labels)


def _chosen(route: TcpRoute | TlsRoute) -> Sequence[Backend]:
    if route.spread is Spread.FIRST:
        return route.backends[:1]
    some = route.backends if route.spread is Spread.WEIGHTED else ()
    return [one for one in some if one.weight]


def _apart(backend: Backend) -> bool:
    """Whether raw bytes need clusters of their own: a linkerd2-proxy is to be offered no ALPN."""
    some = (backend.target, *backend.failover) if isinstance(backend, To) else ()
    return any(one.linkerd for one in some)


def by_name(routes: Iterable[TlsRoute]) -> Iterator[tuple[TlsRoute, tuple[str, ...]]]:
    """TLS routes with the server names that are theirs; no names: all that nobody else has.

    Envoy takes the best name, and each name once: of two routes for one, the first has it.
    """
    taken: set[Host] = set()
    for route in routes:
        mine = [host for host in dict.fromkeys(route.snis or (AnyHost(),)) if host not in taken]
        taken.update(mine)
        named = tuple(domain(host) for host in mine if not isinstance(host, AnyHost))
        if named:
            yield route, named
        if AnyHost() in mine:
            yield route, ()


def tls_chains(
    name: str,
    routes: Iterable[TlsRoute],
    parent: Parent,
    match: component.FilterChainMatch,
    log: accesslog.AccessLog = stats.OUTBOUND.connections,
) -> Iterator[tuple[component.FilterChain, Raw]]:
    """A chain for each route's server names, within a match of addresses."""
    for at, (route, server_names) in enumerate(by_name(routes)):
        found = raw(route, parent, log)
        here = component.FilterChainMatch()
        here.CopyFrom(match)
        here.transport_protocol = TLS
        here.server_names.extend(server_names)
        yield manager.chain(f"{name}{at}", found.filters, here, labels=found.labels), found
