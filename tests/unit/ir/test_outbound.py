from __future__ import annotations

import pytest

from isthmus.ir.decide import Close, Forward, Reply, ToOriginal, Verdict, outbound
from isthmus.ir.endpoint import Health
from isthmus.ir.names import AnyHost, Default, Exact, Spiffe, Suffix, TargetId
from isthmus.ir.outbound import Detect, Grpc, Http1, Http2, Outbound, Spread, Tcp, Tls
from isthmus.ir.request import HttpRequest, RawBytes, Request, TlsHello
from isthmus.ir.rules import (
    Fail,
    Forbid,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    PathChange,
    PathMatch,
    Redirect,
    Retry,
    Rewrite,
    RuleFilter,
    Timeouts,
    ValueMatch,
)
from isthmus.ir.target import OriginalDst, Refuse, Target, To
from isthmus.ir.target import Tls as TlsMode
from tests.unit.ir.values import (
    EVERYBODY,
    behind,
    call,
    exact,
    header,
    http,
    origin,
    prefix,
    route,
    rule,
    target,
    tcp,
    tls,
    to,
    toward,
)


def verdict(ir: Outbound, request: Request, chance: float = 0.0) -> Verdict:
    return outbound(ir, request, EVERYBODY, chance=chance).verdict


def went(ir: Outbound, request: Request, chance: float = 0.0) -> str | int:
    """The service that the request went to, or the status of the proxy's own answer."""
    found = verdict(ir, request, chance)
    if isinstance(found, Forward):
        return found.target.id.service
    return found.status if isinstance(found, Reply) else type(found).__name__


def get(path: str = "/", host: str = "echo", method: str = "GET", **headers: str) -> HttpRequest:
    return HttpRequest(method, host, path, tuple(headers.items()))


# --------------------------------------------------------------------------------- precedence


@pytest.mark.parametrize(
    ("request_", "to_"),
    [
        (get("/"), "v1"),
        (get("/example"), "v1"),
        (get("/", version="one"), "v1"),
        (get("/v2example"), "v1"),
        (get("/foo/v2/example"), "v1"),
        (get("/v2"), "v2"),
        (get("/v2/"), "v2"),
        (get("/v2/example"), "v2"),
        (get("/", version="two"), "v2"),
    ],
)
def test_matches_of_a_rule_are_alternatives(request_: HttpRequest, to_: str) -> None:
    one = HttpMatch(headers=(header("version", "one"),))
    two = HttpMatch(headers=(header("version", "two"),))
    ir = http(route(rule("v1", prefix("/"), one), rule("v2", prefix("/v2"), two)))
    assert went(ir, request_) == to_


ANIMAL = {
    name: (ValueMatch("animal", Match.EXACT, name),)
    for name in ("whale", "dolphin", "shark", "kraken", "hydra")
}


def path(value: str, **more: object) -> HttpMatch:
    return HttpMatch(path=PathMatch(Match.PREFIX, value), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "to_"),
    [
        (get("/?animal=whale"), "a"),
        (get("/?animal=dolphin"), "b"),
        (get("/?animal=whale&otherparam=irrelevant"), "a"),
        (get("/?color=blue"), 404),
        (get("/?animal=whaledolphin"), 404),
        (get("/"), 404),
        (get("/path1?animal=whale"), "c"),
        (get("/?animal=whale", version="one"), "d"),
        (get("/path3?animal=shark"), "e"),
        (get("/path4?animal=kraken", version="three"), "e"),
        (get("/?animal=shark"), 404),
        (get("/path4?animal=kraken"), 404),
        (get("/path5?animal=hydra"), "f"),
    ],
)
def test_query_parameters(request_: HttpRequest, to_: str | int) -> None:
    ir = http(
        route(
            rule("a", HttpMatch(query=ANIMAL["whale"])),
            rule("b", HttpMatch(query=ANIMAL["dolphin"])),
            rule("c", path("/path1", query=ANIMAL["whale"])),
            rule("d", HttpMatch(headers=(header("version", "one"),), query=ANIMAL["whale"])),
            rule(
                "e",
                path("/path3", query=ANIMAL["shark"]),
                path("/path4", query=ANIMAL["kraken"], headers=(header("version", "three"),)),
            ),
            rule("f", path("/path5")),
            rule("g", HttpMatch(query=ANIMAL["hydra"])),
        )
    )
    assert went(ir, request_) == to_


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (exact("/a"), prefix("/a")),
        (exact("/a"), HttpMatch(path=PathMatch(Match.REGEX, "/a|/b"))),
        (prefix("/a"), prefix("/")),
        (prefix("/a"), HttpMatch(method=("GET",), headers=(header("x", "y"),))),
        (HttpMatch(method=("GET",)), HttpMatch(headers=(header("x", "y"),))),
        (HttpMatch(headers=(header("x", "y"),)), HttpMatch(query=ANIMAL["whale"])),
        (HttpMatch(query=ANIMAL["whale"]), HttpMatch()),
        (
            HttpMatch(headers=(header("x", "y"), header("z", "z"))),
            HttpMatch(headers=(header("x", "y"),), query=ANIMAL["whale"]),
        ),
    ],
)
def test_the_better_match_counts_whatever_stands_first(better: HttpMatch, worse: HttpMatch) -> None:
    request = HttpRequest("GET", "echo", "/a?animal=whale", (("x", "y"), ("z", "z")))
    first, second = rule("good", better), rule("bad", worse)
    for ir in (
        http(route(first, second)),
        http(route(second, first)),
        http(route(second), route(first)),
    ):
        assert went(ir, request) == "good"


