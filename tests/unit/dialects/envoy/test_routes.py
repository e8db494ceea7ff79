from __future__ import annotations

from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.config.route.v3 import route_pb2

from isthmus.dialects.envoy.routes import PROTOCOL, clusters_of, of_outbound
from isthmus.ir.names import Default, Exact, Origin, Ref, Suffix, TargetId
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    GrpcRoute,
    GrpcRule,
    Http1,
    HttpRoute,
    HttpRule,
    Outbound,
    Spread,
    Tcp,
)
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
)
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, Tls, To

WHO = Default("nobody")
CART = TargetId("here", "shop", "cart", 80)
PARENT = Ref("here", "", "Service", "shop", "cart")
KEY = "p80.cart.shop.here.internal.td"


def to(name: TargetId = CART, weight: int = 1, **said: object) -> To:
    return To(Target(name, trust_domain="td", **said), WHO, weight)  # type: ignore[arg-type]


def rule(
    *backends: Backend,
    match: HttpMatch | None = None,
    filters: tuple[RuleFilter, ...] = (),
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    retry: Retry | None = None,
    spread: Spread = Spread.WEIGHTED,
) -> HttpRule:
    matches = (match,) if match is not None else ()
    return HttpRule(WHO, matches, filters, backends or (to(),), spread, timeouts, retry)


def configured(*routes: HttpRoute) -> route_pb2.RouteConfiguration:
    return of_outbound("name", Outbound(PARENT, WHO, 80, Http1(routes)))


def wires(*rules: HttpRule) -> list[pb.Route]:
    (host,) = configured(HttpRoute(WHO, rules=rules)).virtual_hosts
    return list(host.routes)


def test_what_cannot_have_been_seen_is_tried_again_elsewhere() -> None:
    (wire,) = wires(rule())
    policy = wire.route.retry_policy
    assert set(policy.retry_on.split(",")) == {
        "connect-failure",
        "refused-stream",
        "reset-before-request",
    }
    assert policy.num_retries.value == 2
    assert policy.retry_host_predicate[0].name.endswith("previous_hosts")
    assert wire.request_body_buffer_limit.value == 65536


def test_retries_that_somebody_asked_for_come_on_top() -> None:
    (wire,) = wires(rule(retry=Retry(5, ((502, 504), (503, 503)), (14, 2), attempt_timeout=250)))
    policy = wire.route.retry_policy
    assert policy.num_retries.value == 5
    assert "retriable-status-codes" in policy.retry_on.split(",")
    assert "unavailable" in policy.retry_on.split(",")
    assert list(policy.retriable_status_codes) == [502, 503, 504]
    assert policy.per_try_timeout.ToMilliseconds() == 250
    assert policy.retry_back_off.base_interval.ToMilliseconds() == 25
    assert policy.retry_back_off.max_interval.ToMilliseconds() == 250


def test_without_a_limit_nothing_ends_a_request() -> None:
    (wire,) = wires(rule())
    assert wire.route.HasField("timeout")
    assert wire.route.timeout.ToMilliseconds() == 0
    assert not wire.route.HasField("idle_timeout")


def test_the_shorter_limit_counts() -> None:
    (wire,) = wires(rule(timeouts=Timeouts(request=3000, response=2000, idle=500, attempt=100)))
    assert wire.route.timeout.ToMilliseconds() == 2000
    assert wire.route.idle_timeout.ToMilliseconds() == 500
    assert wire.route.retry_policy.per_try_timeout.ToMilliseconds() == 100


def test_the_other_sidecar_is_told_what_was_spoken_where_there_may_be_one() -> None:
    (meshed,) = wires(rule(to(tls=Tls.MESH)))
    assert [each.header.key for each in meshed.request_headers_to_add] == [PROTOCOL]
    (plain,) = wires(rule())
    assert not plain.request_headers_to_add
    (original,) = wires(rule(OriginalDst(WHO)))
    assert original.route.cluster == "passthrough"
    assert not original.request_headers_to_add


