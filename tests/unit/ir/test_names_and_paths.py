from __future__ import annotations

import pytest

from isthmus.ir.hosts import ANY_HOST, HostRank, host_of, host_rank, parse_host, split_authority
from isthmus.ir.names import AnyHost, Exact, Suffix, TargetId
from isthmus.ir.paths import changed, covers, has_parameters, normalise
from isthmus.ir.rules import PathChange


def test_hosts_are_read() -> None:
    assert parse_host("A.Example.") == Exact("a.example")
    assert parse_host("*.a.b") == Suffix(("a", "b"))
    assert parse_host("*") == parse_host("") == AnyHost()


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("SHOP.Example.test", "shop.example.test"),
        ("shop.example.test.:8080", "shop.example.test"),
        ("[2001:DB8::1]:80", "2001:db8::1"),
        ("user@shop:80", "shop"),
        ("", ""),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert host_of(authority) == host


def test_ports_of_authorities() -> None:
    assert split_authority("a:80") == ("a", 80)
    assert split_authority("[::1]:80") == ("::1", 80)
    for text in ("a", "a:", "a:x", "a:0", "a:65536", "a:٣", "[::1]"):
        assert split_authority(text)[1] is None


def test_ranks_of_hosts() -> None:
    hosts = (AnyHost(), Suffix(("b",)), Suffix(("a", "b")), Exact("x.a.b"))
    assert host_rank(hosts, "x.a.b") == HostRank(2, 5)
    assert host_rank(hosts, "y.a.b") == HostRank(1, 3)
    assert host_rank(hosts, "a.b") == HostRank(1, 1)
    assert host_rank(hosts, "b") == host_rank((), "b") == ANY_HOST
    assert host_rank((Suffix(("a", "b")),), "a.b") is None
    assert host_rank((Suffix(("a", "b")),), ".a.b") is None
    assert host_rank((Suffix(("a", "b")),), "xa.b") is None
    assert host_rank((Exact("A.B."),), "a.b") == HostRank(2, 4)


@pytest.mark.parametrize(
    ("target", "normal"),
    [
        ("/", "/"),
        ("/a/b?x=/../y", "/a/b?x=/../y"),
        ("//", "/"),
        ("/a//b///c", "/a/b/c"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/../../a", "/a"),
        ("/a/..", "/"),
        ("/a/b/.", "/a/b/"),
        ("/a/b/", "/a/b/"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/%2e/b", "/a/b"),
        ("/a\\b", "/a/b"),
        ("/a/..\\..\\b", "/b"),
        ("/a//../b", "/a/b"),
        ("/%41?%41", "/A?%41"),
        ("/%61dmin%7e%2D%5f", "/admin~-_"),
        ("/%2561", "/%2561"),
        ("/a%3Bb%40%20%e4%zz", "/a%3Bb%40%20%e4%zz"),
        ("/a/..;/b", "/b"),
        ("/a/..;x", "/"),
        ("/a/.;x/b", "/a/b"),
        ("/a/...;/b", "/a/...;/b"),
        ("/a;b", "/a;b"),
        ("*", "*"),
        ("/a?q=%2f", "/a?q=%2f"),
    ],
)
def test_paths_have_one_form(target: str, normal: str) -> None:
    assert normalise(target) == normal


@pytest.mark.parametrize("target", ["/a%2fb", "/a%2Fb", "/a%5cb", "/a%5C", "/a#b", "a", "", "?x"])
def test_paths_that_could_be_read_in_two_ways_are_refused(target: str) -> None:
    assert normalise(target) is None


def test_parameters_are_in_the_path_not_in_the_query() -> None:
    assert has_parameters("/a;b/c")
    assert not has_parameters("/a?b;c")
    assert not has_parameters("/a%3bc")


def test_prefixes_cover_whole_segments() -> None:
    assert all(covers("/v2", each) for each in ("/v2", "/v2/", "/v2/x"))
    assert not any(covers("/v2", each) for each in ("/v2x", "/v", "/", ""))
    assert covers("/v2/", "/v2")
    assert covers("/", "/anything")
    assert not covers("/", "*")


@pytest.mark.parametrize(
    ("change", "target", "prefix", "result"),
    [
        (None, "/a?q", None, "/a?q"),
        (PathChange(full="/b"), "/a/c?q", None, "/b?q"),
        (PathChange(prefix="/one"), "/prefix/one/two", "/prefix/one", "/one/two"),
        (PathChange(prefix="/"), "/strip-prefix/three", "/strip-prefix", "/three"),
        (PathChange(prefix="/"), "/strip-prefix", "/strip-prefix", "/"),
        (PathChange(prefix=""), "/strip/x?q", "/strip/", "/x?q"),
        (PathChange(prefix="/x/"), "/a/b", "/", "/x/a/b"),
        (PathChange(prefix="/x"), "/a", None, None),
        (PathChange(prefix="/x"), "/ab", "/a", None),
        (PathChange(), "/a", None, "/a"),
    ],
)
def test_changes_of_paths(
    change: PathChange | None, target: str, prefix: str | None, result: str | None
) -> None:
    assert changed(change, target, prefix) == result


def test_the_names_of_targets() -> None:
    target = TargetId("east", "faces", "face", 80)
    assert target.sni("cluster.local") == "p80.face.faces.east.internal.cluster.local"
    assert target.key("cluster.local") == target.sni("cluster.local")
    variant = TargetId("dc1", "default", "web", subset="v2", variant="abc")
    assert variant.sni("td") == "v2.web.default.dc1.internal.td"
    assert variant.key("td") == "abc~v2.web.default.dc1.internal.td"