def test_among_equals_the_first_counts() -> None:
    ir = http(route(rule("one", prefix("/a"))), route(rule("two", prefix("/a/"))))
    assert went(ir, get("/a/b")) == "one"


def test_hosts_come_before_paths() -> None:
    ir = http(
        route(rule("none", exact("/a"))),
        route(rule("any", exact("/a")), hosts=(AnyHost(),)),
        route(rule("short", prefix("/a")), hosts=(Suffix(("b",)),)),
        route(rule("long", prefix("/")), hosts=(Suffix(("a", "b")),)),
        route(rule("exact", prefix("/")), hosts=(Exact("x.a.b"),)),
    )
    assert went(ir, get("/a", "X.A.B.:8080")) == "exact"
    assert went(ir, get("/a", "y.a.b")) == "long"
    assert went(ir, get("/a", "a.b")) == "short"
    assert went(ir, get("/a", "elsewhere")) == "none"


def test_no_route_is_404_and_so_is_no_routes() -> None:
    assert went(http(route(rule("a", prefix("/a")))), get("/b")) == 404
    assert went(http(), get("/b")) == 404


# -------------------------------------------------------------------------------------- paths


def test_paths_are_normalised_before_they_are_compared() -> None:
    ir = http(route(rule("open", prefix("/public")), rule("shut", prefix("/admin"))))
    assert went(ir, get("/public/../admin")) == "shut"
    assert went(ir, get("//admin")) == "shut"
    assert went(ir, get("/public/%2e%2e/admin")) == "shut"
    assert went(ir, get("/public%2f..%2fadmin")) == 400
    sent = verdict(ir, get("/public/./a//b?q=//"))
    assert isinstance(sent, Forward)
    assert isinstance(sent.request, HttpRequest)
    assert sent.request.path == "/public/a/b?q=//"


# ------------------------------------------------------------------------------------ filters


def filtered(*filters: RuleFilter, match: HttpMatch | None = None) -> Outbound:
    return http(route(rule("a", *([match] if match else []), filters=filters)))


def arrived(ir: Outbound, request: HttpRequest) -> HttpRequest:
    found = verdict(ir, request)
    assert isinstance(found, Forward)
    assert isinstance(found.request, HttpRequest)
    return found.request


def test_headers_are_set_added_and_removed_whatever_their_case() -> None:
    change = HeaderChange(set=(("X-Set", "new"),), add=(("X-Add", "more"),), remove=("X-Gone",))
    headers = (("x-set", "old"), ("x-add", "first"), ("x-gone", "a"), ("Other", "kept"))
    got = arrived(filtered(change), HttpRequest(headers=headers))
    assert got.header("X-Set") == "new"
    assert got.header("x-add") == "first,more"
    assert got.header("x-gone") is None
    assert got.header("other") == "kept"


def test_changes_of_responses_wait() -> None:
    change = HeaderChange(on_response=True, set=(("x", "y"),))
    found = verdict(filtered(change), get())
    assert isinstance(found, Forward)
    assert found.response == (change,)
    assert arrived(filtered(change), get()).headers == ()


def test_filters_of_a_backend_come_after_those_of_its_rule() -> None:
    backend = to("a", filters=(HeaderChange(set=(("x", "backend"),)),))
    ir = http(route(rule("a", filters=(HeaderChange(set=(("x", "rule"),)),), backends=(backend,))))
    assert arrived(ir, get()).header("x") == "backend"