def test_weights_are_told_and_backends_that_cannot_be_keep_their_share() -> None:
    other = TargetId("here", "shop", "till", 80)
    refused = Refuse(500, "Service not found", WHO, 1)
    answer, rest = wires(rule(to(weight=2), refused, to(other, weight=1)))
    assert answer.direct_response.status == 500
    assert answer.direct_response.body.inline_string == "Service not found"
    assert answer.match.runtime_fraction.default_value.numerator == 250_000
    weights = {each.name: each.weight.value for each in rest.route.weighted_clusters.clusters}
    assert weights == {KEY: 2, KEY.replace("cart", "till"): 1}


def test_only_backends_that_cannot_be_answer_everything() -> None:
    one, two = wires(rule(Refuse(500, "a", WHO, 1), Refuse(500, "b", WHO, 1)))
    assert one.match.runtime_fraction.default_value.numerator == 500_000
    assert not two.match.HasField("runtime_fraction")


def test_of_several_the_first_where_that_is_asked_for_and_none_where_there_is_none() -> None:
    other = TargetId("here", "shop", "till", 80)
    (wire,) = wires(rule(to(), to(other), spread=Spread.FIRST))
    assert wire.route.cluster == KEY
    (none,) = wires(rule(spread=Spread.NONE))
    assert none.direct_response.status == 500


def test_a_weight_of_nothing_gets_nothing() -> None:
    other = TargetId("here", "shop", "till", 80)
    (wire,) = wires(rule(to(weight=1), to(other, weight=0)))
    assert wire.route.cluster == KEY


def test_failover_is_an_aggregate_of_its_members() -> None:
    other = Target(TargetId("east", "shop", "cart", 80), trust_domain="td")
    backend = To(Target(CART, trust_domain="td"), WHO, failover=(other,))
    (wire,) = wires(rule(backend))
    assert wire.route.cluster == f"failover|{KEY}|p80.cart.shop.east.internal.td"
    found = Outbound(PARENT, WHO, 80, Http1((HttpRoute(WHO, rules=(rule(backend),)),)))
    assert list(clusters_of(found)) == [wire.route.cluster]


def test_matches_are_tried_by_the_specifications_rank_over_all_routes() -> None:
    def path(match: Match, value: str) -> HttpMatch:
        return HttpMatch(PathMatch(match, value))

    first = HttpRoute(WHO, rules=(rule(match=path(Match.PREFIX, "/")),))
    second = HttpRoute(
        WHO,
        rules=(
            rule(match=path(Match.PREFIX, "/long/er")),
            rule(match=path(Match.EXACT, "/x")),
            rule(match=HttpMatch(PathMatch(Match.PREFIX, "/"), method=("GET",))),
        ),
    )
    (host,) = configured(first, second).virtual_hosts
    said = [
        (each.match.path or each.match.path_separated_prefix or each.match.prefix)
        for each in host.routes
    ]
    assert said == ["/x", "/long/er", "/", "/"]
    assert host.routes[2].match.headers[0].name == ":method"


def test_hosts_are_virtual_hosts_and_the_port_does_not_count() -> None:
    wire = configured(
        HttpRoute(WHO, (Exact("a.example"),), (rule(),)),
        HttpRoute(WHO, (Suffix(("example",)),), (rule(),)),
        HttpRoute(WHO, (), (rule(),)),
    )
    assert wire.ignore_port_in_host_matching
    found = {host.domains[0]: len(host.routes) for host in wire.virtual_hosts}
    assert found == {"*.example": 3, "a.example": 4, "*": 2}
    twins = [list(host.domains) for host in wire.virtual_hosts]
    assert twins == [["*.example", "*.example."], ["a.example", "a.example."], ["*"]]
    for host in wire.virtual_hosts:  # hosts of two readings are refused before all else
        assert host.routes[0].direct_response.status == 400
        assert host.routes[0].match.headers[0].name == ":authority"


def test_routes_bear_their_labels_and_the_name_of_their_object() -> None:
    ref = Ref("here", "gateway.networking.k8s.io", "HTTPRoute", "shop", "r")
    route = HttpRoute(Origin(ref), rules=(HttpRule(Origin(ref), backends=(to(),)),))
    (host,) = configured(route).virtual_hosts
    (wire,) = host.routes
    assert wire.name == "gateway.networking.k8s.io/HTTPRoute/shop/r"
    labels = wire.metadata.filter_metadata["isthmus"]["labels"]
    assert labels == "core|Service|shop|cart|80||gateway.networking.k8s.io|HTTPRoute|shop|r"


