from __future__ import annotations

from typing import Any

import pytest

from isthmus.dialects.linkerd.backends import NOTHING_WEIGHS, Towards, distribution
from isthmus.dialects.linkerd.policy import GRPC, HTTP, TCP, TLS, policy
from isthmus.dialects.linkerd.policy_faults import policy_faults
from isthmus.ir import outbound as ir
from isthmus.ir.names import Default, Exact, Origin, Ref, TargetId
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import (
    Fail,
    Forbid,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    PathMatch,
    Redirect,
    Retry,
    Rewrite,
    Timeouts,
    ValueMatch,
)
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, To
from isthmus.model.annotations import Accrual, AccrualMode, LoadBias
from isthmus.proto.linkerd import outbound_pb2 as pb
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

HERE = Default("test")
SERVICE = Ref(LOCAL, "", "Service", "shop", "cart")
TOWARDS = Towards("203.0.113.9", 8080)


def target(name: str) -> Target:
    return Target(TargetId(LOCAL, "shop", name, 80), authority=f"{name}.shop.svc:80")


def to(name: str, weight: int = 1, *failover: str) -> To:
    return To(target(name), HERE, weight, tuple(map(target, failover)))


def told(protocol: ir.Protocol, accrual: Accrual | None = None) -> pb.ProxyProtocol:
    said = ir.Outbound(SERVICE, Origin(SERVICE, port=80), 80, protocol)
    return policy(said, TOWARDS, accrual).protocol


def http(*rules: ir.HttpRule) -> tuple[ir.HttpRoute, ...]:
    return (ir.HttpRoute(HERE, rules=rules),)


# ---------------------------------------------------------------------------------- protocols


def test_the_parent_stands_on_the_whole() -> None:
    said = ir.Outbound(SERVICE, Origin(SERVICE, port=80), 80, ir.Tcp())
    found = policy(said, TOWARDS, None).metadata.resource
    assert (found.group, found.kind, found.name, found.port) == ("core", "Service", "cart", 80)


def test_each_protocol_has_a_message() -> None:
    routes = http(ir.HttpRule(HERE))
    some: dict[str, ir.Protocol] = {
        "http1": ir.Http1(routes),
        "http2": ir.Http2(routes),
        "grpc": ir.Grpc((ir.GrpcRoute(HERE),)),
        "tls": ir.Tls((ir.TlsRoute(HERE, (Exact("a"),)),)),
        "opaque": ir.Tcp((ir.TcpRoute(HERE), ir.TcpRoute(HERE))),
    }
    for kind, protocol in some.items():
        found = told(protocol)
        assert found.WhichOneof("kind") == kind
        assert len(getattr(found, kind).routes) == 1


def test_what_is_looked_for_has_the_same_routes_in_both_versions() -> None:
    found = told(ir.Detect(10_000, http(ir.HttpRule(HERE)), tcp=(ir.TcpRoute(HERE),))).detect
    assert found.timeout.seconds == 10
    assert found.http1.routes == found.http2.routes
    assert len(found.http1.routes) == len(found.opaque.routes) == 1


def test_failures_are_counted_as_the_parent_says() -> None:
    said = Accrual(AccrualMode.CONSECUTIVE, 8, 1000, 60_000, 0.5)
    routes = http(ir.HttpRule(HERE))
    found = told(ir.Detect(1, routes), said).detect
    for one in (found.http1, found.http2, told(ir.Grpc(), said).grpc):
        kept = one.failure_accrual.consecutive_failures
        assert (kept.max_failures, kept.backoff.jitter_ratio) == (8, 0.5)
        assert (kept.backoff.min_backoff.seconds, kept.backoff.max_backoff.seconds) == (1, 60)
    assert not told(ir.Http1(routes)).http1.HasField("failure_accrual")


# ------------------------------------------------------------------------------------- rules


NOT_SAID = HttpMatch(headers=(ValueMatch("x", Match.ABSENT),))


def test_a_rule_that_cannot_be_said_is_left_out_and_never_means_everything() -> None:
    rules = (ir.HttpRule(HERE, (NOT_SAID,)), ir.HttpRule(HERE, (NOT_SAID, HttpMatch())))
    [route] = told(ir.Http1(http(*rules))).http1.routes
    assert [len(rule.matches) for rule in route.rules] == [1]
    calls = (ir.GrpcRule(HERE, (GrpcMatch("a.*", regex=True),)), ir.GrpcRule(HERE))
    [call] = told(ir.Grpc((ir.GrpcRoute(HERE, rules=calls),))).grpc.routes
    assert [len(rule.matches) for rule in call.rules] == [0]


