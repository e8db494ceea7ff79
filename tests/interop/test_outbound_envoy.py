"""What a real Envoy makes of routes and EgressNetworks, from objects as people write them.

Each mesh is told to an Envoy of its own; `ir.decide` is asked the same and must agree.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from isthmus.ir.decide import Forward, Reply, ToOriginal
from isthmus.ir.decide import outbound as decide
from isthmus.ir.endpoint import Endpoint, EndpointSet, SetState
from isthmus.ir.names import Ref
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.ir.request import HttpRequest
from isthmus.mesh.outbound import outbound
from tests.support.compact import Compact
from tests.support.inbound_envoy import Answer
from tests.support.meshworld import LOCAL, TRUST, World
from tests.support.outbound_envoy import Dialled, Way, way

CART = Dialled("10.96.0.10", 80)
OUT = Dialled("203.0.113.9", 80)
COLOR = Dialled("203.0.113.9", 8000)

CLUSTER = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")
TILL = "p80.till.shop.here.internal.trust.mesh.test"
MUG = "p80.mug.shop.here.internal.trust.mesh.test"
OWN = "p80.cart.shop.here.internal.trust.mesh.test"


def world(*objects: Compact) -> World:
    return World(
        {"ns": "shop"},
        {"ns": "linkerd-egress"},
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"},
        {"svc": "shop/cart", "ip": CART.ip, "ports": [80, 3306, {"port": 7070, "app": "grpc"}]},
        {"svc": "shop/till", "ip": "10.96.0.11", "ports": [80]},
        {"svc": "shop/mug", "ip": "10.96.0.12", "ports": [80]},
        *objects,
        service_networks=("10.96.0.0/16",),
        cluster_networks=CLUSTER,
    )


def route(*rules: Mapping[str, Any], **said: object) -> Compact:
    return {"route": "shop/r", "service": "cart", "port": 80, "rules": list(rules), **said}


def at(path: str, kind: str = "PathPrefix", **said: object) -> dict[str, Any]:
    return {"matches": [{"path": {"type": kind, "value": path}}], **said}


def to(name: str, weight: int = 1, **said: object) -> dict[str, Any]:
    return {"name": name, "port": 80, "weight": weight, **said}


def seen(answer: Answer | None) -> dict[str, Any]:
    assert answer is not None
    found: dict[str, Any] = json.loads(answer.body)
    return found


def status(answer: Answer | None) -> int | None:
    return answer.status if answer is not None else None


# ------------------------------------------------------------------------ shares and filters


async def test_shares_are_kept_also_by_backends_that_cannot_be(tmp_path: Path) -> None:
    refs = [to("till", 2), to("gone"), to("mug"), to("missing", 0), to("never")]
    async with way(tmp_path, world(route(at("/", backendRefs=refs)))) as (out, _):
        answers = [await out.ask(CART) for _ in range(500)]
    found = Counter(
        json.loads(one.body)["app"] if one.status == 200 else one.body
        for one in answers
        if one is not None
    )
    assert sum(found.values()) == 500
    expected = {
        TILL: 200,
        MUG: 100,
        "Service not found gone.shop": 100,
        "Service not found never.shop": 100,
    }
    assert found.keys() == expected.keys()
    assert all(abs(found[each] - expected[each]) < 50 for each in expected), found


async def test_a_rule_without_a_weight_fails_and_one_for_nothing_is_not_found(
    tmp_path: Path,
) -> None:
    rules = [at("/none", backendRefs=[to("till", 0)]), at("/some")]
    async with way(tmp_path, world(route(*rules))) as (out, _):
        assert status(await out.ask(CART, "/none")) == 500
        assert seen(await out.ask(CART, "/some"))["app"] == OWN
        assert status(await out.ask(CART, "/other")) == 404


def headers(**said: object) -> dict[str, Any]:
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": said}


def pair(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


async def test_headers_are_changed_by_rules_and_then_by_backends(tmp_path: Path) -> None:
    rule = headers(
        set=[pair("X-Set", "rule"), pair("X-Both", "rule")],
        add=[pair("X-Add", "more"), pair("X-Gone", "no")],
        remove=["x-old", "X-Gone"],
    )
    own = headers(set=[pair("x-both", "backend %")], remove=["X-Set"])
    some = [to("till", filters=[own]), to("mug")]
    response = {
        "type": "ResponseHeaderModifier",
        "responseHeaderModifier": {"set": [pair("x-new", "1")], "remove": ["x-old"]},
    }
    rules = [
        at("/one", filters=[rule], backendRefs=[to("till", filters=[own])]),
        at("/two", filters=[rule], backendRefs=some),
        at("/back", filters=[response]),
    ]
    sent = {"x-old": "1", "X-Add": "first", "X-Set": "mine"}
    async with way(tmp_path, world(route(*rules))) as (out, _):
        one = seen(await out.ask(CART, "/one", headers=sent))["headers"]
        assert one["x-add"] == "first,more"
        assert one["x-both"] == "backend %"
        assert not {"x-old", "x-gone", "x-set"} & one.keys()
        for _ in range(8):
            two = seen(await out.ask(CART, "/two", headers=sent))
            by_backend = two["app"] == TILL
            assert two["headers"]["x-both"] == ("backend %" if by_backend else "rule")
            assert ("x-set" in two["headers"]) is not by_backend
        back = await out.ask(CART, "/back")
        assert back is not None
        assert back.headers["x-new"] == "1"
        assert "x-old" not in back.headers


async def test_paths_and_hosts_are_rewritten_with_the_rule_or_the_backend(tmp_path: Path) -> None:
    def rewrite(**said: object) -> dict[str, Any]:
        return {"type": "URLRewrite", "urlRewrite": said}

    full = rewrite(hostname="new.test", path={"type": "ReplaceFullPath", "replaceFullPath": "/n"})
    prefix = rewrite(path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"})
    rules = [
        at("/full", filters=[full]),
        at("/strip", filters=[prefix]),
        at("/backend", backendRefs=[to("till", filters=[full]), to("mug")]),
    ]
    async with way(tmp_path, world(route(*rules))) as (out, _):
        found = seen(await out.ask(CART, "/full/x?q=1"))
        assert (found["path"], found["headers"]["host"]) == ("/n?q=1", "new.test")
        assert seen(await out.ask(CART, "/strip/a/b"))["path"] == "/a/b"
        assert seen(await out.ask(CART, "/strip"))["path"] == "/"
        pairs = set()
        for _ in range(24):
            one = seen(await out.ask(CART, "/backend/x"))
            pairs.add((one["app"], one["path"]))
        assert pairs == {(TILL, "/n"), (MUG, "/backend/x")}


async def test_copies_of_requests_are_nobodys_business(tmp_path: Path) -> None:
    mirror = {
        "type": "RequestMirror",
        "requestMirror": {"backendRef": {"name": "mug", "port": 80}},
    }
    async with way(tmp_path, world(route(at("/", filters=[mirror])))) as (out, apps):
        assert seen(await out.ask(CART))["app"] == OWN

        async def copied() -> bool:
            return MUG in apps.asked

        await out.envoy.until(copied, 10, "the copy")


async def test_what_cannot_be_done_answers_for_what_it_was_for(tmp_path: Path) -> None:
    rules = [at("/a", filters=[{"type": "ExtensionRef"}]), at("/b")]
    async with way(tmp_path, world(route(*rules))) as (out, _):
        answer = await out.ask(CART, "/a")
        assert status(answer) == 500
        assert answer is not None
        assert answer.body == "unsupported filter ExtensionRef"
        assert status(await out.ask(CART, "/b")) == 200


async def test_attempts_are_retried_and_cut_off_as_asked(tmp_path: Path) -> None:
    notes = {"retry.linkerd.io/http": "5xx", "retry.linkerd.io/limit": "2"}
    async with way(tmp_path, world(route(at("/"), annotations=notes))) as (out, apps):
        assert status(await out.ask(CART, headers={"x-answer": "503"})) == 503
        assert apps.asked.count(OWN) == 3
        assert status(await out.ask(CART, headers={"x-answer": "404"})) == 404
        assert apps.asked.count(OWN) == 4


# ------------------------------------------------------------------------------ clients' own


async def test_a_namespaces_own_routes_take_the_place_of_the_services(tmp_path: Path) -> None:
    theirs: Compact = {"svc": "pay/bank", "ip": "10.96.0.20", "ports": [80]}
    producer: Compact = {
        "route": "pay/r", "service": "bank", "rules": [at("/producer"), at("/both")]
    }  # fmt: skip
    own: Compact = {
        "route": "shop/mine", "service": "bank", "of": "pay",
        "rules": [at("/both", backendRefs=[to("till")])],
    }  # fmt: skip
    bank = Dialled("10.96.0.20", 80)
    async with way(tmp_path, world({"ns": "pay"}, theirs, producer, own)) as (out, _):
        assert seen(await out.ask(bank, "/both"))["app"] == TILL
        assert status(await out.ask(bank, "/producer")) == 404


# --------------------------------------------------------------------------- connections


async def test_connections_are_chosen_by_server_name(tmp_path: Path) -> None:
    tls: Compact = {
        "tlsroute": "shop/t", "service": "cart", "port": 3306,
        "hosts": ["a.test", "*.b.test"], "backends": [["till", 80]],
    }  # fmt: skip
    async with way(tmp_path, world(tls)) as (out, _):
        port = Dialled(CART.ip, 3306)
        assert await out.exchange(port, hello("a.test")) == TILL.encode()
        assert await out.exchange(port, hello("x.b.test")) == TILL.encode()
        assert await out.exchange(port, hello("b.test")) == b""
        assert await out.exchange(port, b"no TLS at all") == b""


def hello(name: str) -> bytes:
    """The first bytes of a TLS client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def test_the_oldest_tcp_route_takes_every_connection(tmp_path: Path) -> None:
    old: Compact = {
        "tcproute": "shop/old", "service": "cart", "port": 3306,
        "backends": [["mug", 80]], "created": "2020-01-01T00:00:00Z",
    }  # fmt: skip
    new: Compact = {
        "tcproute": "shop/a",
        "service": "cart",
        "port": 3306,
        "backends": [["till", 80]],
    }
    async with way(tmp_path, world(old, new)) as (out, _):
        assert await out.exchange(Dialled(CART.ip, 3306), b"SELECT 1") == MUG.encode()


