from __future__ import annotations

from typing import Any

import pytest

from isthmus.ir.decide import Admit, Close, Reply, Verdict, inbound
from isthmus.ir.decide.inbound import admits
from isthmus.ir.identity import parse_identity, parse_identity_match
from isthmus.ir.inbound import (
    ANYWHERE,
    Anybody,
    Authentication,
    Authorization,
    Inbound,
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
    Network,
    Peers,
    RateLimit,
    RateOverride,
    Speech,
    TlsOnly,
)
from isthmus.ir.names import AnyIdentity, Default, Dns, Exact, Ref, Suffix
from isthmus.ir.request import HttpRequest, Peer, RawBytes, Request, TlsHello
from isthmus.ir.rules import Forbid, GrpcMatch, HeaderChange, PathChange, Rewrite
from tests.unit.ir.values import exact, origin, prefix

PICKER = "picker.orchard.serviceaccount.identity.linkerd.cluster.local"
SOWER = "sower.orchard.serviceaccount.identity.linkerd.cluster.local"
WORKLOAD = Ref("east", "", "Pod", "orchard", "press-1")


def peers(*names: str) -> Peers:
    found = [parse_identity_match(name) for name in names]
    return Peers(tuple(each for each in found if each is not None))


def authorization(
    name: str, who: Authentication, *networks: Network, audit: bool = False
) -> Authorization:
    return Authorization(origin(name), networks or ANYWHERE, who, audit)


def port(
    *authorizations: Authorization,
    speech: Speech = Speech.DETECT,
    **more: Any,  # noqa: ANN401 - any field
) -> Inbound:
    return Inbound(WORKLOAD, 80, speech, origin("server"), authorizations=authorizations, **more)


def client(name: str = "", address: str = "10.42.0.7") -> Peer:
    return Peer(address, bool(name), parse_identity(name) if name else None)


def verdict(ir: Inbound, peer: Peer, request: Request | None = None) -> Verdict:
    return inbound(ir, peer, request or HttpRequest()).verdict


def answer(ir: Inbound, peer: Peer, request: Request | None = None) -> str | int | None:
    """`in`, `audit`, `closed`, an HTTP status, or a gRPC code as text."""
    found = verdict(ir, peer, request)
    match found:
        case Admit():
            return "audit" if found.audited else "in"
        case Close():
            return "closed"
        case Reply(grpc=None):
            return found.status
        case Reply():
            return f"grpc {found.grpc}"
        case _:
            return None


# -------------------------------------------------------------------------------- authorization


def test_who_gets_in() -> None:
    ir = port(authorization("a", peers(PICKER)))
    assert answer(ir, client()) == 403
    assert answer(ir, client(SOWER)) == 403
    assert answer(ir, client(PICKER)) == "in"
    assert answer(ir, client(address="127.0.0.1")) == "in"
    assert answer(ir, client(address="::1")) == "in"
    assert verdict(ir, client(PICKER)) == Admit(HttpRequest(), origin("a"))


def test_an_identity_without_tls_proves_nothing() -> None:
    ir = port(authorization("a", peers(PICKER)))
    assert answer(ir, Peer("10.0.0.1", False, Dns(PICKER))) == 403
    assert answer(ir, Peer("10.0.0.1", True, None)) == 403


@pytest.mark.parametrize(
    ("who", "plain", "nobody", "somebody"),
    [
        (Anybody(), "in", "in", "in"),
        (TlsOnly(), 403, "in", "in"),
        (Peers((AnyIdentity(),)), 403, 403, "in"),
        (Peers(()), 403, 403, 403),
    ],
)
def test_authentications(
    who: Authentication, plain: object, nobody: object, somebody: object
) -> None:
    ir = port(authorization("a", who))
    assert answer(ir, client()) == plain
    assert answer(ir, Peer("10.0.0.1", True)) == nobody
    assert answer(ir, client(PICKER)) == somebody


