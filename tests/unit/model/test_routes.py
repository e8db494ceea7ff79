from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.intake import warnings
from tests.unit.model.mesh import (
    converted,
    kind_of,
    of,
    paths,
    seen,
    stored,
    told,
    unreadable,
    warned,
)

GATEWAY = "gateway.networking.k8s.io/v1"
ALPHA = "gateway.networking.k8s.io/v1alpha2"
POLICY = "policy.linkerd.io/v1beta3"
SERVICE = "{group: '', kind: Service, name: cider, port: 8080}"
EGRESS = "{group: policy.linkerd.io, kind: EgressNetwork, name: outer}"


def http(rule: str, *, api: str = GATEWAY, parent: str = SERVICE, **meta: object) -> dict[str, Any]:
    return of(api, "HTTPRoute", f"{{parentRefs: [{parent}], rules: [{rule}]}}", **meta)


def grpc(rule: str, parent: str = SERVICE, **meta: object) -> dict[str, Any]:
    return of(GATEWAY, "GRPCRoute", f"{{parentRefs: [{parent}], rules: [{rule}]}}", **meta)


# ------------------------------------------------------------------------------------- defaults


def test_an_http_route_gets_its_defaults() -> None:
    made = stored(http("{backendRefs: [{name: press, port: 80}]}"))
    rule = made["spec"]["rules"][0]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    backend = rule["backendRefs"][0]
    assert (backend["group"], backend["kind"], backend["weight"]) == ("", "Service", 1)
    redirect = stored(http("{filters: [{type: RequestRedirect, requestRedirect: {}}]}"))
    assert redirect["spec"]["rules"][0]["filters"][0]["requestRedirect"]["statusCode"] == 302


def test_a_route_without_rules_matches_everything() -> None:
    made = stored(of(GATEWAY, "HTTPRoute", f"{{parentRefs: [{SERVICE}]}}"))
    expected = [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]
    assert made["spec"]["rules"] == expected
    calls = stored(of(GATEWAY, "GRPCRoute", f"{{parentRefs: [{SERVICE}]}}"))
    assert "rules" not in calls["spec"]


def test_a_match_of_headers_alone_has_the_path_prefix_slash() -> None:
    made = stored(http("{matches: [{headers: [{name: a, value: b}]}]}"))
    match = made["spec"]["rules"][0]["matches"][0]
    assert match["path"] == {"type": "PathPrefix", "value": "/"}
    assert match["headers"][0]["type"] == "Exact"


def test_a_parent_that_names_no_kind_is_a_gateway() -> None:
    ref = stored(http("{}", parent="{name: entry}"))["spec"]["parentRefs"][0]
    assert ref == {"name": "entry", "group": "gateway.networking.k8s.io", "kind": "Gateway"}
    old = stored(http("{}", api=POLICY, parent="{name: entry, kind: Server}"))
    assert old["spec"]["parentRefs"][0]["group"] == "policy.linkerd.io"


# ---------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize("path", ["/", "/a", "/v2/", "/a.b/~c/%20/(d)", "/a/.hidden", "/..a"])
def test_good_paths(path: str) -> None:
    for kind in ("Exact", "PathPrefix"):
        assert told(http(f"{{matches: [{{path: {{type: {kind}, value: '{path}'}}}}]}}")) == []


@pytest.mark.parametrize(
    "path",
    ["a", "", "//", "/a//b", "/a/./b", "/a/../b", "/a/..", "/a/.", "/a%2fb", "/a%2Fb", "/a#b",
     "/ä", "/a b", "/a%zz", "/a?b"],
)  # fmt: skip
def test_bad_paths(path: str) -> None:
    rule = f"{{matches: [{{path: {{type: Exact, value: '{path}'}}}}]}}"
    assert set(paths(http(rule))) == {"spec.rules[0].matches[0].path.value"}


def test_linkerds_own_routes_need_absolute_paths_only() -> None:
    assert told(http("{matches: [{path: {type: Exact, value: /a//b}}]}", api=POLICY)) == []
    found = paths(http("{matches: [{path: {type: Exact, value: a}}]}", api=POLICY))
    assert found == ["spec.rules[0].matches[0].path.value"]