# -------------------------------------------------------------------------------- gRPC


async def call(out: Way, where: Dialled, method: str, **headers_: str) -> str:
    """The status of a gRPC call; OK if the application answered it."""
    async with out.relay(where) as address, grpc.aio.insecure_channel(address) as channel:
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        try:
            found = await unary(b"", timeout=10, metadata=tuple(headers_.items()))
        except grpc.aio.AioRpcError as fault:
            return fault.code().name
        assert found == method.encode()
        return "OK"


ANY_OF = {"type": "RegularExpression"}


async def test_calls_are_routed_by_method_and_header(tmp_path: Path) -> None:
    rules = [
        {"matches": [{"method": {"service": "a.B", "method": "C"}}]},
        {"matches": [{"headers": [{"name": "user", "value": "me"}]}]},
        {"matches": [{"method": {"service": "a.Gone"}}], "backendRefs": [to("gone")]},
        {
            "matches": [
                {"method": {"type": "RegularExpression", "service": "x[.]Y", "method": "Z+"}}
            ]
        },
    ]
    calls: Compact = {"groute": "shop/g", "service": "cart", "port": 7070, "rules": rules}
    async with way(tmp_path, world(calls)) as (out, _):
        port = Dialled(CART.ip, 7070)
        assert await call(out, port, "/a.B/C") == "OK"
        assert await call(out, port, "/a.B/D") == "NOT_FOUND"
        assert await call(out, port, "/a.B/D", user="me") == "OK"
        assert await call(out, port, "/a.Gone/D") == "UNAVAILABLE"
        assert await call(out, port, "/x.Y/ZZ") == "OK"
        assert await call(out, port, "/xaY/ZZ") == "NOT_FOUND"