@pytest.mark.parametrize(
    ("network", "address", "good"),
    [
        (Network("10.0.0.0/8"), "10.1.2.3", True),
        (Network("10.0.0.0/8"), "11.1.2.3", False),
        (Network("10.0.0.0/8", ("10.1.0.0/16",)), "10.1.2.3", False),
        (Network("10.0.0.0/8", ("10.1.2.4",)), "10.1.2.3", True),
        (Network("10.1.2.3"), "10.1.2.3", True),
        (Network("10.0.0.1/8"), "10.1.2.3", True),
        (Network("10.0.0.0/8"), "::ffff:10.1.2.3", True),
        (Network("10.0.0.0/8", ("10.1.0.0/16",)), "::ffff:10.1.2.3", False),
        (Network("::/0"), "10.1.2.3", False),
        (Network("2001:db8::/32"), "2001:db8::1", True),
        (Network("nonsense"), "10.1.2.3", False),
        (Network("10.0.0.0/8", ("nonsense",)), "10.1.2.3", False),
        (Network("0.0.0.0/0"), "nobody", False),
        (Network("0.0.0.0/0"), "", False),
    ],
)
def test_networks(network: Network, address: str, good: bool) -> None:
    assert admits(authorization("a", Anybody(), network), Peer(address)) is good


def test_no_network_admits_nobody() -> None:
    assert not admits(Authorization(origin("a"), (), Anybody()), Peer("10.0.0.1"))


def test_an_audit_counts_last() -> None:
    ir = port(
        authorization("open", Anybody(), audit=True),
        authorization("a", peers(PICKER)),
    )
    assert answer(ir, client()) == "audit"
    assert answer(ir, client(PICKER)) == "in"


def test_strict_ports_want_mesh_tls() -> None:
    ir = port(authorization("a", Anybody()), strict=True)
    assert answer(ir, client()) == "closed"
    assert answer(ir, client(PICKER)) == "in"
    assert answer(ir, client(address="127.0.0.1")) == "in"


def test_probes_of_strict_ports_need_no_mesh_tls() -> None:
    live = InboundRoute(
        Default("probe"),
        rules=(InboundRule((exact("/live"),)),),
        authorizations=(authorization("p", Anybody()),),
    )
    rest = InboundRoute(Default("default"), rules=(InboundRule((prefix("/"),)),))
    ir = port(authorization("a", Anybody()), http_routes=(rest, live), strict=True)
    assert answer(ir, client(), HttpRequest(path="/live")) == "in"
    assert answer(ir, client(), HttpRequest(path="/live/../x")) == 404
    assert answer(ir, client(PICKER), HttpRequest(path="/x")) == "in"
    assert answer(ir, client(), RawBytes()) == "closed"


# --------------------------------------------------------------------------------------- routes

JUICE = InboundRoute(
    origin("juice"),
    rules=(InboundRule((exact("/juice"),)),),
    authorizations=(authorization("r", Anybody(), Network("10.42.0.0/16")),),
)


def test_route_and_port_authorizations_add_up() -> None:
    ir = port(authorization("s", peers(PICKER)), http_routes=(JUICE,))
    juice, other = HttpRequest(path="/juice"), HttpRequest(path="/other")
    assert answer(ir, client(PICKER, "10.99.0.1"), juice) == "in"
    assert answer(ir, client(), juice) == "in"
    assert answer(ir, client(address="10.99.0.1"), juice) == 403
    assert answer(ir, client(PICKER), other) == 404
    assert verdict(ir, client(), juice) == Admit(juice, origin("r"))


