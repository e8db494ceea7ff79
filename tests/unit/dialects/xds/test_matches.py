from __future__ import annotations

import pytest
from envoy.config.route.v3 import route_components_pb2 as pb

from isthmus.dialects.xds.hosts import by_host
from isthmus.dialects.xds.matches import grpc_match, header, http_match
from isthmus.ir.names import AnyHost, Default, Exact, Host, Suffix
from isthmus.ir.outbound import HttpRoute, HttpRule
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch, ValueMatch

WHO = Default("nobody")


def path(match: Match, value: str, *, ignore_case: bool = False) -> pb.RouteMatch:
    return http_match(HttpMatch(PathMatch(match, value, ignore_case)))


def test_paths() -> None:
    assert path(Match.EXACT, "/a").path == "/a"
    assert path(Match.PREFIX, "/a").path_separated_prefix == "/a"
    assert path(Match.PREFIX, "/a/").path_separated_prefix == "/a"
    assert path(Match.PREFIX, "/").prefix == "/"
    assert path(Match.REGEX, "/a.*").safe_regex.regex == "/a.*"
    assert http_match(HttpMatch()).prefix == "/"


def test_case_may_not_matter() -> None:
    assert not path(Match.EXACT, "/a", ignore_case=True).case_sensitive.value
    assert not path(Match.EXACT, "/a").HasField("case_sensitive")
    assert path(Match.REGEX, "/a", ignore_case=True).safe_regex.regex == "(?i)/a"


@pytest.mark.parametrize(
    ("match", "field"),
    [
        (Match.EXACT, "exact"),
        (Match.PREFIX, "prefix"),
        (Match.SUFFIX, "suffix"),
        (Match.CONTAINS, "contains"),
    ],
)
def test_values_of_headers_and_parameters(match: Match, field: str) -> None:
    wire = http_match(HttpMatch(headers=(ValueMatch("h", match, "v"),)))
    assert getattr(wire.headers[0].string_match, field) == "v"
    wire = http_match(HttpMatch(query=(ValueMatch("q", match, "v"),)))
    assert getattr(wire.query_parameters[0].string_match, field) == "v"


def test_presence() -> None:
    assert header(ValueMatch("h", Match.PRESENT)).present_match
    absent = header(ValueMatch("h", Match.ABSENT))
    assert absent.HasField("present_match")
    assert not absent.present_match
    assert header(ValueMatch("h", Match.EXACT, "v", invert=True)).invert_match
    wire = http_match(HttpMatch(query=(ValueMatch("q", Match.PRESENT),)))
    assert wire.query_parameters[0].present_match
    regex = header(ValueMatch("h", Match.REGEX, "a|b", ignore_case=True))
    assert regex.string_match.safe_regex.regex == "(?i)a|b"


def test_methods() -> None:
    (one,) = http_match(HttpMatch(method=("GET",))).headers
    assert (one.name, one.string_match.exact) == (":method", "GET")
    (some,) = http_match(HttpMatch(method=("GET", "M-SEARCH"))).headers
    assert some.string_match.safe_regex.regex == r"GET|M\-SEARCH"


def test_calls() -> None:
    assert grpc_match(GrpcMatch("a.B", "C")).path == "/a.B/C"
    assert grpc_match(GrpcMatch("a.B")).prefix == "/a.B/"
    assert grpc_match(GrpcMatch()).prefix == "/"
    assert grpc_match(GrpcMatch(method="C")).safe_regex.regex == "/[^/]+/(?:C)"
    assert grpc_match(GrpcMatch("a|b", "c", regex=True)).safe_regex.regex == "/(?:a|b)/(?:c)"
    assert grpc_match(GrpcMatch("a", regex=True)).safe_regex.regex == "/(?:a)/[^/]+"
    assert grpc_match(GrpcMatch()).HasField("grpc")


# ------------------------------------------------------------------------------------ hosts


def route(name: str, *hosts: Host) -> HttpRoute:
    return HttpRoute(Default(name), hosts, (HttpRule(WHO),))


def told(*routes: HttpRoute) -> dict[str, list[str]]:
    found = by_host(routes)
    return {domain: [way.route.source.name for way in ways  # type: ignore[union-attr]
                     ] for domain, ways in found}  # fmt: skip


def test_each_host_has_the_routes_that_are_for_it_the_best_fit_first() -> None:
    found = told(
        route("all"),
        route("any", AnyHost()),
        route("suffix", Suffix(("example",))),
        route("longer", Suffix(("b", "example"))),
        route("exact", Exact("a.b.example")),
    )
    assert found == {
        "*.b.example": ["longer", "suffix", "all", "any"],
        "*.example": ["suffix", "all", "any"],
        "a.b.example": ["exact", "longer", "suffix", "all", "any"],
        "*": ["all", "any"],
    }
    assert list(found)[-1] == "*"


def test_a_suffix_covers_no_host_of_its_own_name() -> None:
    found = told(route("suffix", Suffix(("example",))), route("exact", Exact("example")))
    assert found["example"] == ["exact"]
    assert found["*"] == []