async def test_calls_by_http_routes_are_answered_as_calls(tmp_path: Path) -> None:
    async with way(tmp_path, world(route(at("/a.B")))) as (out, _):
        assert await call(out, CART, "/a.B/C") == "OK"
        assert await call(out, CART, "/x.Y/Z") == "NOT_FOUND"


# -------------------------------------------------------------------------------- egress

DENY: Compact = {"egress": "linkerd-egress/all-egress", "policy": "Deny"}
ALLOW: Compact = {"egress": "linkerd-egress/all-egress", "policy": "Allow"}


def color(name: str, *methods: Mapping[str, Any]) -> Compact:
    """A GRPCRoute of the application's namespace, as the workshop has them."""
    return {
        "groute": f"shop/{name}",
        "egress": "all-egress",
        "of": "linkerd-egress",
        "port": 8000,
        "rules": [{"matches": [each]} for each in methods],
    }


EDGE = {"method": {"service": "ColorService", "method": "Edge"}}
ALL_COLORS = {"method": {"service": "ColorService"}}
CENTER_FOR_ONE = {
    "method": {"service": "ColorService", "method": "Center"},
    "headers": [{"type": "Exact", "name": "x-faces-user", "value": "Center"}],
}


async def colors(out: Way) -> list[str]:
    """What comes of the edge, of the center, and of the center for one user."""
    return [
        await call(out, COLOR, "/ColorService/Edge"),
        await call(out, COLOR, "/ColorService/Center"),
        await call(out, COLOR, "/ColorService/Center", **{"x-faces-user": "Center"}),
    ]