def test_paths_are_normalised_before_anybody_is_let_in() -> None:
    open_ = InboundRoute(
        Default("probe"),
        rules=(InboundRule((prefix("/ready"),)),),
        authorizations=(authorization("p", Anybody()),),
    )
    rest = InboundRoute(origin("rest"), rules=(InboundRule((prefix("/"),)),))
    ir = port(authorization("s", peers(PICKER)), http_routes=(open_, rest))
    assert answer(ir, client(), HttpRequest(path="/ready?full=1")) == "in"
    assert answer(ir, client(), HttpRequest(path="/ready/../admin")) == 403
    assert answer(ir, client(), HttpRequest(path="/ready/%2e%2e/admin")) == 403
    assert answer(ir, client(), HttpRequest(path="/ready\\..\\admin")) == 403
    assert answer(ir, client(), HttpRequest(path="/ready%2f..%2fadmin")) == 400
    found = verdict(ir, client(PICKER), HttpRequest(path="/a/./b"))
    assert isinstance(found, Admit)
    assert found.request == HttpRequest(path="/a/b")


def test_parameters_of_paths_are_refused_where_paths_decide() -> None:
    rest = InboundRoute(origin("rest"), rules=(InboundRule((prefix("/"),)),))
    ir = port(authorization("s", Anybody()), http_routes=(rest,))
    assert answer(ir, client(), HttpRequest(path="/a;b")) == "in"
    ir = port(authorization("s", Anybody()), http_routes=(rest, JUICE))
    assert answer(ir, client(), HttpRequest(path="/juice;b")) == 400
    assert answer(ir, client(), HttpRequest(path="/a/%2e%2e;/juice")) == 400
    assert answer(ir, client(), HttpRequest(path="/juice?a;b")) == "in"


@pytest.mark.parametrize(
    "host",
    ["x@a.example", "a.example:80:80", "a.example..", "a.example%00", "%61.example", "a.example;x",
     "a.example,b", "[a.example]", ".a.example", "b.example:80@a.example", "a.example:x"],
)  # fmt: skip
def test_hosts_of_two_readings_are_refused_where_hosts_decide(host: str) -> None:
    only = InboundRoute(origin("h"), (Exact("a.example"),), (InboundRule(),))
    rest = InboundRoute(origin("rest"), rules=(InboundRule(),))
    asked = HttpRequest(authority=host)
    assert answer(port(authorization("s", Anybody()), http_routes=(rest,)), client(), asked) == "in"
    ir = port(authorization("s", Anybody()), http_routes=(only, rest))
    assert answer(ir, client(), asked) == 400


@pytest.mark.parametrize(
    "host", ["", "b", "B.example.", "b_c.example:80", "10.1.0.1:80", "[fd00::1]:80", "b.example:"]
)
def test_hosts_of_one_reading_pass_where_hosts_decide(host: str) -> None:
    only = InboundRoute(origin("h"), (Exact("a.example"),), (InboundRule(),))
    rest = InboundRoute(origin("rest"), rules=(InboundRule(),))
    ir = port(authorization("s", Anybody()), http_routes=(only, rest))
    assert answer(ir, client(), HttpRequest(authority=host)) == "in"


def test_hosts_of_routes() -> None:
    only = InboundRoute(origin("h"), (Suffix(("example",)),), (InboundRule(),))
    ir = port(authorization("s", Anybody()), http_routes=(only,))
    assert answer(ir, client(), HttpRequest(authority="SHOP.example:80")) == "in"
    assert answer(ir, client(), HttpRequest(authority="shop")) == 404


def test_filters_come_after_authorization() -> None:
    change = HeaderChange(set=(("x", "y"),))
    rewrite = Rewrite(path=PathChange(prefix="/b"))
    open_ = InboundRoute(origin("f"), rules=(InboundRule((prefix("/a"),), (change, rewrite)),))
    ir = port(authorization("s", Anybody()), http_routes=(open_,))
    assert verdict(ir, client(), HttpRequest(path="/a/c")) == Admit(
        HttpRequest(path="/b/c", headers=(("x", "y"),)), origin("s")
    )
    shut = InboundRoute(origin("f"), rules=(InboundRule(filters=(Forbid("closed"),)),))
    closed = port(authorization("s", Anybody()), http_routes=(shut,))
    assert verdict(closed, client()) == Reply(403, origin("f"), message="closed")
    assert answer(port(http_routes=(open_,)), client(), HttpRequest(path="/a")) == 403