@pytest.mark.parametrize("regex", ["/(", "+", "(?=a)", r"\1", "a{1001}", "((a{100}){100}){100}"])
def test_expressions_that_are_not_re2_are_refused(regex: str) -> None:
    path = of(GATEWAY, "HTTPRoute", {"rules": [
        {"matches": [{"path": {"type": "RegularExpression", "value": regex}}]}]})  # fmt: skip
    assert paths(path) == ["spec.rules[0].matches[0].path.value"]
    matches = [{"type": "RegularExpression", "name": "a", "value": regex}]
    headers = {"rules": [{"matches": [{"headers": matches, "queryParams": matches}]}]}
    for api in (GATEWAY, POLICY):
        assert paths(of(api, "HTTPRoute", headers)) == [
            "spec.rules[0].matches[0].headers[0].value",
            "spec.rules[0].matches[0].queryParams[0].value",
        ]


def test_an_expression_is_bounded_in_length() -> None:
    long = {"type": "RegularExpression", "name": "a", "value": "a" * 4097}
    found = told(of(GATEWAY, "HTTPRoute", {"rules": [{"matches": [{"headers": [long]}]}]}))
    assert any("longer than 4096" in each for each in found)


# -------------------------------------------------------------------------------------- parents


@pytest.mark.parametrize(
    ("api", "kind", "rules"),
    [
        (GATEWAY, "HTTPRoute", "[{}]"),
        ("gateway.networking.k8s.io/v1beta1", "HTTPRoute", "[{}]"),
        (POLICY, "HTTPRoute", "[{}]"),
        (GATEWAY, "GRPCRoute", "[{}]"),
        (ALPHA, "TLSRoute", "[{backendRefs: [{name: a, port: 1}]}]"),
        (ALPHA, "TCPRoute", "[{backendRefs: [{name: a, port: 1}]}]"),
        (GATEWAY, "TCPRoute", "[{backendRefs: [{name: a, port: 1}]}]"),
    ],
)
def test_an_egress_parent_needs_a_port(api: str, kind: str, rules: str) -> None:
    spec = "{parentRefs: [%s], rules: %s}"
    assert paths(of(api, kind, spec % (EGRESS, rules))) == ["spec.parentRefs[0].port"]
    with_port = EGRESS.replace("}", ", port: 80}")
    assert told(of(api, kind, spec % (with_port, rules))) == []


def test_two_references_to_one_parent_differ_by_port_or_section() -> None:
    other = SERVICE.replace("8080", "9090")
    assert told(http("{}", parent=f"{SERVICE}, {other}")) == []
    assert paths(http("{}", parent=f"{SERVICE}, {SERVICE}")) == ["spec.parentRefs"]
    without = SERVICE.replace(", port: 8080", "")
    assert "must be specified" in told(http("{}", parent=f"{SERVICE}, {without}"))[0]
    elsewhere = SERVICE.replace("}", ", namespace: mill}")
    assert told(http("{}", parent=f"{SERVICE}, {elsewhere}")) == []
    assert told(http("{}", api=POLICY, parent=f"{SERVICE}, {SERVICE}")) == []


# ------------------------------------------------------------------------------------- backends


@pytest.mark.parametrize(
    ("backend", "good"),
    [
        ("{name: press, port: 8080}", True),
        ("{name: press}", False),
        ("{group: '', kind: Service, name: press}", False),
        ("{group: fruit.example, kind: Basket, name: press}", True),
        ("{group: policy.linkerd.io, kind: EgressNetwork, name: outer}", True),
    ],
)
def test_a_service_backend_needs_a_port(backend: str, good: bool) -> None:
    where = [] if good else ["spec.rules[0].backendRefs[0]"]
    rule = f"{{backendRefs: [{backend}]}}"
    assert paths(http(rule)) == where
    assert paths(grpc(rule)) == where
    for kind in ("TLSRoute", "TCPRoute"):
        assert paths(of(ALPHA, kind, f"{{rules: [{rule}]}}")) == where