def test_grpc_calls_and_the_http_of_detected_ports_have_routes_and_bytes_none() -> None:
    call = GrpcRule(WHO, (GrpcMatch("pkg.Svc", "Do"),), backends=(to(),))
    grpc = of_outbound("n", Outbound(PARENT, WHO, 80, Grpc((GrpcRoute(WHO, (), (call,)),))))
    (wire,) = grpc.virtual_hosts[0].routes
    assert wire.match.path == "/pkg.Svc/Do"
    assert wire.match.HasField("grpc")
    detect = Detect(1, (HttpRoute(WHO, rules=(rule(),)),))
    assert of_outbound("n", Outbound(PARENT, WHO, 80, detect)).virtual_hosts[0].routes
    assert not of_outbound("n", Outbound(PARENT, WHO, 80, Tcp())).virtual_hosts[0].routes


# ---------------------------------------------------------------------------------- filters


def filtered(*filters: RuleFilter, prefix: str = "/") -> pb.Route:
    (wire,) = wires(rule(match=HttpMatch(PathMatch(Match.PREFIX, prefix)), filters=filters))
    return wire


def test_headers_are_changed_as_written() -> None:
    change = HeaderChange(set=(("A", "100%"),), add=(("b", "2"),), remove=("c",))
    wire = filtered(change, HeaderChange(on_response=True, remove=("d",)))
    added = [(one.header.key, one.header.value) for one in wire.request_headers_to_add]
    assert added == [("A", "100%%"), ("b", "2")]
    overwrite, append = (one.append_action for one in wire.request_headers_to_add)
    assert overwrite != append
    assert list(wire.request_headers_to_remove) == ["c"]
    assert list(wire.response_headers_to_remove) == ["d"]


def test_a_redirection_keeps_what_it_does_not_name() -> None:
    wire = filtered(Redirect(301, "https", "a.example", PathChange(full="/x"), 8443)).redirect
    assert (wire.host_redirect, wire.port_redirect, wire.path_redirect) == ("a.example", 8443, "/x")
    assert wire.scheme_redirect == "https"
    assert wire.response_code == pb.RedirectAction.MOVED_PERMANENTLY
    bare = filtered(Redirect()).redirect
    assert bare == pb.RedirectAction(response_code=pb.RedirectAction.FOUND)


def test_prefixes_are_replaced_by_whole_segments() -> None:
    def rewritten(prefix: str, new: str) -> pb.RouteAction:
        return filtered(Rewrite(path=PathChange(prefix=new)), prefix=prefix).route

    assert rewritten("/v1", "/v2").prefix_rewrite == "/v2"
    assert rewritten("/v1/", "/v2/").prefix_rewrite == "/v2"
    assert rewritten("/", "/v2").prefix_rewrite == "/v2/"
    gone = rewritten("/v1", "/").regex_rewrite
    assert (gone.pattern.regex, gone.substitution) == ("^/v1/*", "/")


def test_a_whole_path_and_the_host_are_replaced() -> None:
    wire = filtered(Rewrite("b.example", PathChange(full="/one"))).route
    assert wire.host_rewrite_literal == "b.example"
    assert wire.regex_rewrite.substitution == "/one"


def test_what_answers_by_itself_is_not_passed_on() -> None:
    assert filtered(Forbid("no")).direct_response.status == 403
    assert filtered(Fail(418, 2, "teapot")).direct_response.status == 418


def test_a_share_of_requests_fails_and_the_rest_goes_on() -> None:
    failing = rule(filters=(Fail(418, 2, "teapot", 1, 4),))
    answer, rest = wires(failing)
    assert answer.direct_response.status == 418
    assert answer.match.runtime_fraction.default_value.numerator == 250_000
    assert rest.route.cluster == KEY