async def parents(out: Way) -> set[str]:
    """Parent and route of all requests so far, by their packed labels."""
    lines = await out.stats("isthmus_outbound_http")
    found = (line.partition('labels="')[2].partition(";")[0] for line in lines)
    return {"|".join(each.split("|")[:10]) for each in found}


async def test_without_a_network_what_leaves_is_unmanaged(tmp_path: Path) -> None:
    async with way(tmp_path, world()) as (out, _):
        assert seen(await out.ask(OUT))["app"] == "passthrough"
        assert await colors(out) == ["OK", "OK", "OK"]
        fallback = "|default||egress-fallback||||default||egress-fallback"
        assert await parents(out) == {fallback}
        assert await out.exchange(OUT, b"anything") == b"passthrough"


async def test_a_network_that_allows_names_what_leaves(tmp_path: Path) -> None:
    async with way(tmp_path, world(ALLOW)) as (out, _):
        assert seen(await out.ask(OUT))["app"] == "passthrough"
        assert await colors(out) == ["OK", "OK", "OK"]
        front = "policy.linkerd.io|EgressNetwork|linkerd-egress|all-egress"
        names = {f"{front}|{port}|||default||http-egress-allow" for port in (80, 8000)}
        assert await parents(out) == names


async def test_a_network_that_denies_refuses_in_every_protocol(tmp_path: Path) -> None:
    async with way(tmp_path, world(DENY)) as (out, _):
        answer = await out.ask(OUT)
        assert status(answer) == 403
        assert answer is not None
        assert answer.body == "traffic not allowed"
        assert await colors(out) == ["FAILED_PRECONDITION"] * 3
        assert await out.exchange(OUT, b"anything") == b""
        assert await out.exchange(Dialled("203.0.113.9", 443), hello("a.test")) == b""
        assert seen(await out.ask(Dialled("10.9.9.9", 80)))["app"] == "passthrough"
        assert status(await out.ask(Dialled("10.96.9.9", 80))) is None
        ipv6 = Dialled("2001:db8::1", 80)
        assert status(await out.ask(ipv6)) == 403


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([color("allow-color", ALL_COLORS)], ["OK", "OK", "OK"]),
        ([color("allow-color", EDGE)], ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED"]),
        (
            [color("allow-color", EDGE), color("allow-color-2", CENTER_FOR_ONE)],
            ["OK", "PERMISSION_DENIED", "OK"],
        ),
    ],
    ids=["all", "edges", "edges, and the center for one user"],
)
async def test_the_workshops_routes_let_out_what_they_say(
    routes: list[Compact], expected: list[str], tmp_path: Path
) -> None:
    smiley: Compact = {
        "route": "shop/smiley", "egress": "all-egress", "of": "linkerd-egress",
        "port": 80, "hosts": ["smiley.test"],
    }  # fmt: skip
    async with way(tmp_path, world(DENY, smiley, *routes)) as (out, _):
        assert await colors(out) == expected
        assert status(await out.ask(OUT, host="smiley.test:80")) == 200
        assert status(await out.ask(OUT, host="other.test")) == 403
        assert status(await out.ask(COLOR, "/")) is None  # gRPC alone is spoken there