def test_limits_and_attempts() -> None:
    retry = Retry(3, ((500, 503),), (1, 2, 14), attempt_timeout=250)
    limits = Timeouts(request=2000, attempt=100)
    [route] = told(ir.Http1(http(ir.HttpRule(HERE, timeouts=limits, retry=retry)))).http1.routes
    [rule] = route.rules
    assert rule.requestTimeout.seconds == rule.timeouts.request.seconds == 2
    assert (rule.retry.max_retries, rule.retry.max_request_bytes) == (3, 65536)
    assert rule.retry.timeout.nanos == 250_000_000
    [spread] = rule.retry.conditions.status_ranges
    assert (spread.start, spread.end) == (500, 503)
    calls = (ir.GrpcRoute(HERE, rules=(ir.GrpcRule(HERE, retry=retry),)),)
    [call] = told(ir.Grpc(calls)).grpc.routes
    conditions = call.rules[0].retry.conditions
    assert [field.name for field, _ in conditions.ListFields()] == ["cancelled", "unavailable"]


def test_without_limits_nothing_is_said_of_them() -> None:
    [route] = told(ir.Http1(http(ir.HttpRule(HERE)))).http1.routes
    [rule] = route.rules
    assert [field.name for field, _ in rule.ListFields()] == ["backends"]


FILTERS: tuple[Any, ...] = (
    HeaderChange(set=(("a", "1"),)),
    HeaderChange(on_response=True, remove=("b",)),
    Redirect(301),
    Fail(503, 14, "down"),
    Forbid("no"),
    Rewrite("new"),
    Mirror(TargetId(LOCAL, "shop", "copy", 80)),
)


def test_filters_of_requests() -> None:
    found = HTTP.filters(FILTERS)
    kinds = [each.WhichOneof("kind") for each in found]
    assert kinds == [
        "request_header_modifier", "response_header_modifier", "redirect",
        "failure_injector", "failure_injector", "failure_injector",
    ]  # fmt: skip
    assert [each.failure_injector.status for each in found[3:]] == [503, 403, 500]


def test_filters_of_calls() -> None:
    found = GRPC.filters(FILTERS)
    assert [each.WhichOneof("kind") for each in found] == [
        "request_header_modifier", *["failure_injector"] * 4
    ]  # fmt: skip
    assert [each.failure_injector.code for each in found[1:]] == [13, 14, 7, 13]


@pytest.mark.parametrize("kind", [TLS, TCP])
def test_filters_of_connections(kind: Any) -> None:  # noqa: ANN401 - of either kind
    assert [each.WhichOneof("kind") for each in kind.filters(FILTERS)] == ["invalid", "forbidden"]


# ---------------------------------------------------------------------------------- backends


def spread(how: ir.Spread, *backends: Backend, bias: LoadBias | None = None) -> Any:  # noqa: ANN401
    return distribution(HTTP, how, backends, TOWARDS._replace(bias=bias))


def paths(found: Any) -> list[str]:  # noqa: ANN401 - either kind of alternatives
    return [each.backend.balancer.discovery.dst.path.split(".")[0] for each in found.backends]


def test_none_first_and_by_weight() -> None:
    assert spread(ir.Spread.NONE, to("a")).WhichOneof("kind") == "empty"
    assert spread(ir.Spread.WEIGHTED).WhichOneof("kind") == "empty"
    assert paths(spread(ir.Spread.FIRST, to("a"), to("b")).first_available) == ["a", "b"]
    found = spread(ir.Spread.WEIGHTED, to("a", 3), to("b", 0)).random_available
    assert [each.weight for each in found.backends] == [3, 0]
    assert [each.backend.backend.metadata.default for each in found.backends] == ["test", "test"]


def test_alternatives_of_a_single_backend_are_taken_in_order() -> None:
    assert paths(spread(ir.Spread.WEIGHTED, to("a", 1, "b", "c")).first_available) == [
        "a", "b", "c",
    ]  # fmt: skip
    several = spread(ir.Spread.WEIGHTED, to("a", 1, "b"), to("d"))
    assert len(several.random_available.backends) == 2


