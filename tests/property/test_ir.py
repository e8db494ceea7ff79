"""Decisions are total, and the route that they pick is never the worse one."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import assume, given
from hypothesis import strategies as st

from isthmus.ir.decide import Admit, Close, Decision, Forward, Reply, ToOriginal, inbound, outbound
from isthmus.ir.endpoint import Endpoint, EndpointSet, Health
from isthmus.ir.hosts import host_of, host_rank
from isthmus.ir.identity import parse_identity_match, satisfies
from isthmus.ir.inbound import Anybody, Inbound, Peers, TlsOnly
from isthmus.ir.matching import http_fits
from isthmus.ir.names import AnyHost, AnyIdentity, Dns, Exact, IdentitySuffix, Spiffe, Suffix
from isthmus.ir.outbound import HttpRoute, HttpRule, Outbound
from isthmus.ir.paths import normalise
from isthmus.ir.precedence import best_http
from isthmus.ir.request import HttpRequest, Peer, RawBytes, Request, TlsHello
from isthmus.ir.rules import HttpMatch, Match, PathMatch, ValueMatch

# ------------------------------------------------------------------------------- any IR at all

TEXT = st.one_of(
    st.sampled_from(
        ["", "/", "a", "/a", "/a/b", "*", "(", ".*", "a.b", "10.0.0.0/8", "10.0.0.1", "::1", "x/y"]
    ),
    st.text(max_size=6),
)
NUMBERS = st.one_of(st.sampled_from([1, 2, 80, 100]), st.integers(-2, 5), st.integers())


@cache
def some(kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any type of the IR
    """Values of a type of the IR, with texts and numbers that mean something now and then."""
    plain = {str: TEXT, int: NUMBERS, bool: st.booleans(), type(None): st.none()}
    if kind in plain:
        return plain[kind]
    inner = get_args(kind)
    if get_origin(kind) is tuple and inner[-1] is not Ellipsis:
        return st.tuples(*map(some, inner))
    if get_origin(kind) is tuple:
        return st.lists(some(inner[0]), max_size=2).map(tuple)
    if get_origin(kind) is frozenset:
        return st.frozensets(some(inner[0]), max_size=2)
    if inner:
        return st.one_of(*map(some, inner))
    if issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: some(hints[name]) for name in kind.__struct_fields__})


OUTBOUNDS = some(Outbound)
INBOUNDS = some(Inbound)
HEADERS = st.lists(st.tuples(st.sampled_from(["a", "A", "b"]), TEXT), max_size=3).map(tuple)
REQUESTS = st.one_of(
    st.builds(
        HttpRequest,
        method=st.sampled_from(["GET", "POST", ""]),
        authority=TEXT,
        path=st.one_of(TEXT, st.sampled_from(["/a/b?x=y", "/a/../b", "/%2f", "//a"])),
        headers=HEADERS,
        scheme=st.sampled_from(["http", "https", "x"]),
        version=st.sampled_from([1, 2, 3]),
    ),
    st.builds(TlsHello, TEXT),
    st.just(RawBytes()),
)
CHANCES = st.floats()
HEALTHS = st.lists(st.sampled_from(Health), max_size=2)


def behind(healths: list[Health]) -> Callable[[object], EndpointSet]:
    found = EndpointSet(tuple(Endpoint("10.0.0.1", 80, each) for each in healths))
    return lambda _: found


@given(OUTBOUNDS, REQUESTS, HEALTHS, CHANCES)
def test_every_outbound_has_an_answer_to_every_request(
    ir: Outbound, request: Request, healths: list[Health], chance: float
) -> None:
    decision = outbound(ir, request, behind(healths), chance=chance)
    assert isinstance(decision, Decision)
    assert decision.steps[0].source == ir.source
    match decision.verdict:
        case Forward(endpoints=endpoints):
            assert endpoints
            assert all(each.health is Health.HEALTHY for each in endpoints)
        case ToOriginal() | Reply() | Close():
            pass
        case _:
            raise AssertionError(decision.verdict)


@given(INBOUNDS, some(Peer), REQUESTS)
def test_every_inbound_has_an_answer_to_every_client(
    ir: Inbound, peer: Peer, request: Request
) -> None:
    verdict = inbound(ir, peer, request).verdict
    assert isinstance(verdict, Admit | Reply | Close)
    if isinstance(verdict, Admit) and peer.address not in ("127.0.0.1", "::1"):
        own = [each for route in ir.http_routes for each in route.authorizations]
        calls = [each for route in ir.grpc_routes for each in route.authorizations]
        every = (*ir.authorizations, *own, *calls)
        assert any(proves(each.authentication, peer) for each in every)


def proves(who: Anybody | TlsOnly | Peers, peer: Peer) -> bool:
    if isinstance(who, Anybody):
        return True
    if isinstance(who, TlsOnly):
        return peer.tls
    found = peer.identity
    return peer.tls and found is not None and any(satisfies(found, m) for m in who.identities)


# ---------------------------------------------------------------------------------- precedence

PATHS = st.sampled_from(["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c"])
PATH_MATCHES = st.builds(PathMatch, st.sampled_from([Match.EXACT, Match.PREFIX]), PATHS)
VALUES = st.lists(
    st.builds(ValueMatch, st.sampled_from(["x", "y"]), st.just(Match.EXACT), st.just("1")),
    max_size=2,
    unique_by=lambda each: each.name,
).map(tuple)
MATCHES = st.builds(
    HttpMatch,
    path=st.one_of(st.none(), PATH_MATCHES),
    headers=VALUES,
    query=VALUES,
    method=st.sampled_from([(), ("GET",)]),
)
HOSTS = st.sampled_from([AnyHost(), Suffix(("b",)), Suffix(("a", "b")), Exact("x.a.b"), Exact("b")])
RULES = st.builds(HttpRule, st.just(None), matches=st.lists(MATCHES, max_size=3).map(tuple))
ROUTES = st.builds(
    HttpRoute,
    st.just(None),
    hosts=st.lists(HOSTS, max_size=2).map(tuple),
    rules=st.lists(RULES, max_size=3).map(tuple),
)
ASKED = st.builds(
    HttpRequest,
    authority=st.sampled_from(["x.a.b", "a.b", "b", "c", "Y.A.B.:80"]),
    path=st.tuples(PATHS, st.sampled_from(["", "?x=1", "?x=1&y=1"])).map("".join),
    headers=st.sampled_from([(), (("X", "1"),), (("x", "1"), ("y", "1"))]),
)


def better(one: tuple[Any, HttpMatch], other: tuple[Any, HttpMatch]) -> bool:
    """The order of the specification, said once more and pairwise."""
    (host, match), (host2, match2) = one, other
    if host != host2:
        return bool(host > host2)
    exact, exact2 = (m.path is not None and m.path.match is Match.EXACT for m in (match, match2))
    if exact != exact2:
        return exact
    length, length2 = (
        len(m.path.value.rstrip("/") or "/") if m.path is not None else 1 for m in (match, match2)
    )
    if not exact and length != length2:
        return length > length2
    scores, scores2 = ((len(m.method), len(m.headers), len(m.query)) for m in (match, match2))
    return scores > scores2


@given(st.lists(ROUTES, max_size=4), ASKED)
def test_what_is_picked_is_beaten_by_nothing_that_fits(
    routes: list[HttpRoute], request: HttpRequest
) -> None:
    name = host_of(request.authority)
    fitting = [
        (host_rank(route.hosts, name), match)
        for route in routes
        if host_rank(route.hosts, name) is not None
        for rule in route.rules
        for match in rule.matches or (HttpMatch(),)
        if http_fits(match, request)
    ]
    found = best_http(((route, rule) for route in routes for rule in route.rules), request)
    if found is None:
        assert fitting == []
        return
    picked = (host_rank(found.route.hosts, name), found.match)
    assert picked in fitting
    assert not any(better(each, picked) for each in fitting)
    first = fitting.index(picked)
    assert all(better(picked, each) for each in fitting[:first])


# ---------------------------------------------------------------------------------- identities

LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,3}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=2, max_size=5)


def twist(name: str, at: int, how: str) -> str:
    """The name with one thing about it that only looks alike."""
    at %= len(name)
    match how:
        case "case":
            return name[:at] + name[at].upper() + name[at + 1 :]
        case "dot":
            return name.replace(".", "x", 1)
        case "trailing":
            return name + "."
        case "leading":
            return "." + name
        case "bracket":
            return name[:at] + "[" + name[at] + "]" + name[at + 1 :]
        case "longer":
            return name + "x"
        case "glued":
            return "x" + name
        case "line":
            return name + "\n"
        case _:
            return name[:at] + name[at + 1 :]


TWISTS = st.sampled_from(
    ["case", "dot", "trailing", "leading", "bracket", "longer", "glued", "line", "shorter"]
)


@given(NAMES, st.integers(0, 100), TWISTS)
def test_a_name_that_only_looks_alike_is_somebody_else(
    labels: list[str], at: int, how: str
) -> None:
    name = ".".join(labels)
    other = twist(name, at, how)
    assume(other != name)
    wanted = parse_identity_match(name)
    assert wanted == Dns(name)
    assert satisfies(Dns(name), wanted)
    assert not satisfies(Dns(other), wanted)
    assert not satisfies(Spiffe(name, ()), wanted)
    spiffe = Spiffe(name, ("ns", name))
    assert not satisfies(Spiffe(other, ("ns", name)), spiffe)
    assert not satisfies(Spiffe(name, ("ns", other)), spiffe)


@given(NAMES, LABELS, st.integers(0, 100), TWISTS)
def test_a_suffix_covers_whole_labels(labels: list[str], front: str, at: int, how: str) -> None:
    suffix = ".".join(labels)
    wanted = parse_identity_match(f"*.{suffix}")
    assert wanted == IdentitySuffix(tuple(labels))
    assert satisfies(Dns(f"{front}.{suffix}"), wanted)
    assert not satisfies(Dns(suffix), wanted)
    assert not satisfies(Dns(f".{suffix}"), wanted)
    assert not satisfies(Dns(f"{front}{suffix}"), wanted) or labels[1:] == []
    assert not satisfies(Spiffe(f"{front}.{suffix}", ()), wanted)
    other = twist(suffix, at, how)
    if other != suffix and not other.endswith(f".{suffix}"):
        assert not satisfies(Dns(f"{front}.{other}"), wanted)
    assert satisfies(Dns(suffix), AnyIdentity())


# --------------------------------------------------------------------------------------- paths

SEGMENTS = st.sampled_from(["", ".", "..", "a", "b", "%2e", "%2E%2e", ".a", "%41"])


@given(st.lists(SEGMENTS, min_size=1, max_size=8), st.sampled_from(["/", "\\"]))
def test_a_normal_path_is_normal_and_stays_so(segments: list[str], slash: str) -> None:
    found = normalise("/" + slash.join(segments))
    assert found is not None
    assert normalise(found) == found
    assert "//" not in found
    assert "\\" not in found
    assert not {".", "..", "%2e"} & set(found.split("/"))


@given(st.text(max_size=12))
def test_any_path_is_normal_or_refused(text: str) -> None:
    found = normalise(text)
    assert found is None or found.startswith(("/", "*"))