async def test_networks_are_told_apart_by_address_port_and_server_name(tmp_path: Path) -> None:
    some: Compact = {
        "egress": "linkerd-egress/some",
        "networks": [{"cidr": "198.51.100.0/24", "except": ["198.51.100.128/25"]}],
    }
    name: Compact = {
        "tlsroute": "shop/t", "egress": "all-egress", "of": "linkerd-egress",
        "port": 443, "hosts": ["a.test"],
    }  # fmt: skip
    raw: Compact = {
        "tcproute": "shop/raw",
        "egress": "all-egress",
        "of": "linkerd-egress",
        "port": 5000,
    }
    async with way(tmp_path, world(DENY, some, name, raw)) as (out, _):
        assert status(await out.ask(Dialled("198.51.100.7", 80))) == 200
        assert status(await out.ask(Dialled("198.51.100.200", 80))) == 403
        secure = Dialled("203.0.113.9", 443)
        assert await out.exchange(secure, hello("a.test")) == b"passthrough"
        assert await out.exchange(secure, hello("b.test")) == b""
        assert await out.exchange(secure, b"no TLS") == b""
        assert await out.exchange(Dialled("203.0.113.9", 5000), b"raw") == b"passthrough"
        assert await out.exchange(Dialled("203.0.113.9", 5001), b"raw") == b""
        # A port with routes at one network is still the other's own elsewhere.
        assert await out.exchange(Dialled("198.51.100.7", 443), hello("b.test")) == b"passthrough"


async def test_what_leaves_may_be_led_back_to_a_service(tmp_path: Path) -> None:
    back: Compact = {
        "route": "shop/back", "egress": "all-egress", "of": "linkerd-egress", "port": 80,
        "hosts": ["*.test"], "backends": [["till", 80]],
    }  # fmt: skip
    async with way(tmp_path, world(DENY, back)) as (out, _):
        assert seen(await out.ask(OUT, host="a.test"))["app"] == TILL
        assert status(await out.ask(OUT, host="a.example")) == 403


# ------------------------------------------------------------- against the reference reading

PATHS = ("/", "/a", "/a/", "/a/b", "/ab", "/b", "/a/../b", "/%61", "/a//b", "/c?a=1", "/c?a=2&b=1")
HOSTS = (
    "cart", "cart:80", "x.cart.test", "CART.test", "y.x.cart.test", "other", "Cart.",
    "cart.test.:80", "cart:80@other", "cart..", "cart:80:80", "x@cart", "other,cart", "cart%00",
    "cart:x", "x.cart.test.",
)  # fmt: skip
VALUES = ("1", "2", "12")


def some_match(dice: Random) -> dict[str, Any]:
    kind = dice.choice(("Exact", "PathPrefix", "PathPrefix", "RegularExpression"))
    plain = dice.choice(("/", "/a", "/a/", "/a/b", "/b", "/c"))
    value = dice.choice(("/a.*", "/[ab]", "/a/[a-z]+")) if kind[0] == "R" else plain
    found: dict[str, Any] = {"path": {"type": kind, "value": value}}
    if dice.random() < 0.3:
        how = dice.choice(("Exact", "RegularExpression"))
        found["headers"] = [{"type": how, "name": "X-Key", "value": dice.choice(VALUES)}]
    if dice.random() < 0.2:
        found["queryParams"] = [{"name": "a", "value": dice.choice(VALUES)}]
    if dice.random() < 0.2:
        found["method"] = dice.choice(("GET", "PUT"))
    return found