@pytest.mark.parametrize(
    ("redirect", "prefix_", "path_", "location"),
    [
        (Redirect(path=PathChange(prefix="/r")), "/o", "/o/lemon", "http://echo/r/lemon"),
        (Redirect(path=PathChange(full="/f")), "/full", "/full/x?q", "http://echo/f?q"),
        (Redirect(host="example.org"), "/", "/a", "http://example.org/a"),
        (Redirect(port=8083), "/", "/a", "http://echo:8083/a"),
        (Redirect(port=80), "/", "/a", "http://echo/a"),
        (Redirect(scheme="https"), "/", "/a", "https://echo/a"),
        (Redirect(scheme="https", port=443), "/", "/a", "https://echo/a"),
        (Redirect(scheme="https", port=80), "/", "/a", "https://echo:80/a"),
        (Redirect(host="::1", port=81), "/", "/a", "http://[::1]:81/a"),
    ],
)
def test_redirects(redirect: Redirect, prefix_: str, path_: str, location: str) -> None:
    found = verdict(filtered(redirect, match=prefix(prefix_)), get(path_))
    assert isinstance(found, Reply)
    assert (found.status, found.location) == (302, location)


def test_a_redirect_keeps_the_port_of_the_request_unless_the_scheme_changes() -> None:
    request = get("/a", "echo:8080")
    found = verdict(filtered(Redirect(host="b", status=308)), request)
    assert isinstance(found, Reply)
    assert (found.status, found.location) == (308, "http://b:8080/a")
    found = verdict(filtered(Redirect(scheme="https")), request)
    assert isinstance(found, Reply)
    assert found.location == "https://echo/a"


def test_a_prefix_that_did_not_match_is_not_replaced() -> None:
    change = PathChange(prefix="/b")
    for each in (Redirect(path=change), Rewrite(path=change)):
        assert went(filtered(each, match=exact("/a")), get("/a")) == 500
        assert went(filtered(each, match=prefix("/a")), get("/a")) in (302, "a")


def test_rewrites() -> None:
    ir = filtered(Rewrite(host="b.example", path=PathChange(prefix="/")), match=prefix("/strip"))
    got = arrived(ir, get("/strip/three?q"))
    assert (got.authority, got.path) == ("b.example", "/three?q")


def test_a_share_of_requests_is_made_to_fail() -> None:
    ir = filtered(Fail(503, 14, "not now", 1, 4))
    assert [went(ir, get(), chance) for chance in (0.0, 0.24, 0.25, 0.9)] == [503, 503, "a", "a"]


def test_forbidden_requests() -> None:
    found = verdict(filtered(Forbid("traffic not allowed")), get())
    assert found == Reply(403, origin("a"), message="traffic not allowed")


def test_copies_change_nothing_and_are_told() -> None:
    mirror = Mirror(TargetId("east", "mesh", "shadow", 80), 1, 2)
    ir = filtered(mirror)
    assert went(ir, get()) == "a"
    said = [[s.text for s in outbound(ir, get(), EVERYBODY, chance=c).steps] for c in (0.4, 0.6)]
    assert [any("shadow" in text for text in texts) for texts in said] == [True, False]


# ----------------------------------------------------------------------------------- backends


def test_weights() -> None:
    ir = http(route(rule("x", backends=(to("a", 70), to("none", 0), to("b", 30)))))
    assert [went(ir, get(), chance) for chance in (0.0, 0.699, 0.701, 0.999, 1.0)] == [
        "a", "a", "b", "b", "b",
    ]  # fmt: skip


def test_no_weight_at_all_is_500() -> None:
    assert went(http(route(rule("x", backends=(to("a", 0), to("b", 0))))), get()) == 500
    assert went(http(route(rule("x", backends=()))), get()) == 500
    assert went(http(route(rule("x", spread=Spread.NONE))), get()) == 500


def test_an_invalid_backend_keeps_its_share() -> None:
    refuse = Refuse(500, "Service not found b", origin("b"), 1)
    ir = http(route(rule("x", backends=(to("a"), refuse))))
    assert went(ir, get(), 0.4) == "a"
    assert verdict(ir, get(), 0.5) == Reply(500, origin("b"), message="Service not found b")


def test_the_first_that_is_ready() -> None:
    ir = http(route(rule("x", backends=(to("a"), to("b")), spread=Spread.FIRST)))
    for names, expected in ((("a", "b"), "a"), (("b",), "b")):
        found = outbound(ir, get(), behind(*names)).verdict
        assert isinstance(found, Forward)
        assert found.target.id.service == expected
    found = outbound(ir, get(), behind()).verdict
    assert isinstance(found, Reply)
    assert found.status == 503