def test_a_mirror_is_a_backend_too() -> None:
    mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: press}}}"
    where = "spec.rules[0].filters[0].requestMirror.backendRef"
    assert paths(http(f"{{filters: [{mirror}]}}")) == [where]
    assert paths(grpc(f"{{filters: [{mirror}]}}")) == [where]


def test_weights_have_bounds_and_all_zero_is_a_warning() -> None:
    many = "{backendRefs: [{name: a, port: 1, weight: 1000001}, {name: b, port: 1, weight: -1}]}"
    assert paths(http(many)) == [
        "spec.rules[0].backendRefs[0].weight",
        "spec.rules[0].backendRefs[1].weight",
    ]
    none = "{backendRefs: [{name: a, port: 1, weight: 0}]}"
    assert "weight is 0" in warned(http(none))[0]
    assert "weight is 0" in warned(of(ALPHA, "TCPRoute", f"{{rules: [{none}]}}"))[0]


# -------------------------------------------------------------------------------------- filters


HEADERS = "requestHeaderModifier: {set: [{name: a, value: b}]}"
REDIRECT = "{type: RequestRedirect, requestRedirect: {hostname: example.org}}"
REWRITE = "{type: URLRewrite, urlRewrite: {hostname: example.org}}"


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("{type: RequestHeaderModifier}", "must be specified for RequestHeaderModifier"),
        (f"{{type: RequestRedirect, {HEADERS}}}", "must be nil if the filter.type is not"),
        (f"{REDIRECT}, {REDIRECT}", "RequestRedirect filter cannot be repeated"),
        (f"{REWRITE}, {REWRITE}", "URLRewrite filter cannot be repeated"),
        (f"{REDIRECT}, {REWRITE}", "but not both"),
        (f"{{type: RequestHeaderModifier, {HEADERS}}}, {{type: RequestHeaderModifier, {HEADERS}}}",
         "RequestHeaderModifier filter cannot be repeated"),
        ("{type: CORS2}", "Unsupported value"),
        ("{type: RequestRedirect, requestRedirect: {statusCode: 304}}", "304"),
        ("{type: RequestRedirect, requestRedirect: {scheme: ftp}}", "ftp"),
        ("{type: RequestRedirect, requestRedirect: {hostname: '*.a'}}", "should match"),
        ("{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath}}}",
         "replaceFullPath must be specified"),
        (("{type: RequestRedirect, requestRedirect: "
         "{path: {type: ReplaceFullPath, replaceFullPath: b}}}"), "absolute path"),
        (("{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /a, "
         "replacePrefixMatch: /b}}}"), "type must be 'ReplacePrefixMatch'"),
        (("{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, percent: 1, "
         "fraction: {numerator: 1}}}"), "Only one of percent or fraction"),
        (("{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, "
         "fraction: {numerator: 101}}}"), "numerator must be less"),
        (("{type: RequestHeaderModifier, requestHeaderModifier: "
         "{set: [{name: 'a b', value: c}]}}"), "should match"),
        ('{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: a, value: "b\\nc"}]}}',
         "control characters"),
        ("{type: RequestHeaderModifier, requestHeaderModifier: {remove: ['']}}", "no header"),
        ("{type: CORS, cors: {allowOrigins: ['*', 'https://a']}}", "alongside"),
        ("{type: CORS, cors: {allowOrigins: [a.example]}}", "SCHEME://HOST"),
    ],
)  # fmt: skip
def test_bad_filters(filters: str, said: str) -> None:
    for rule in (
        f"{{filters: [{filters}]}}",
        f"{{backendRefs: [{{name: a, port: 1, filters: [{filters}]}}]}}",
    ):
        found = told(http(rule))
        assert any(said in each for each in found), found


def test_good_filters() -> None:
    cors = "{type: CORS, cors: {allowOrigins: ['https://*.a.example:8443', 'http://b'], maxAge: 9}}"
    rule = f"{{filters: [{{type: RequestHeaderModifier, {HEADERS}}}, {cors}, {REWRITE}]}}"
    assert warned(http(rule)) == ()
    assert told(http(f"{{filters: [{REDIRECT}]}}")) == []