def test_shares_are_ends_of_neighbouring_ranges() -> None:
    gone = Refuse(500, "gone", WHO, 1)
    first, second, rest = wires(rule(to(weight=2), gone, gone))
    ends = [one.match.runtime_fraction.default_value.numerator for one in (first, second)]
    assert ends == [250_000, 500_000]
    assert rest.route.cluster == KEY


def test_without_a_weight_everything_fails() -> None:
    (answer,) = wires(rule(to(weight=0)))
    assert answer.direct_response.status == 500
    (none,) = wires(rule(to(), spread=Spread.NONE))
    assert none.direct_response.status == 500


def test_grpc_is_told_codes() -> None:
    def told(code: int) -> pb.Route:
        said = GrpcRule(WHO, filters=(Fail(500, code, "no"),), backends=(to(),))
        found = Outbound(PARENT, WHO, 80, Grpc((GrpcRoute(WHO, rules=(said,)),)))
        (host,) = of_outbound("n", found).virtual_hosts
        return host.routes[0]

    assert told(7).direct_response.status == 403
    assert told(14).direct_response.status == 503
    (header,) = told(9).response_headers_to_add
    assert (header.header.key, header.header.value) == ("grpc-status", "9")


def test_the_path_of_a_request_is_only_replaced_by_prefix_where_one_matched() -> None:
    exact = HttpMatch(PathMatch(Match.EXACT, "/a"))
    change = PathChange(prefix="/b")
    for one in (Rewrite(path=change), Redirect(path=change)):
        (answer,) = wires(rule(match=exact, filters=(one,)))
        assert answer.direct_response.status == 500


def test_the_port_of_a_redirection_is_left_out_where_the_scheme_implies_it() -> None:
    def ports(said: Redirect, port: int = 80) -> list[int]:
        route = HttpRoute(WHO, rules=(rule(filters=(said,)),))
        found = of_outbound("name", Outbound(PARENT, WHO, port, Http1((route,))))
        return [one.redirect.port_redirect for one in found.virtual_hosts[0].routes]

    assert ports(Redirect(host="a.example")) == [0]
    assert ports(Redirect(host="a.example"), 8080) == [8080, 0]
    assert ports(Redirect(host="a.example", scheme="https"), 8080) == [0]
    assert ports(Redirect(host="a.example", port=80)) == [0]
    assert ports(Redirect(scheme="https")) == [443, 0]
    assert ports(Redirect(port=8083)) == [8083]


def test_copies_go_to_where_they_are_told_for_their_share() -> None:
    other = TargetId("here", "shop", "till", 80)
    wire = filtered(Mirror(other, 1, 10, "td")).route
    (policy,) = wire.request_mirror_policies
    assert policy.cluster == "p80.till.shop.here.internal.td"
    assert policy.runtime_fraction.default_value.numerator == 100_000
    assert policy.disable_shadow_host_suffix_append
    found = Outbound(
        PARENT,
        WHO,
        80,
        Http1((HttpRoute(WHO, rules=(rule(filters=(Mirror(other, 1, 1, "td"),)),)),)),
    )
    assert policy.cluster in set(clusters_of(found))


def test_headers_of_a_rule_and_of_its_backend_are_one_change() -> None:
    own = HeaderChange(set=(("a", "2"),), remove=("b",))
    one = To(Target(CART, trust_domain="td"), WHO, 1, filters=(own,))
    (wire,) = wires(rule(one, filters=(HeaderChange(set=(("A", "1"),), add=(("B", "1"),)),)))
    assert [(each.header.key, each.header.value) for each in wire.request_headers_to_add] == [
        ("a", "2")
    ]
    assert list(wire.request_headers_to_remove) == ["b"]


def test_backends_that_change_paths_have_a_route_each() -> None:
    own = Rewrite(path=PathChange(full="/x"))
    one = To(Target(CART, trust_domain="td"), WHO, 1, filters=(own,))
    first, second = wires(rule(one, to(weight=3)))
    assert first.match.runtime_fraction.default_value.numerator == 250_000
    assert first.route.regex_rewrite.substitution == "/x"
    assert not second.route.HasField("regex_rewrite")