def test_failover_goes_in_order() -> None:
    backend = To(target("a"), origin("a"), failover=(target("a", "west"), target("a", "north")))
    ir = http(route(rule("x", backends=(backend,))))
    for names, cluster, count in (
        (("a", "a@west"), "east", 0),
        (("a@west", "a@north"), "west", 1),
        (("a@north",), "north", 2),
    ):
        found = outbound(ir, get(), behind(*names)).verdict
        assert isinstance(found, Forward)
        assert (found.target.id.cluster, found.failover) == (cluster, count)


@pytest.mark.parametrize("health", [Health.DRAINING, Health.UNHEALTHY])
def test_only_healthy_endpoints_take_new_work(health: Health) -> None:
    found = outbound(http(route(rule("a"))), get(), behind("a", health=health)).verdict
    assert isinstance(found, Reply)
    assert found.status == 503


def test_mesh_tls_with_nobody_to_expect_reaches_nobody() -> None:
    for peers, status in ((frozenset[Spiffe](), 503), (frozenset({Spiffe("td", ())}), None)):
        meshed = Target(target("a").id, peers=peers, tls=TlsMode.MESH)
        ir = http(route(rule("x", backends=(To(meshed, origin("a")),))))
        found = verdict(ir, get())
        assert isinstance(found, Forward if status is None else Reply)


def test_the_original_destination() -> None:
    change = HeaderChange(set=(("x", "y"),))
    ir = http(route(rule("x", backends=(OriginalDst(origin("e"), filters=(change,)),))))
    found = verdict(ir, get())
    assert isinstance(found, ToOriginal)
    assert isinstance(found.request, HttpRequest)
    assert found.request.header("x") == "y"
    refused = OriginalDst(origin("e"), filters=(Forbid(),))
    assert went(http(route(rule("x", backends=(refused,)))), get()) == 403


# --------------------------------------------------------------------------------------- gRPC

COLOR = "faces.Color"


def rpc(method: str, service: str = COLOR, **headers: str) -> HttpRequest:
    return HttpRequest("POST", "color", f"/{service}/{method}", tuple(headers.items()), version=2)


DENY = Fail(403, 7, "traffic not allowed")
EGRESS = toward(
    Grpc(
        (
            call("color", GrpcMatch(COLOR, "Edge")),
            call("one", GrpcMatch(COLOR, "Center", headers=(header("user", "center"),))),
            call("deny", filters=(DENY,)),
        )
    )
)


def test_the_workshops_color_calls() -> None:
    assert went(EGRESS, rpc("Edge")) == "color"
    assert went(EGRESS, rpc("Center", user="center")) == "one"
    found = verdict(EGRESS, rpc("Center"))
    assert found == Reply(200, origin("deny"), 7, "traffic not allowed")


def test_ranks_of_calls() -> None:
    ir = toward(
        Grpc(
            (
                call("all"),
                call("method", GrpcMatch(method="Edge")),
                call("service", GrpcMatch(COLOR)),
                call("both", GrpcMatch(COLOR, "Edge")),
                call("header", GrpcMatch(headers=(header("a", "b"),))),
            )
        )
    )
    assert went(ir, rpc("Edge")) == "both"
    assert went(ir, rpc("Center", a="b")) == "service"
    assert went(ir, rpc("Edge", "other", a="b")) == "method"
    assert went(ir, rpc("X", "other", a="b")) == "header"
    assert went(ir, rpc("X", "other")) == "all"


def test_grpc_answers_are_grpc() -> None:
    empty = toward(Grpc((call("a", GrpcMatch("x")),)))
    assert verdict(empty, rpc("Edge")) == Reply(200, Default("test"), 5, "no route matches")
    refuse = Refuse(500, "Service not found b", origin("b"))
    ir = toward(Grpc((call("a", backends=(refuse,)),)))
    assert verdict(ir, rpc("Edge")) == Reply(200, origin("b"), 14, "Service not found b")
    forbidden = toward(Grpc((call("a", filters=(Forbid(),)),)))
    assert verdict(forbidden, rpc("Edge")) == Reply(200, origin("a"), 7, "forbidden")
    found = outbound(toward(Grpc((call("a"),))), rpc("Edge"), behind()).verdict
    assert isinstance(found, Reply)
    assert (found.status, found.grpc) == (200, 14)


# ---------------------------------------------------------------------------------- protocols