def test_calls() -> None:
    call = HttpRequest("POST", path="/press.Press/Squeeze", version=2)
    squeeze = InboundGrpcRoute(
        origin("g"), rules=(InboundGrpcRule((GrpcMatch("press.Press", "Squeeze"),)),)
    )
    ir = port(authorization("s", peers(PICKER)), speech=Speech.GRPC, grpc_routes=(squeeze,))
    assert answer(ir, client(PICKER), call) == "in"
    assert answer(ir, client(), call) == "grpc 7"
    assert answer(ir, client(PICKER), HttpRequest("POST", path="/a/b", version=2)) == "grpc 5"
    assert answer(ir, client(PICKER), HttpRequest("POST", path="/a%2f", version=2)) == "grpc 13"
    assert answer(ir, client(PICKER), HttpRequest()) == "closed"
    bare = port(authorization("s", peers(PICKER)), speech=Speech.GRPC)
    assert answer(bare, client(PICKER), call) == "in"


# ------------------------------------------------------------------------------------ protocols


@pytest.mark.parametrize(
    ("speech", "request_", "end"),
    [
        (Speech.DETECT, HttpRequest(), 403),
        (Speech.DETECT, RawBytes(), "closed"),
        (Speech.DETECT, TlsHello("x"), "closed"),
        (Speech.HTTP1, HttpRequest(), 403),
        (Speech.HTTP1, HttpRequest(version=2), "closed"),
        (Speech.HTTP2, HttpRequest(version=2), 403),
        (Speech.HTTP2, RawBytes(), "closed"),
        (Speech.OPAQUE, HttpRequest(), "closed"),
        (Speech.OPAQUE, RawBytes(), "closed"),
        (Speech.TLS, TlsHello("x"), "closed"),
        (Speech.GRPC, RawBytes(), "closed"),
    ],
)
def test_what_a_stranger_gets(speech: Speech, request_: Request, end: object) -> None:
    assert answer(port(speech=speech), client(), request_) == end
    assert answer(port(authorization("a", peers(PICKER)), speech=speech), client(), request_) == end


@pytest.mark.parametrize("speech", [Speech.DETECT, Speech.OPAQUE, Speech.TLS])
def test_whole_connections_are_admitted_by_the_port_alone(speech: Speech) -> None:
    ir = port(authorization("a", peers(PICKER)), speech=speech, http_routes=(JUICE,))
    assert answer(ir, client(PICKER), RawBytes()) == "in"
    assert answer(ir, client(), RawBytes()) == "closed"


# --------------------------------------------------------------------------------------- limits


def test_the_allowance_that_counts_is_told() -> None:
    named = RateOverride((Dns(PICKER),), 50)
    limit = RateLimit(origin("limit"), total=100, each=10, overrides=(named,))
    ir = port(authorization("s", Anybody()), rate_limit=limit)

    def told(peer: Peer) -> list[str]:
        steps = inbound(ir, peer, HttpRequest()).steps
        return [step.text for step in steps if step.source == origin("limit")]

    assert ["100" in each for each in told(client())] == [True, False]
    assert "10 requests" in told(client(SOWER))[1]
    assert "without identity" in told(client())[1]
    assert "50 requests" in told(client(PICKER))[1]


def test_steps_say_who_let_the_client_in() -> None:
    steps = inbound(port(authorization("a", peers(PICKER))), client(PICKER), RawBytes()).steps
    assert [(step.source, step.text) for step in steps][1:] == [(origin("a"), "lets in")]
    steps = inbound(port(), client(), RawBytes()).steps
    assert "no authorization" in steps[-1].text
