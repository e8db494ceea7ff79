"""What of an Outbound a linkerd2-proxy cannot be told: conditions, never silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isthmus.dialects.linkerd.faults import DIALECT
from isthmus.dialects.linkerd.rules import grpc_match, http_matches
from isthmus.engine import View, query
from isthmus.ir import outbound as ir
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Source
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import HeaderChange, Mirror, Redirect, Retry, Rewrite, RuleFilter
from isthmus.ir.target import Backend, To
from isthmus.mesh.queries import outbound

RETRIED: Final = frozenset({1, 4, 8, 13, 14})
"""The gRPC codes that a proxy knows to try again after."""


@query
def policy_faults(db: View, name: OutboundName) -> tuple[Unsupported, ...]:
    """What clients behind linkerd2-proxies will not do as it is written."""
    return tuple(dict.fromkeys(_protocol(outbound(db, name).protocol)))


def _protocol(said: ir.Protocol) -> Iterator[Unsupported]:
    match said:
        case ir.Http1(routes) | ir.Http2(routes):
            yield from _http(routes)
        case ir.Grpc(calls):
            yield from _grpc(calls)
        case ir.Detect(_, http, tls, tcp):
            yield from _http(http)
            yield from _unread(tls, "TlsRoutes", "TLS is not looked for beside HTTP")
            yield from _unread(tcp[1:], "TcpRoutes", "only the first TCPRoute counts")
        case ir.Tcp(routes):
            yield from _unread(routes[1:], "TcpRoutes", "only the first TCPRoute counts")
        case ir.Tls():
            return


def _unread(
    routes: Iterable[ir.TlsRoute | ir.TcpRoute], feature: str, why: str
) -> Iterator[Unsupported]:
    for each in routes:
        yield Unsupported(each.source, feature, DIALECT, why)


def _http(routes: Iterable[ir.HttpRoute]) -> Iterator[Unsupported]:
    for route in routes:
        for rule in route.rules:
            if any(not list(http_matches(each)) for each in rule.matches):
                why = "a match asks for a header or parameter that is absent or not so"
                yield Unsupported(rule.source, "Matches", DIALECT, why)
            yield from _filters(rule.source, rule.filters)
            yield from _backends(rule.source, rule.backends)
            yield from _attempts(rule)


def _grpc(routes: Iterable[ir.GrpcRoute]) -> Iterator[Unsupported]:
    for route in routes:
        for rule in route.rules:
            if any(grpc_match(each) is None for each in rule.matches):
                why = "services and methods are compared exactly, not by regular expressions"
                yield Unsupported(rule.source, "Matches", DIALECT, why)
            yield from _call_filters(rule.source, rule.filters)
            yield from _filters(rule.source, rule.filters)
            yield from _backends(rule.source, rule.backends)
            yield from _retry(rule.source, rule.retry)
            yield from _attempts(rule)


def _attempts(rule: ir.HttpRule | ir.GrpcRule) -> Iterator[Unsupported]:
    """A retry's own limit is something else: it is told, and not for the last attempt."""
    if rule.timeouts.attempt is not None:
        why = "a single attempt has no limit; the request's, and the retry's, are kept"
        yield Unsupported(rule.source, "BackendRequestTimeout", DIALECT, why)


def _filters(source: Source, filters: Iterable[RuleFilter]) -> Iterator[Unsupported]:
    for each in filters:
        match each:
            case Rewrite():
                why = "requests that are to be rewritten are answered with 500"
                yield Unsupported(source, "URLRewrite", DIALECT, why)
            case Mirror():
                yield Unsupported(source, "RequestMirror", DIALECT, "no copies are made")
            case HeaderChange() if _both_set_and_added(each):
                why = "a header that is set and added to has the set value alone"
                yield Unsupported(source, "HeaderModifier", DIALECT, why)
            case _:
                continue


def _both_set_and_added(said: HeaderChange) -> bool:
    """Proxies add before they set."""
    added = {name.lower() for name, _ in said.add}
    return any(name.lower() in added for name, _ in said.set)


def _call_filters(source: Source, filters: Iterable[RuleFilter]) -> Iterator[Unsupported]:
    for each in filters:
        match each:
            case HeaderChange(on_response=True):
                why = "headers of answers to calls are not changed"
                yield Unsupported(source, "ResponseHeaderModifier", DIALECT, why)
            case Redirect():
                yield Unsupported(source, "RequestRedirect", DIALECT, "calls are not redirected")
            case _:
                continue


def _backends(source: Source, backends: Iterable[Backend]) -> Iterator[Unsupported]:
    named = [each for each in backends if isinstance(each, To)]
    if len(named) > 1 and any(each.failover for each in named):
        why = "of several backends, none fails over to another cluster"
        yield Unsupported(source, "Failover", DIALECT, why)
    for each in named:
        yield from _filters(source, each.filters)


def _retry(source: Source, retry: Retry | None) -> Iterator[Unsupported]:
    unknown = sorted(set(retry.grpc) - RETRIED) if retry is not None else []
    if unknown:
        why = f"calls that end with the codes {unknown} are not tried again"
        yield Unsupported(source, "Retry", DIALECT, why)