@pytest.mark.parametrize(
    ("ir", "request_", "end"),
    [
        (toward(Http1((route(rule("a")),))), get(), "a"),
        (toward(Http1((route(rule("a")),))), HttpRequest(version=2), "Close"),
        (toward(Http2((route(rule("a")),))), HttpRequest(version=2), "a"),
        (toward(Http2((route(rule("a")),))), get(), "Close"),
        (toward(Http2((route(rule("a")),))), RawBytes(), "Close"),
        (toward(Grpc((call("a"),))), get(), "Close"),
        (toward(Grpc((call("a"),))), TlsHello(), "Close"),
        (toward(Tls((tls("a"),))), TlsHello("x"), "a"),
        (toward(Tls((tls("a"),))), get(), "Close"),
        (toward(Tls(())), TlsHello("x"), "Close"),
        (toward(Tcp((tcp("a"), tcp("b")))), RawBytes(), "a"),
        (toward(Tcp((tcp("a"),))), get(), "a"),
        (toward(Tcp(())), RawBytes(), "Close"),
        (toward(Detect(1, (route(rule("h")),), (tls("s"),), (tcp("t"),))), get(), "h"),
        (toward(Detect(1, (route(rule("h")),), (tls("s"),), (tcp("t"),))), TlsHello("x"), "s"),
        (toward(Detect(1, (route(rule("h")),), (tls("s"),), (tcp("t"),))), RawBytes(), "t"),
        (toward(Detect(1, (route(rule("h")),), (), (tcp("t"),))), TlsHello("x"), "t"),
        (toward(Tcp((tcp("a", backends=()),))), RawBytes(), "Close"),
        (toward(Tcp((tcp("a", filters=(Forbid(),)),))), RawBytes(), "Close"),
        (toward(Tcp((tcp("a", backends=(OriginalDst(origin("e")),)),))), RawBytes(), "ToOriginal"),
        (toward(Tcp((tcp("a", backends=(Refuse(500, "no", origin("b")),)),))), RawBytes(), "Close"),
        (toward(Tcp((tcp("a", filters=(Redirect(), HeaderChange())),))), RawBytes(), "a"),
    ],
)
def test_protocols(ir: Outbound, request_: Request, end: str) -> None:
    assert went(ir, request_) == end


def test_server_names() -> None:
    ir = toward(
        Tls(
            (
                tls("short", snis=(Suffix(("b",)),)),
                tls("long", snis=(Suffix(("a", "b")),)),
                tls("exact", snis=(Exact("x.a.b"),)),
            )
        )
    )
    assert went(ir, TlsHello("X.a.b.")) == "exact"
    assert went(ir, TlsHello("y.a.b")) == "long"
    assert went(ir, TlsHello("a.b")) == "short"
    closed = verdict(ir, TlsHello("elsewhere"))
    assert isinstance(closed, Close)
    assert "elsewhere" in closed.message
    assert went(ir, TlsHello()) == "Close"


def test_a_stream_without_endpoints_is_closed_and_a_share_made_to_fail() -> None:
    found = outbound(toward(Tcp((tcp("a"),))), RawBytes(), behind()).verdict
    assert found == Close(origin("a"), "no endpoint is ready")
    ir = toward(Tcp((tcp("a", filters=(Fail(500, 2, "x", 1, 2),)),)))
    assert [went(ir, RawBytes(), chance) for chance in (0.4, 0.5)] == ["Close", "a"]


# -------------------------------------------------------------------------------------- steps


def test_steps_say_what_and_whose() -> None:
    made = rule(
        "a",
        HttpMatch(PathMatch(Match.PREFIX, "/v2"), (header("x", "y"),), ANIMAL["whale"], ("GET",)),
        timeouts=Timeouts(request=1_500, idle=2_000),
        retry=Retry(3),
        backends=(to("a", 3), to("b", 1)),
    )
    decision = outbound(http(route(made)), get("/v2?animal=whale", x="y"), EVERYBODY)
    told = [(step.source, step.text) for step in decision.steps]
    assert told == [
        (Default("test"), "port 80 speaks whatever comes"),
        (
            origin("a"),
            "matched: path prefix /v2, method GET, query animal exact 'whale', header x exact 'y'",
        ),
        (origin("a"), "timeouts: request 1500 ms, idle 2 s"),
        (origin("a"), "tried again 3 times at most"),
        (origin("a"), "chosen by weight: 3 of 4"),
        (origin("a"), "sent to a.mesh in east: 1 ready"),
    ]