def some_filter(dice: Random) -> dict[str, Any]:
    changes: list[dict[str, Any]] = [
        headers(set=[pair("x-set", "s")], add=[pair("x-key", "more")], remove=["x-gone"]),
        {"type": "RequestRedirect", "requestRedirect": {"hostname": "to.test"}},
        {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}},
        {"type": "RequestRedirect", "requestRedirect": {"port": 8080}},
        {"type": "URLRewrite", "urlRewrite": {"hostname": "new.test"}},
        {"type": "CORS"},
    ]
    change = dice.choice(changes)
    path = dice.choice(
        (
            None,
            {"type": "ReplaceFullPath", "replaceFullPath": "/full"},
            {"type": "ReplacePrefixMatch", "replacePrefixMatch": dice.choice(("/", "/p", "/p/"))},
        )
    )
    for name in ("requestRedirect", "urlRewrite"):
        if name in change and path is not None:
            change[name] = {**change[name], "path": path}
    return dict(change)


def some_route(dice: Random, number: int) -> Compact:
    rules = [
        {
            "matches": [some_match(dice) for _ in range(dice.randint(1, 2))],
            "filters": [some_filter(dice)] if dice.random() < 0.5 else [],
            "backendRefs": [to(dice.choice(("till", "mug", "gone")))]
            if dice.random() < 0.7
            else [],
        }
        for _ in range(dice.randint(1, 3))
    ]
    names = ("x.cart.test", "*.cart.test", "cart", "cart.test")
    listed = dice.sample(names, dice.randint(1, 2)) if dice.random() < 0.5 else []
    created = f"2024-01-01T00:00:0{dice.randint(0, 3)}Z"
    place = {"route": f"shop/r{number}", "service": "cart", "port": 80, "created": created}
    return {**place, "rules": rules, **({"hosts": listed} if listed else {})}


def expected(ir: Outbound, request: HttpRequest) -> dict[str, Any]:
    """What the reference reading says comes of a request."""
    there = EndpointSet((Endpoint("10.1.0.1", 80),), state=SetState.SOME)
    found = decide(ir, request, lambda _: there).verdict
    match found:
        case Forward(target=target, request=HttpRequest(path=path, authority=host, headers=sent)):
            name = target.id.key(TRUST)
            keys = {key.lower() for key, _ in sent}
            return {"app": name, "path": path, "host": host, "key": "x-key" in keys}
        case ToOriginal():
            return {"app": "passthrough"}
        case Reply(status=code, location=location):
            return {"status": code, "location": location.replace(":443/", "/")}
        case _:
            raise AssertionError(found)


def observed(answer: Answer | None) -> dict[str, Any]:
    assert answer is not None
    if answer.status != 200:
        location = answer.headers.get("location", "")
        return {"status": answer.status, "location": location.replace(":443/", "/")}
    found = json.loads(answer.body)
    sent = found["headers"]
    return {
        "app": found["app"], "path": found["path"], "host": sent["host"], "key": "x-key" in sent
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
async def test_requests_come_to_what_the_reference_reading_says(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    mesh = world(*(some_route(dice, number) for number in range(dice.randint(2, 6))))
    name = OutboundName(Ref(LOCAL, "", "Service", "shop", "cart"), 80, "shop")
    ir = mesh.db.read(outbound, name)
    async with way(tmp_path, mesh) as (out, _):
        limit = asyncio.Semaphore(16)

        async def compared() -> tuple[HttpRequest, dict[str, Any], dict[str, Any]]:
            method, host, path = (dice.choice(some) for some in (("GET", "PUT"), HOSTS, PATHS))
            sent = {"x-key": dice.choice(VALUES)} if dice.random() < 0.5 else {}
            request = HttpRequest(method, host, path, tuple(sent.items()))
            async with limit:
                answer = await out.ask(CART, path, method, host=host, headers=sent)
            return request, expected(ir, request), observed(answer)

        found = await asyncio.gather(*(compared() for _ in range(150)))
    differing = [each for each in found if each[1] != each[2]]
    assert not differing, differing[:3]