def test_a_redirect_excludes_backends() -> None:
    found = told(http(f"{{filters: [{REDIRECT}], backendRefs: [{{name: a, port: 1}}]}}"))
    assert "must not be used together with backendRefs" in found[0]


@pytest.mark.parametrize(
    ("matches", "good"),
    [
        ("[{path: {value: /a}}]", True),
        ("null", True),
        ("[{path: {value: /a}}, {path: {value: /b}}]", False),
        ("[{path: {type: Exact, value: /a}}]", False),
        ("[{path: {type: RegularExpression, value: /a}}]", False),
    ],
)
def test_a_prefix_is_replaced_where_one_matched(matches: str, good: bool) -> None:
    change = "path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}"
    for each in (
        f"{{type: RequestRedirect, requestRedirect: {{{change}}}}}",
        f"{{type: URLRewrite, urlRewrite: {{{change}}}}}",
    ):
        outer = told(http(f"{{matches: {matches}, filters: [{each}]}}"))
        inner = told(
            http(f"{{matches: {matches}, backendRefs: [{{name: a, port: 1, filters: [{each}]}}]}}")
        )
        assert (outer == []) is good
        assert (inner == []) is good


def test_linkerds_own_routes_know_few_filters() -> None:
    assert told(http(f"{{filters: [{REDIRECT}]}}", api=POLICY)) == []
    kept = "{type: RequestRedirect, requestRedirect: {statusCode: 308}}"
    assert any("308" in each for each in told(http(f"{{filters: [{kept}]}}", api=POLICY)))
    assert any("URLRewrite" in e for e in told(http(
        "{filters: [{type: URLRewrite}]}", api=POLICY)))  # fmt: skip


# --------------------------------------------------------------------- bounds, timeouts, names


def test_matches_are_bounded_each_and_together() -> None:
    match: dict[str, Any] = {"path": {"value": "/a"}}
    rule = {"matches": [match] * 64}
    assert told(of(GATEWAY, "HTTPRoute", {"rules": [rule] * 2})) == []
    found = told(of(GATEWAY, "HTTPRoute", {"rules": [rule, rule, {"matches": [match]}]}))
    assert any("129" in each for each in found)
    assert paths(of(GATEWAY, "HTTPRoute", {"rules": [{"matches": [match] * 65}]})) == [
        "spec.rules[0].matches"
    ]
    calls = {"matches": [{"method": {"service": "a"}}] * 64}
    found = told(of(GATEWAY, "GRPCRoute", {"rules": [calls] * 3}))
    assert any("192" in each for each in found)


def test_rules_are_bounded() -> None:
    assert paths(of(GATEWAY, "HTTPRoute", {"rules": []})) == ["spec.rules"]
    assert paths(of(GATEWAY, "HTTPRoute", {"rules": [{}] * 17})) == ["spec.rules"]
    assert told(of(POLICY, "HTTPRoute", {"rules": []})) == []
    assert told(of(GATEWAY, "GRPCRoute", {"rules": []})) == []


@pytest.mark.parametrize(
    ("timeouts", "good"),
    [
        ("{request: 1h30m}", True),
        ("{request: 0s, backendRequest: 10s}", True),
        ("{request: 10s, backendRequest: 10s}", True),
        ("{request: 1s, backendRequest: 2s}", False),
        ("{request: 1.5s}", False),
        ("{request: 1d}", False),
        ("{request: soon}", False),
    ],
)
def test_timeouts(timeouts: str, good: bool) -> None:
    assert (told(http(f"{{timeouts: {timeouts}}}")) == []) is good


@pytest.mark.parametrize(
    ("timeouts", "where"),
    [
        ("{request: 1.5s, backendRequest: 500ms}", []),
        ("{request: -1s}", ["spec.rules[0].timeouts.request"]),
        ("{request: soon}", ["spec.rules[0].timeouts.request"]),
        ("{request: 1s, backendRequest: 2s}", ["spec.rules[0].timeouts.backendRequest"]),
    ],
)
def test_timeouts_of_linkerds_own_routes(timeouts: str, where: list[str]) -> None:
    assert paths(http(f"{{timeouts: {timeouts}}}", api=POLICY)) == where


