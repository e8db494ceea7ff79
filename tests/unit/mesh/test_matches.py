"""Rows of routes to the IR: what is understood, and what becomes of the rest."""

from __future__ import annotations

import pytest

from isthmus.ir.names import AnyHost, Exact, Suffix, TargetId
from isthmus.ir.rules import (
    Fail,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    PathChange,
    PathMatch,
    Redirect,
    Rewrite,
    ValueMatch,
)
from isthmus.ir.target import Target
from isthmus.mesh.matches import (
    NOWHERE,
    Fault,
    filter_faults,
    grpc_matches,
    host_faults,
    hosts,
    http_matches,
    match_faults,
    rule_filters,
)
from isthmus.model.gateway import Filter, GrpcRule, HttpRule
from isthmus.model.gateway import GrpcMatch as GrpcRow
from isthmus.model.gateway import HttpMatch as HttpRow
from isthmus.model.gateway.views import (
    Fraction,
    GrpcMethod,
    HeaderModifier,
    HeaderValue,
    MirrorRef,
    PathModifier,
    RequestMirror,
    RequestRedirect,
    UrlRewrite,
)
from isthmus.model.gateway.views import PathMatch as PathRow
from isthmus.model.gateway.views import ValueMatch as ValueRow

COPY = TargetId("here", "shop", "copy", 80)
TARGET = Target(COPY, trust_domain="td")


def test_hosts_are_read_once_each() -> None:
    read = hosts(("A.test.", "*.b.test", "a.test", "*"))
    assert read == (Exact("a.test"), Suffix(("b", "test")), AnyHost())


def test_what_is_no_host_is_left_out_and_a_route_for_nothing_else_is_for_nobody() -> None:
    assert hosts(("a.*", "a.test", "b c", "*.*.test", "x/y")) == (Exact("a.test"),)
    assert hosts(("a.*",)) == (NOWHERE,)
    assert hosts(()) == ()
    assert [each.path for each in host_faults(("a.*", "a.test"), "spec.hostnames")] == [
        "spec.hostnames[0]"
    ]


def test_a_rule_without_matches_is_for_everything() -> None:
    assert http_matches(HttpRule()) == (HttpMatch(PathMatch(Match.PREFIX, "/")),)
    assert grpc_matches(GrpcRule()) == (GrpcMatch(),)


def test_of_entries_for_one_header_the_first_counts() -> None:
    row = HttpRow(
        headers=(ValueRow(name="X-A", value="1"), ValueRow(name="x-a", value="2")),
        query_params=(ValueRow(name="Q", value="a.*", type="RegularExpression"),),
        method="GET",
    )
    assert http_matches(HttpRule(matches=(row,))) == (
        HttpMatch(
            PathMatch(Match.PREFIX, "/"),
            (ValueMatch("x-a", Match.EXACT, "1"),),
            (ValueMatch("Q", Match.REGEX, "a.*"),),
            ("GET",),
        ),
    )


BAD_HTTP = {
    "regex": HttpRow(path=PathRow(type="RegularExpression", value="a(")),
    "relative": HttpRow(path=PathRow(value="v1")),
    "query": HttpRow(path=PathRow(value="/a?b")),
    "fragment": HttpRow(path=PathRow(type="Exact", value="/a#b")),
    "type": HttpRow(path=PathRow(type="Glob", value="/")),
    "header regex": HttpRow(headers=(ValueRow(name="a", value="(", type="RegularExpression"),)),
    "header name": HttpRow(headers=(ValueRow(name=":path", value="/"),)),
    "header value": HttpRow(headers=(ValueRow(name="a", value="b\r\nc: d"),)),
    "header type": HttpRow(headers=(ValueRow(name="a", value="b", type="Near"),)),
}


@pytest.mark.parametrize("row", BAD_HTTP.values(), ids=BAD_HTTP)
def test_a_match_that_is_not_understood_matches_nothing(row: HttpRow) -> None:
    rule = HttpRule(matches=(row,))
    assert http_matches(rule) == ()
    assert [fault.path for fault in match_faults(rule, "rules[2]")] == ["rules[2].matches[0]"]


