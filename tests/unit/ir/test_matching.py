from __future__ import annotations

import pytest

from isthmus.ir.matching import grpc_fits, http_fits, value_fits
from isthmus.ir.request import HttpRequest
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch, ValueMatch


def fits(how: Match, wanted: str, value: str | None, **more: bool) -> bool:
    return value_fits(ValueMatch("x", how, wanted, **more), value)


@pytest.mark.parametrize(
    ("how", "wanted", "good", "bad"),
    [
        (Match.EXACT, "one", "one", "One"),
        (Match.PREFIX, "on", "one", "zone"),
        (Match.SUFFIX, "ne", "one", "ones"),
        (Match.CONTAINS, "n", "one", "two"),
        (Match.REGEX, "o.*e", "one", "one!"),
        (Match.REGEX, "a|b", "b", "ab"),
    ],
)
def test_values(how: Match, wanted: str, good: str, bad: str) -> None:
    assert fits(how, wanted, good)
    assert not fits(how, wanted, bad)
    assert not fits(how, wanted, good, invert=True)
    assert fits(how, wanted, bad, invert=True)
    assert fits(how, wanted, good.upper(), ignore_case=True)
    assert not fits(how, wanted, None)
    assert not fits(how, wanted, None, invert=True)


def test_presence() -> None:
    assert fits(Match.PRESENT, "", "")
    assert not fits(Match.PRESENT, "", None)
    assert fits(Match.PRESENT, "", None, invert=True)
    assert fits(Match.ABSENT, "", None)
    assert not fits(Match.ABSENT, "", "")


def test_an_expression_that_does_not_compile_fits_nothing() -> None:
    assert not fits(Match.REGEX, "(", "(")
    assert not fits(Match.REGEX, "(?=a)", "a")
    assert not fits(Match.REGEX, ".*", "\ud800")
    assert not fits(Match.REGEX, "\ud800", "a")


def test_everything_that_a_match_sets_must_hold() -> None:
    match = HttpMatch(
        path=PathMatch(Match.PREFIX, "/v2"),
        headers=(ValueMatch("x-user", Match.EXACT, "one,two"),),
        query=(ValueMatch("animal", Match.EXACT, "whale"),),
        method=("GET", "HEAD"),
    )
    headers = (("X-User", "one"), ("x-user", "two"))
    good = HttpRequest("GET", path="/v2/a?color=blue&animal=whale&animal=dog", headers=headers)
    assert http_fits(match, good)
    for bad in (
        HttpRequest("POST", path=good.path, headers=headers),
        HttpRequest("GET", path="/v2x?animal=whale", headers=headers),
        HttpRequest("GET", path="/v2?animal=whaledolphin", headers=headers),
        HttpRequest("GET", path="/v2?Animal=whale", headers=headers),
        HttpRequest("GET", path="/v2", headers=headers),
        HttpRequest("GET", path=good.path, headers=(("X-User", "one"),)),
    ):
        assert not http_fits(match, bad)
    assert http_fits(HttpMatch(), HttpRequest())


@pytest.mark.parametrize(
    ("how", "wanted", "good", "bad"),
    [
        (Match.EXACT, "/a", "/a", "/a/"),
        (Match.PREFIX, "/a", "/a/b", "/ab"),
        (Match.REGEX, "/a+", "/aa", "/ab"),
    ],
)
def test_paths(how: Match, wanted: str, good: str, bad: str) -> None:
    match = HttpMatch(path=PathMatch(how, wanted))
    assert http_fits(match, HttpRequest(path=good))
    assert http_fits(match, HttpRequest(path=good + "?q=1"))
    assert not http_fits(match, HttpRequest(path=bad))
    loose = HttpMatch(path=PathMatch(how, wanted, ignore_case=True))
    assert not http_fits(match, HttpRequest(path=good.upper()))
    assert http_fits(loose, HttpRequest(path=good.upper()))


def test_a_query_that_is_not_there_has_no_parameters() -> None:
    match = HttpMatch(query=(ValueMatch("", Match.PRESENT),))
    assert not http_fits(match, HttpRequest(path="/"))
    assert not http_fits(match, HttpRequest(path="/?"))


CALL = HttpRequest("POST", path="/faces.Color/Center", version=2)


@pytest.mark.parametrize(
    ("match", "good"),
    [
        (GrpcMatch(), True),
        (GrpcMatch(service="faces.Color"), True),
        (GrpcMatch(service=".faces.Color", method="Center"), True),
        (GrpcMatch(method="Center"), True),
        (GrpcMatch(service="Color"), False),
        (GrpcMatch(method="Edge"), False),
        (GrpcMatch(service=r"faces\..*", regex=True), True),
        (GrpcMatch(service="faces", regex=True), False),
        (GrpcMatch(headers=(ValueMatch("a", Match.PRESENT),)), False),
    ],
)
def test_calls(match: GrpcMatch, good: bool) -> None:
    assert grpc_fits(match, CALL) is good


def test_a_call_is_a_post_of_two_segments() -> None:
    assert not grpc_fits(GrpcMatch(), HttpRequest("GET", path="/faces.Color/Center"))
    assert not grpc_fits(GrpcMatch(service="a"), HttpRequest("POST", path="/a"))
    assert not grpc_fits(GrpcMatch(service="a"), HttpRequest("POST", path="/a/b/c"))