@pytest.mark.parametrize("name", ["A.example", "*", "a.*", "*.*.a", "a..b", "10.0.0.1:80", ""])
def test_bad_hostnames(name: str) -> None:
    assert set(paths(of(GATEWAY, "HTTPRoute", {"hostnames": [name]}))) == {"spec.hostnames[0]"}


def test_methods_and_headers() -> None:
    assert told(http("{matches: [{method: PATCH}]}")) == []
    assert paths(http("{matches: [{method: get}]}")) == ["spec.rules[0].matches[0].method"]
    twice = "{matches: [{headers: [{name: a, value: b}, {name: a, value: c}]}]}"
    assert paths(http(twice)) == ["spec.rules[0].matches[0].headers[1]"]


# ---------------------------------------------------------------------------------- annotations


@pytest.mark.parametrize(
    ("kind", "key", "value", "parent", "refused"),
    [
        ("HTTPRoute", "retry.linkerd.io/http", "6xx", SERVICE, True),
        ("HTTPRoute", "timeout.linkerd.io/idle", "soon", SERVICE, True),
        ("HTTPRoute", "retry.linkerd.io/limit", "-1", EGRESS.replace("}", ", port: 80}"), True),
        ("GRPCRoute", "retry.linkerd.io/grpc", "not-found", SERVICE, True),
        ("HTTPRoute", "retry.linkerd.io/http", "6xx",
         "{group: policy.linkerd.io, kind: Server, name: press}", False),
        ("GRPCRoute", "retry.linkerd.io/http", "6xx", SERVICE, False),
        ("HTTPRoute", "balancer.linkerd.io/failure-accrual", "sometimes", SERVICE, False),
    ],
)  # fmt: skip
def test_annotations(kind: str, key: str, value: str, parent: str, refused: bool) -> None:
    written = of(GATEWAY, kind, f"{{parentRefs: [{parent}]}}", annotations={key: value})
    assert paths(written) == ([f"metadata.annotations[{key}]"] if refused else [])


def test_annotations_without_effect_are_warned_of() -> None:
    keys = {"balancer.linkerd.io/failure-accrual": "consecutive", "retry.linkerd.io/grpc": "x"}
    assert len(warned(http("{}", annotations=keys))) == 2
    assert len(warned(grpc("{}", annotations={"retry.linkerd.io/http": "5xx"}))) == 1


# ------------------------------------------------------------------------------- GRPC, TLS, TCP


@pytest.mark.parametrize(
    ("method", "good"),
    [
        ("{service: faces.Color, method: Center}", True),
        ("{service: .faces.Color}", True),
        ("{method: Center}", True),
        ("{type: RegularExpression, service: 'faces\\..*'}", True),
        ("{}", False),
        ("{service: 'a/b'}", False),
        ("{service: 'a..b'}", False),
        ("{method: 1a}", False),
        ("{method: a.b}", False),
        ("{type: RegularExpression, method: '('}", False),
    ],
)
def test_grpc_methods(method: str, good: bool) -> None:
    assert (told(grpc(f"{{matches: [{{method: {method}}}]}}")) == []) is good


def test_a_grpc_match_may_be_of_headers_alone() -> None:
    assert told(grpc("{matches: [{headers: [{name: a, value: b}]}]}")) == []


def test_grpc_filters() -> None:
    modifier = "{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}"
    assert told(grpc(f"{{filters: [{modifier}]}}")) == []
    assert told(grpc(f"{{filters: [{modifier}, {modifier}]}}")) != []
    assert told(grpc("{filters: [{type: URLRewrite}]}")) != []


