from __future__ import annotations

import re

import pytest

from isthmus.dialects.linkerd import rules
from isthmus.ir.names import AnyHost, Default, Exact, Host, Origin, Ref, Suffix
from isthmus.ir.rules import (
    Fail,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    PathChange,
    PathMatch,
    Redirect,
    Timeouts,
    ValueMatch,
)

ROUTE = Ref("here", "gateway.networking.k8s.io", "HTTPRoute", "shop", "r")
SERVICE = Ref("here", "", "Service", "shop", "cart")


def test_who_wrote_a_part() -> None:
    assert rules.metadata(Default("http")).default == "http"
    found = rules.metadata(Origin(SERVICE, port=80)).resource
    assert (found.group, found.kind, found.port) == ("core", "Service", 80)
    found = rules.metadata(Origin(ROUTE, "rules[0]")).resource
    assert (found.group, found.name, found.section, found.port) == (ROUTE.group, "r", "", 0)


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        ((), []),
        ((AnyHost(),), []),
        ((Exact("a.b"), AnyHost()), []),
        ((Exact("a.b"), Suffix(("c", "d"))), ["a.b", ["d", "c"]]),
    ],
)
def test_hosts_and_server_names(hosts: tuple[Host, ...], found: list[object]) -> None:
    for told in (rules.host_matches(hosts), rules.sni_matches(hosts)):
        said = [one.exact or list(one.suffix.reverse_labels) for one in told]
        assert said == found


@pytest.mark.parametrize(
    ("path", "kind", "value"),
    [
        (PathMatch(Match.EXACT, "/a"), "exact", "/a"),
        (PathMatch(Match.PREFIX, "/a/"), "prefix", "/a/"),
        (PathMatch(Match.REGEX, "/[ab]"), "regex", "/[ab]"),
        (PathMatch(Match.REGEX, "/[ab]", True), "regex", "(?i)/[ab]"),
        (PathMatch(Match.EXACT, "/a.b", True), "regex", r"(?i)/a\.b"),
        (PathMatch(Match.PREFIX, "/a/", True), "regex", "(?i)/a(/.*)?"),
    ],
)
def test_paths(path: PathMatch, kind: str, value: str) -> None:
    [told] = rules.http_matches(HttpMatch(path))
    assert told.path.WhichOneof("kind") == kind
    assert getattr(told.path, kind) == value


def test_methods_are_matches_of_their_own_and_others_have_none() -> None:
    [every] = rules.http_matches(HttpMatch())
    assert not every.ListFields()
    get, brew = rules.http_matches(HttpMatch(method=("GET", "BREW")))
    assert get.method.WhichOneof("type") == "registered"
    assert brew.method.unregistered == "BREW"


@pytest.mark.parametrize(
    ("match", "fits", "others"),
    [
        (Match.EXACT, ["a.b", "A.B"], ["a.bc", "xa.b", "axb"]),
        (Match.PREFIX, ["a.b", "a.bc"], ["xa.b", "axb"]),
        (Match.SUFFIX, ["a.b", "xa.b"], ["a.bc"]),
        (Match.CONTAINS, ["xa.bc"], ["axb"]),
        (Match.PRESENT, ["", "x"], []),
        (Match.REGEX, ["axb"], ["ab"]),
    ],
)
def test_values_are_expressions_for_the_whole(
    match: Match, fits: list[str], others: list[str]
) -> None:
    said = ValueMatch("x", match, "a.b", ignore_case=True)
    found = rules.pattern(said)
    assert found is not None
    assert all(re.fullmatch(found, text) for text in fits)
    assert not any(re.fullmatch(found, text) for text in others)


@pytest.mark.parametrize(
    "said", [ValueMatch("x", Match.ABSENT), ValueMatch("x", Match.EXACT, "a", invert=True)]
)
def test_what_cannot_be_said_matches_nothing(said: ValueMatch) -> None:
    assert rules.pattern(said) is None
    assert not list(rules.http_matches(HttpMatch(headers=(said,))))
    assert not list(rules.http_matches(HttpMatch(query=(said,))))
    assert rules.grpc_match(GrpcMatch(headers=(said,))) is None


def test_headers_and_parameters() -> None:
    exact, regex = ValueMatch("x", Match.EXACT, "a"), ValueMatch("y", Match.REGEX, "b+")
    [told] = rules.http_matches(HttpMatch(headers=(exact, regex), query=(exact, regex)))
    assert [(one.name, one.exact, one.regex) for one in told.headers] == [
        ("x", b"a", ""),
        ("y", b"", "b+"),
    ]
    assert [(one.name, one.exact, one.regex) for one in told.query_params] == [
        ("x", "a", ""),
        ("y", "", "b+"),
    ]


def test_calls_always_say_service_and_method() -> None:
    told = rules.grpc_match(GrpcMatch(headers=(ValueMatch("x", Match.EXACT, "a"),)))
    assert told is not None
    assert told.HasField("rpc")  # a proxy refuses the whole policy without it
    assert (told.rpc.service, told.rpc.method, len(told.headers)) == ("", "", 1)
    assert rules.grpc_match(GrpcMatch("a.*", regex=True)) is None


def test_changes_of_headers() -> None:
    said = HeaderChange(set=(("X-A", "1"),), remove=("X-B",))
    request, response = rules.request_headers(said), rules.response_headers(said)
    for told in (request, response):
        assert [(one.name, one.value) for one in told.set.headers] == [("x-a", b"1")]
        assert not told.HasField("add")
        assert list(told.remove) == ["x-b"]


def test_redirections() -> None:
    told = rules.redirect(Redirect())
    assert [field.name for field, _ in told.ListFields()] == ["status"]
    path = PathChange(full="/new")
    told = rules.redirect(Redirect(301, "https", "a.test", path, 8443))
    assert (told.host, told.port, told.status, told.path.full) == ("a.test", 8443, 301, "/new")
    assert told.scheme.registered == 1
    told = rules.redirect(Redirect(path=PathChange(prefix="")))
    assert told.path.prefix == "/"


def test_failures_of_all_and_of_some() -> None:
    every = rules.http_failure(Fail(500, 13, "no"))
    assert (every.status, every.message, every.HasField("ratio")) == (500, "no", False)
    some = rules.grpc_failure(Fail(500, 13, "no", 1, 4))
    assert (some.code, some.ratio.numerator, some.ratio.denominator) == (13, 1, 4)


def test_limits() -> None:
    assert rules.timeouts(Timeouts(attempt=5)) is None
    told = rules.timeouts(Timeouts(request=0, idle=1500))
    assert told is not None
    assert (told.HasField("request"), told.HasField("response")) == (True, False)
    assert (told.idle.seconds, told.idle.nanos) == (1, 500_000_000)