def test_the_other_matches_of_a_rule_stay() -> None:
    rule = HttpRule(matches=(BAD_HTTP["regex"], HttpRow(method="PUT")))
    assert http_matches(rule) == (HttpMatch(PathMatch(Match.PREFIX, "/"), method=("PUT",)),)


def test_grpc_methods_are_exact_or_expressions() -> None:
    rule = GrpcRule(
        matches=(
            GrpcRow(method=GrpcMethod(service="a.B", method="C")),
            GrpcRow(method=GrpcMethod(type="RegularExpression", method="C.*")),
            GrpcRow(method=GrpcMethod(service="a/B")),
            GrpcRow(headers=(ValueRow(name="U", value="v"),)),
        )
    )
    assert grpc_matches(rule) == (
        GrpcMatch("a.B", "C"),
        GrpcMatch("", "C.*", regex=True),
        GrpcMatch(headers=(ValueMatch("u", Match.EXACT, "v"),)),
    )
    assert [fault.path for fault in match_faults(rule, "rules[0]")] == ["rules[0].matches[2]"]


def test_filters_are_read_in_order() -> None:
    given = (
        Filter(
            type="RequestHeaderModifier",
            request_header_modifier=HeaderModifier(
                set=(HeaderValue(name="A", value="1"), HeaderValue(name="a", value="2")),
                remove=("B",),
            ),
        ),
        Filter(
            type="RequestRedirect",
            request_redirect=RequestRedirect(
                scheme="https", path=PathModifier(type="ReplacePrefixMatch")
            ),
        ),
        Filter(type="URLRewrite", url_rewrite=UrlRewrite(hostname="b.test")),
    )
    assert rule_filters(given) == (
        HeaderChange(set=(("A", "1"),), remove=("B",)),
        Redirect(302, "https", None, PathChange(prefix="/")),
        Rewrite("b.test"),
    )
    assert not list(filter_faults(given, "rules[0].filters"))


BAD_FILTERS = {
    "type": Filter(type="CORS"),
    "extension": Filter(type="ExtensionRef"),
    "header": Filter(
        type="ResponseHeaderModifier",
        response_header_modifier=HeaderModifier(add=(HeaderValue(name="a b"),)),
    ),
    "value": Filter(
        type="RequestHeaderModifier",
        request_header_modifier=HeaderModifier(set=(HeaderValue(name="a", value="\n"),)),
    ),
    "status": Filter(type="RequestRedirect", request_redirect=RequestRedirect(status_code=200)),
    "host": Filter(type="URLRewrite", url_rewrite=UrlRewrite(hostname="a/b")),
    "path": Filter(
        type="URLRewrite",
        url_rewrite=UrlRewrite(path=PathModifier(type="ReplaceFullPath", replace_full_path="x")),
    ),
}


@pytest.mark.parametrize("bad", BAD_FILTERS.values(), ids=BAD_FILTERS)
def test_a_filter_that_cannot_be_done_answers_in_its_place(bad: Filter) -> None:
    (found,) = rule_filters((bad,))
    assert isinstance(found, Fail)
    assert (found.status, found.grpc) == (500, 13)
    assert list(filter_faults((bad,), "rules[0].filters")) == [
        Fault("rules[0].filters[0]", found.message)
    ]


def test_mirrors_take_a_share_and_are_dropped_where_nobody_is() -> None:
    def mirrored(ref: MirrorRef) -> Target | None:
        return TARGET if ref.name == "copy" else None

    def mirror(name: str, **said: object) -> Filter:
        ref = MirrorRef(name=name, port=80)
        return Filter(
            type="RequestMirror",
            request_mirror=RequestMirror(backend_ref=ref, **said),  # type: ignore[arg-type]
        )

    given = (
        mirror("copy"),
        mirror("copy", percent=5),
        mirror("copy", fraction=Fraction(numerator=1, denominator=3)),
        mirror("gone"),
    )
    assert rule_filters(given, mirrored) == (
        Mirror(COPY, 100, 100, "td"),
        Mirror(COPY, 5, 100, "td"),
        Mirror(COPY, 1, 3, "td"),
    )
