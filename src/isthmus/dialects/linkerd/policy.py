"""Outbound as linkerd's OutboundPolicy: routes by protocol, as one message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, assert_never

from isthmus.dialects.linkerd import rules as wire
from isthmus.dialects.linkerd.address import duration
from isthmus.dialects.linkerd.backends import Kind, Towards, distribution
from isthmus.ir import outbound as ir
from isthmus.ir.rules import (
    BackendFilter,
    Fail,
    Forbid,
    HeaderChange,
    Mirror,
    Redirect,
    Retry,
    Rewrite,
    RuleFilter,
)
from isthmus.mesh.queries import Accrual, AccrualMode
from isthmus.proto.linkerd import opaque_route_pb2
from isthmus.proto.linkerd import outbound_pb2 as pb

BODY: Final = 64 << 10
"""Bytes of a request that may be kept for another attempt."""

INTERNAL: Final = 13
PERMISSION_DENIED: Final = 7
UNAVAILABLE: Final = 14

NO_REWRITE: Final = "URLRewrite is not supported by linkerd2-proxy"

_GRPC_CODES: Final = {
    1: "cancelled",
    4: "deadine_exceeded",
    8: "resource_exhausted",
    13: "internal",
    14: "unavailable",
}


R = TypeVar("R", pb.HttpRoute.Retry, pb.GrpcRoute.Retry)


def policy(said: ir.Outbound, to: Towards, accrual: Accrual | None) -> pb.OutboundPolicy:
    """The whole answer; `to` is where the client was going."""
    return pb.OutboundPolicy(
        protocol=_protocol(said.protocol, to, _accrual(accrual)),
        metadata=wire.metadata(said.source),
    )


def _protocol(
    said: ir.Protocol, to: Towards, accrual: pb.FailureAccrual | None
) -> pb.ProxyProtocol:
    kinds = pb.ProxyProtocol
    match said:
        case ir.Http1(routes):
            return kinds(http1=kinds.Http1(routes=_http(routes, to), failure_accrual=accrual))
        case ir.Http2(routes):
            return kinds(http2=kinds.Http2(routes=_http(routes, to), failure_accrual=accrual))
        case ir.Grpc(calls):
            return kinds(grpc=kinds.Grpc(routes=_grpc(calls, to), failure_accrual=accrual))
        case ir.Tls(sessions):
            return kinds(tls=kinds.Tls(routes=[_tls(each, to) for each in sessions]))
        case ir.Tcp(connections):
            return kinds(opaque=_opaque(connections, to))
        case ir.Detect():
            return kinds(detect=_detect(said, to, accrual))
        case _:
            assert_never(said)


def _detect(
    said: ir.Detect, to: Towards, accrual: pb.FailureAccrual | None
) -> pb.ProxyProtocol.Detect:
    """What is seen to be HTTP has the same routes in both versions."""
    kinds = pb.ProxyProtocol
    routes = _http(said.http, to)
    return kinds.Detect(
        timeout=duration(said.timeout),
        opaque=_opaque(said.tcp, to),
        http1=kinds.Http1(routes=routes, failure_accrual=accrual),
        http2=kinds.Http2(routes=routes, failure_accrual=accrual),
    )


def _opaque(said: Iterable[ir.TcpRoute], to: Towards) -> pb.ProxyProtocol.Opaque:
    """Only the first route counts; proxies refuse more."""
    return pb.ProxyProtocol.Opaque(routes=[_tcp(each, to) for each in tuple(said)[:1]])


def _accrual(said: Accrual | None) -> pb.FailureAccrual | None:
    if said is None:
        return None
    backoff = pb.ExponentialBackoff(
        min_backoff=duration(said.min_penalty),
        max_backoff=duration(said.max_penalty),
        jitter_ratio=said.jitter,
    )
    if said.mode is AccrualMode.CONSECUTIVE or said.success_rate is None:
        plain = pb.FailureAccrual.ConsecutiveFailures(
            max_failures=said.max_failures, backoff=backoff
        )
        return pb.FailureAccrual(consecutive_failures=plain)
    backoff.respect_retry_after_hint = said.honor_retry_after
    unified = pb.FailureAccrual.Unified(
        success_rate_threshold=said.success_rate.threshold,
        decay=duration(said.success_rate.window),
        min_requests=said.success_rate.min_requests,
        max_consecutive_failures=said.max_failures,
        backoff=backoff,
    )
    return pb.FailureAccrual(unified=unified)


# ------------------------------------------------------------------------------------- HTTP


def _http(routes: Iterable[ir.HttpRoute], to: Towards) -> list[pb.HttpRoute]:
    return [_http_route(each, to) for each in routes]


def _http_route(said: ir.HttpRoute, to: Towards) -> pb.HttpRoute:
    return pb.HttpRoute(
        metadata=wire.metadata(said.source),
        hosts=wire.host_matches(said.hosts),
        rules=[made for each in said.rules if (made := _http_rule(each, to)) is not None],
    )


def _http_rule(said: ir.HttpRule, to: Towards) -> pb.HttpRoute.Rule | None:
    """None for a rule none of whose matches can be said: an empty list would mean everything."""
    matches = [made for each in said.matches for made in wire.http_matches(each)]
    if said.matches and not matches:
        return None
    limits = wire.timeouts(said.timeouts)
    return pb.HttpRoute.Rule(
        matches=matches,
        filters=http_filters(said.filters),
        backends=distribution(HTTP, said.spread, said.backends, to),
        timeouts=limits,
        requestTimeout=limits.request
        if limits is not None and limits.HasField("request")
        else None,
        retry=_http_retry(said.retry) if said.retry is not None else None,
    )


def http_filters(filters: Iterable[RuleFilter]) -> list[pb.HttpRoute.Filter]:
    """Filters of requests. Copies cannot be made; a path that cannot be changed is answered for."""
    return list(_http_filters(filters))


def _http_filters(filters: Iterable[RuleFilter]) -> Iterator[pb.HttpRoute.Filter]:
    make = pb.HttpRoute.Filter
    for each in filters:
        match each:
            case HeaderChange(on_response=True):
                yield make(response_header_modifier=wire.response_headers(each))
            case HeaderChange():
                yield make(request_header_modifier=wire.request_headers(each))
            case Redirect():
                yield make(redirect=wire.redirect(each))
            case Fail():
                yield make(failure_injector=wire.http_failure(each))
            case Forbid(message):
                yield _refuse_http(403, message)
            case Rewrite():
                yield _refuse_http(500, NO_REWRITE)
            case Mirror():
                pass  # told by `faults`
            case _:
                assert_never(each)


def _refuse_http(status: int, message: str) -> pb.HttpRoute.Filter:
    fail = Fail(status, INTERNAL, message)
    return pb.HttpRoute.Filter(failure_injector=wire.http_failure(fail))


def _http_retry(said: Retry) -> pb.HttpRoute.Retry:
    conditions = pb.HttpRoute.Retry.Conditions
    ranges = [conditions.StatusRange(start=low, end=high) for low, high in said.statuses]
    made = pb.HttpRoute.Retry(conditions=conditions(status_ranges=ranges))
    return _attempts(made, said)


def _attempts(made: R, said: Retry) -> R:
    """What retries of both kinds have in common."""
    made.max_retries = said.limit
    made.max_request_bytes = BODY
    made.backoff.min_backoff.CopyFrom(duration(said.backoff_min))
    made.backoff.max_backoff.CopyFrom(duration(said.backoff_max))
    made.backoff.jitter_ratio = 1.0
    if said.attempt_timeout is not None:
        made.timeout.CopyFrom(duration(said.attempt_timeout))
    return made


# ------------------------------------------------------------------------------------- gRPC


def _grpc(routes: Iterable[ir.GrpcRoute], to: Towards) -> list[pb.GrpcRoute]:
    return [_grpc_route(each, to) for each in routes]


def _grpc_route(said: ir.GrpcRoute, to: Towards) -> pb.GrpcRoute:
    return pb.GrpcRoute(
        metadata=wire.metadata(said.source),
        hosts=wire.host_matches(said.hosts),
        rules=[made for each in said.rules if (made := _grpc_rule(each, to)) is not None],
    )


def _grpc_rule(said: ir.GrpcRule, to: Towards) -> pb.GrpcRoute.Rule | None:
    """None for a rule none of whose matches can be said: an empty list would mean everything."""
    matches = [made for each in said.matches if (made := wire.grpc_match(each)) is not None]
    if said.matches and not matches:
        return None
    return pb.GrpcRoute.Rule(
        matches=matches,
        filters=grpc_filters(said.filters),
        backends=distribution(GRPC, said.spread, said.backends, to),
        timeouts=wire.timeouts(said.timeouts),
        retry=_grpc_retry(said.retry) if said.retry is not None else None,
    )


def grpc_filters(filters: Iterable[RuleFilter]) -> list[pb.GrpcRoute.Filter]:
    """Filters of calls; changes of responses and copies cannot be said."""
    return list(_grpc_filters(filters))


def _grpc_filters(filters: Iterable[RuleFilter]) -> Iterator[pb.GrpcRoute.Filter]:
    make = pb.GrpcRoute.Filter
    for each in filters:
        match each:
            case HeaderChange(on_response=True) | Mirror():
                pass  # told by `faults`
            case HeaderChange():
                yield make(request_header_modifier=wire.request_headers(each))
            case Fail():
                yield make(failure_injector=wire.grpc_failure(each))
            case Forbid(message):
                yield _refuse_call(PERMISSION_DENIED, message)
            case Redirect() | Rewrite():
                yield _refuse_call(INTERNAL, "not supported for gRPC by linkerd2-proxy")
            case _:
                assert_never(each)


def _refuse_call(code: int, message: str) -> pb.GrpcRoute.Filter:
    return pb.GrpcRoute.Filter(failure_injector=wire.grpc_failure(Fail(500, code, message)))


def _grpc_retry(said: Retry) -> pb.GrpcRoute.Retry:
    conditions = pb.GrpcRoute.Retry.Conditions()
    for code in said.grpc:
        if code in _GRPC_CODES:
            setattr(conditions, _GRPC_CODES[code], True)
    return _attempts(pb.GrpcRoute.Retry(conditions=conditions), said)


# ------------------------------------------------------------------------------ TLS and TCP


def _tls(said: ir.TlsRoute, to: Towards) -> pb.TlsRoute:
    rule = pb.TlsRoute.Rule(
        backends=distribution(TLS, said.spread, said.backends, to),
        filters=connection_filters(pb.TlsRoute.Filter)(said.filters),
    )
    snis = wire.sni_matches(said.snis)
    return pb.TlsRoute(metadata=wire.metadata(said.source), snis=snis, rules=[rule])


def _tcp(said: ir.TcpRoute, to: Towards) -> pb.OpaqueRoute:
    rule = pb.OpaqueRoute.Rule(
        backends=distribution(TCP, said.spread, said.backends, to),
        filters=connection_filters(pb.OpaqueRoute.Filter)(said.filters),
    )
    return pb.OpaqueRoute(metadata=wire.metadata(said.source), rules=[rule])


def connection_filters(make: Any) -> Callable[[Iterable[RuleFilter]], list[Any]]:  # noqa: ANN401
    """Filters of connections: they are let be, or refused."""

    def made(filters: Iterable[RuleFilter]) -> list[Any]:
        found = []
        for each in filters:
            match each:
                case Forbid():
                    found.append(make(forbidden=opaque_route_pb2.Forbidden()))
                case Fail(_, _, message):
                    found.append(make(invalid=opaque_route_pb2.Invalid(message=message)))
                case HeaderChange() | Redirect() | Rewrite() | Mirror():
                    pass  # of requests: connections have none
                case _:
                    assert_never(each)
        return found

    return made


def _invalid(make: Any) -> Callable[[int, str], Any]:  # noqa: ANN401
    def refuse(_status: int, message: str) -> Any:  # noqa: ANN401
        return make(invalid=opaque_route_pb2.Invalid(message=message))

    return refuse


def _unavailable(_status: int, message: str) -> pb.GrpcRoute.Filter:
    return _refuse_call(UNAVAILABLE, message)


_Filters = Callable[[Iterable[BackendFilter]], list[Any]]


def _kind(
    route: Any,  # noqa: ANN401
    filters: _Filters,
    refuse: Callable[[int, str], Any],
    *,
    biased: bool = False,
) -> Kind:
    return Kind(
        route.Distribution, route.WeightedRouteBackend, route.RouteBackend, filters, refuse, biased
    )


HTTP: Final = _kind(pb.HttpRoute, http_filters, _refuse_http, biased=True)
GRPC: Final = _kind(pb.GrpcRoute, grpc_filters, _unavailable, biased=True)
TLS: Final = _kind(
    pb.TlsRoute, connection_filters(pb.TlsRoute.Filter), _invalid(pb.TlsRoute.Filter)
)
TCP: Final = _kind(
    pb.OpaqueRoute, connection_filters(pb.OpaqueRoute.Filter), _invalid(pb.OpaqueRoute.Filter)
)