@pytest.mark.parametrize("kind", ["TLSRoute", "TCPRoute"])
def test_streams_have_one_rule_with_backends(kind: str) -> None:
    rule = {"backendRefs": [{"name": "cider", "port": 443}]}
    assert told(of(ALPHA, kind, {"rules": [rule]})) == []
    assert paths(of(ALPHA, kind, {"rules": [rule, rule]}))[-1] == "spec.rules"
    assert "spec.rules" in paths(of(ALPHA, kind, {"rules": []}))
    assert paths(of(ALPHA, kind, {"rules": [{}]})) == ["spec.rules[0].backendRefs"]
    assert paths(of(ALPHA, kind, {"rules": [{"backendRefs": []}]})) == ["spec.rules[0].backendRefs"]
    assert seen(of(ALPHA, kind, {"rules": [{}]})).spec.rules[0].backend_refs == ()


def test_server_names() -> None:
    rule = {"backendRefs": [{"name": "cider", "port": 443}]}
    good = {"hostnames": ["*.a.example"], "rules": [rule]}
    for version in ("v1", "v1alpha3", "v1alpha2"):
        written = of(f"gateway.networking.k8s.io/{version}", "TLSRoute", good)
        assert told(written) == []
        assert converted(written, "v1")["spec"] == stored(written)["spec"]
    address = of(GATEWAY, "TLSRoute", {"hostnames": ["10.0.0.1"], "rules": [rule]})
    assert paths(address) == ["spec.hostnames[0]"]


# -------------------------------------------------------------------------- versions and views


def test_old_versions_of_linkerds_own_routes_have_no_backends() -> None:
    new = http("{backendRefs: [{name: press, port: 80}], timeouts: {request: 1s}}", api=POLICY)
    rule = converted(new, "v1beta2")["spec"]["rules"][0]
    assert "backendRefs" in rule
    assert "timeouts" not in rule
    assert "backendRefs" not in converted(new, "v1alpha1")["spec"]["rules"][0]
    assert told({**http("{}", api=POLICY), "apiVersion": "policy.linkerd.io/v1alpha1"}) == []


def test_stored_routes_of_a_later_time_are_seen() -> None:
    found = seen(http("{filters: [{type: CORS2, cors2: {}}], matches: [{path: {type: Glob}}]}"))
    rule = found.spec.rules[0]
    assert rule.filters[0].type == "CORS2"
    assert rule.matches[0].path.type == "Glob"
    assert rule.backend_refs == ()
    assert unreadable(http("{filters: {type: CORS}}"))


def test_every_filter_is_seen() -> None:
    found = seen(
        http(
            "{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, "
            "replaceFullPath: /a}}}, {type: RequestMirror, requestMirror: {backendRef: "
            "{name: m, port: 1}, fraction: {numerator: 1}}}, {type: ExtensionRef, extensionRef: "
            "{group: g, kind: K, name: n}}], backendRefs: [{name: a, port: 1, weight: 3}]}"
        )
    )
    first, second, third = found.spec.rules[0].filters
    assert first.url_rewrite.path.replace_full_path == "/a"
    assert second.request_mirror.fraction.denominator == 100
    assert third.extension_ref.kind == "K"
    assert found.spec.rules[0].backend_refs[0].weight == 3


ON_SERVER = "{group: policy.linkerd.io, kind: Server, name: press}"


def test_the_first_route_on_a_server_is_warned_of() -> None:
    for made in (http("{}", parent=ON_SERVER), grpc("{}", parent=ON_SERVER)):
        [told] = warned(made)
        assert told.startswith("spec.parentRefs[0]: with routes on it, a Server lets in nothing")
        assert warnings(kind_of(made), stored(made), stored(made)) == ()


@pytest.mark.parametrize(
    "path", ["/a//b", "/a/./b", "/a/../b", "/a%2Fb", "/a%5cb", "/a#b", "/a/.."]
)
def test_paths_that_are_never_asked_for_are_warned_of(path: str) -> None:
    made = http(f"{{matches: [{{path: {{type: Exact, value: '{path}'}}}}]}}", api=POLICY)
    [told] = warned(made)
    assert told.startswith("spec.rules[0].matches[0].path.value: paths are made normal")
    for harmless in ("/a/.b", "/a%20b", "/..a"):
        match = f"{{matches: [{{path: {{type: Exact, value: '{harmless}'}}}}]}}"
        assert warned(http(match, api=POLICY)) == ()