@pytest.mark.parametrize("backends", [(to("a", 0),), (to("a", 0), to("b", 0))])
def test_weights_that_are_all_nothing_send_nobody_anywhere(backends: tuple[To, ...]) -> None:
    [only] = spread(ir.Spread.WEIGHTED, *backends).first_available.backends
    assert only.backend.WhichOneof("kind") is None
    [refused] = only.filters
    assert refused.failure_injector.message == NOTHING_WEIGHS


def test_what_cannot_be_keeps_its_share_and_answers() -> None:
    gone = Refuse(500, "gone", Origin(SERVICE, port=80), 2)
    for kind, answer in ((HTTP, "failure_injector"), (GRPC, "failure_injector"), (TCP, "invalid")):
        found = distribution(kind, ir.Spread.WEIGHTED, (gone, to("a")), TOWARDS)
        one = found.random_available.backends[0]
        assert one.weight == 2
        assert one.backend.backend.metadata.resource.name == "cart"
        assert one.backend.filters[0].WhichOneof("kind") == answer
    [call] = distribution(GRPC, ir.Spread.FIRST, (gone,), TOWARDS).first_available.backends
    assert call.filters[0].failure_injector.code == 14


def test_where_it_was_going() -> None:
    [only] = spread(ir.Spread.FIRST, OriginalDst(HERE)).first_available.backends
    assert only.backend.forward.addr.port == 8080
    assert only.backend.forward.addr.ip.ipv4 == 0xCB007109


def test_endpoints_that_fail_weigh_more_only_where_requests_are_seen() -> None:
    bias = LoadBias(5000, 300_000)
    [only] = spread(ir.Spread.FIRST, to("a"), bias=bias).first_available.backends
    load = only.backend.balancer.penalty_peak_ewma
    assert (load.penalty.seconds, load.max_retry_after.seconds) == (5, 300)
    plain = distribution(TCP, ir.Spread.FIRST, (to("a"),), TOWARDS._replace(bias=bias))
    [only] = plain.first_available.backends
    assert only.backend.balancer.WhichOneof("load") == "peak_ewma"


# ------------------------------------------------------------------------------------ faults


def lacking(*objects: Compact) -> list[str]:
    world = World(
        {"svc": "shop/cart", "ip": "10.96.0.1", "ports": [80]},
        {"svc": "shop/copy", "ip": "10.96.0.2", "ports": [80]},
        *objects,
    )
    found = world.db.read(policy_faults, OutboundName(SERVICE, 80, ""))
    return [each.feature for each in found]


def rule(**said: Any) -> Compact:  # noqa: ANN401 - JSON
    return {"route": "shop/r", "service": "cart", "rules": [said]}


HEADERS = {"set": [{"name": "A", "value": "1"}], "add": [{"name": "a", "value": "2"}]}
REWRITE = {"type": "URLRewrite", "urlRewrite": {"hostname": "new.test"}}
COPY = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "port": 80}}}


@pytest.mark.parametrize(
    ("objects", "features"),
    [
        ([], []),
        ([rule()], []),
        ([rule(filters=[REWRITE])], ["URLRewrite"]),
        ([rule(filters=[COPY])], ["RequestMirror"]),
        (
            [rule(filters=[{"type": "RequestHeaderModifier", "requestHeaderModifier": HEADERS}])],
            ["HeaderModifier"],
        ),
        ([rule(timeouts={"request": "2s"})], []),
        ([rule(timeouts={"request": "2s", "backendRequest": "1s"})], ["BackendRequestTimeout"]),
        (
            [{
                "groute": "shop/g", "service": "cart",
                "rules": [{"filters": [{
                    "type": "ResponseHeaderModifier",
                    "responseHeaderModifier": {"remove": ["a"]},
                }]}],
            }],
            ["ResponseHeaderModifier"],
        ),
    ],
)  # fmt: skip
def test_what_a_proxy_will_not_do_is_told(objects: list[Compact], features: list[str]) -> None:
    assert lacking(*objects) == features


def test_matches_of_whole_paths_are_told() -> None:
    said = PathMatch(Match.PREFIX, "/a")
    [route] = told(ir.Http1(http(ir.HttpRule(HERE, (HttpMatch(said),))))).http1.routes
    assert route.rules[0].matches[0].path.prefix == "/a"
