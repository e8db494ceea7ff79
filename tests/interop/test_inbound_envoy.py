"""Who reaches a workload through a real Envoy, and who does not: policies as people write them.

Each policy set is told to an Envoy of its own; `ir.decide` is asked the same and must agree.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from isthmus.ir.decide import Admit, Close, Reply
from isthmus.ir.decide import inbound as decide
from isthmus.ir.identity import parse_identity
from isthmus.ir.proxy import InboundName
from isthmus.ir.request import HttpRequest, Peer
from isthmus.mesh.inbound import inbound
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.inbound_envoy import ENDING, STRANGER, TCP, Door, application, door
from tests.support.meshworld import World

OPS_NET = "127.0.99.1"
POLICY = "config.linkerd.io/default-inbound-policy"
WEB: Compact = {"server": "shop/web", "pods": {"app": "me"}, "port": 8080}
PICKER = f"picker.shop.{ENDING}"
SOWER = f"sower.shop.{ENDING}"


@pytest.fixture(scope="module")
async def app() -> AsyncIterator[int]:
    async with application() as port:
        yield port


def me(**said: object) -> Compact:
    base = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
    return {**base, "labels": {"app": "me"}, "ports": [{"port": 8080, "name": "http"}], **said}


def world(*objects: Compact, **said: object) -> World:
    return World({"ns": "shop"}, me(**said), *objects, cluster_networks=("127.0.0.0/8",))


def only(*identities: str, name: str = "a", on: object = "web") -> list[Compact]:
    return [
        {"mtls": f"shop/{name}", "ids": list(identities)},
        {"az": f"shop/{name}", "for": on, "needs": [f"MeshTLSAuthentication {name}"]},
    ]


def rule(path: str, kind: str = "PathPrefix", **said: object) -> dict[str, Any]:
    return {"matches": [{"path": {"type": kind, "value": path}, **said}]}


async def status(entrance: Door, target: str = "/", **said: Any) -> int | None:  # noqa: ANN401
    answer = await entrance.ask(target, **said)
    return answer.status if answer is not None else None


# ------------------------------------------------------------------------ who gets in


async def test_who_gets_in(tmp_path: Path, app: int) -> None:
    held = world(WEB, *only(PICKER))
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance) == 403
        assert await status(entrance, identity=SOWER) == 403
        assert await status(entrance, identity=PICKER) == 200
        assert await status(entrance, identity=PICKER, alpn="") == 200
        assert await status(entrance, source="127.0.0.1") == 200
        assert await status(entrance, port=9090) == 200
        told = await entrance.ask(headers={"content-type": "application/grpc"})
        assert told is not None
        assert (told.status, told.headers["grpc-status"]) == (200, "7")


async def test_who_let_a_client_in_is_counted(tmp_path: Path, app: int) -> None:
    held = world(WEB, *only(PICKER))
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance, identity=PICKER) == 200
        assert await status(entrance) == 403
        lines = (await entrance.stat("isthmus_inbound_http{")).splitlines()
    labels = 'labels="policy.linkerd.io|server|web|8080||default|default||;'
    admitted, refused = sorted(lines, key=lambda line: "403" in line)
    for part in (
        labels,
        ";200;",
        f';authorizationpolicy/shop/a;{PICKER}"',
    ):
        assert part in admitted
    for part in (labels, ";403;"):
        assert part in refused
    assert all(line.endswith(" 1") for line in (admitted, refused))


async def test_what_routes_and_ports_grant_adds_up(tmp_path: Path, app: int) -> None:
    held = world(
        WEB,
        {"phr": "shop/juice", "for": "web", "rules": [rule("/juice")]},
        *only("*", on=["HTTPRoute.policy.linkerd.io", "juice"]),
        {"nets": "shop/ops", "networks": ["127.0.99.0/24"]},
        {"az": "shop/on-server", "for": "web", "needs": ["NetworkAuthentication ops"]},
    )
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance, "/juice", identity=PICKER) == 200
        assert await status(entrance, "/juice") == 403
        assert await status(entrance, "/juice", source=OPS_NET) == 200
        assert await status(entrance, "/other", identity=PICKER) == 404
        assert await status(entrance, "/other", source=OPS_NET) == 404


async def test_networks_are_of_the_connection_not_of_a_header(tmp_path: Path, app: int) -> None:
    held = world(
        WEB,
        {"nets": "shop/n", "networks": [{"cidr": "127.0.0.0/8", "except": ["127.0.42.0/24"]}]},
        {"az": "shop/a", "for": "web", "needs": ["NetworkAuthentication n"]},
    )
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance, source=OPS_NET) == 200
        for name in ("x-forwarded-for", "x-real-ip", "x-envoy-external-address", "forwarded"):
            assert await status(entrance, headers={name: OPS_NET}) == 403


async def test_the_workshops_policy_lets_one_account_in(tmp_path: Path, app: int) -> None:
    """Smilies are for the account `face` of the namespace `faces` alone, wherever it runs."""
    held = World(
        {"ns": "faces"},
        {"pod": "faces/smiley-1", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me",
         "labels": {"service": "smiley"}, "ports": [{"port": 8000, "name": "http"}]},
        {"server": "faces/smiley-http", "pods": {"service": "smiley"}, "port": "http",
         "access": "deny"},
        {"mtls": "faces/face-authn", "ids": [f"face.faces.{ENDING}"]},
        {"az": "faces/smiley-authz", "for": "smiley-http",
         "needs": ["MeshTLSAuthentication face-authn"]},
    )  # fmt: skip
    sni = f"me.faces.{ENDING}"
    async with door(tmp_path, held, app, pod("faces/smiley-1")) as entrance:
        for identity, found in ((f"default.faces.{ENDING}", 403), (f"face.faces.{ENDING}", 200)):
            assert await status(entrance, port=8000, identity=identity, sni=sni) == found
        assert await status(entrance, port=8000) == 403
        assert await status(entrance, port=8001) == 200


async def test_the_workshops_policy_does_nothing_where_there_are_no_smilies(
    tmp_path: Path, app: int
) -> None:
    held = world({"server": "shop/smiley-http", "pods": {"service": "smiley"}, "port": "http"})
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance) == 200


# ----------------------------------------------------------------------------- identities

LOOKALIKES = (
    f"picker.shop.{ENDING}.",
    f"Picker.shop.{ENDING}",
    f"picker.shop.{ENDING}.evil.example",
    f"xpicker.shop.{ENDING}",
    f"picker.shop.{ENDING}".replace(".", "x", 1),
    f"picker-shop.{ENDING}",
    f"evil.picker.shop.{ENDING}",
    f"spiffe://picker.shop.{ENDING}",
    f"spiffe://trust.mesh.test/picker.shop.{ENDING}",
    f"*.shop.{ENDING}",
)


async def test_who_only_looks_alike_is_somebody_else(tmp_path: Path, app: int) -> None:
    held = world(WEB, *only(PICKER))
    async with door(tmp_path, held, app) as entrance:
        found = {name: await status(entrance, identity=name) for name in LOOKALIKES}
        assert found == dict.fromkeys(LOOKALIKES, 403)


async def test_a_suffix_is_labels(tmp_path: Path, app: int) -> None:
    held = world(
        WEB,
        {"mtls": "shop/m", "refs": [["Namespace", "pay"]]},
        {"az": "shop/a", "for": "web", "needs": ["MeshTLSAuthentication m"]},
    )
    async with door(tmp_path, held, app) as entrance:
        for name, found in (
            (f"till.pay.{ENDING}", 200),
            (f"till.xpay.{ENDING}", 403),
            (f"pay.{ENDING}", 403),
            (f"till.pay.{ENDING}.evil", 403),
            (f"till.pay.{ENDING}".replace("serviceaccount", "xserviceaccount"), 403),
            (f"spiffe://pay.{ENDING}/till.pay.{ENDING}", 403),
        ):
            assert await status(entrance, identity=name) == found, name


async def test_spiffe_identities_are_compared_whole(tmp_path: Path, app: int) -> None:
    held = world(WEB, *only("spiffe://td.example/ns/a"))
    async with door(tmp_path, held, app) as entrance:
        for name, found in (
            ("spiffe://td.example/ns/a", 200),
            ("spiffe://td.example/ns/a/b", 403),
            ("spiffe://td.example/ns", 403),
            ("spiffe://td.examplei/ns/a", 403),
            ("spiffe://TD.example/ns/a", 403),
        ):
            assert await status(entrance, identity=name) == found, name


# ----------------------------------------------------------------- evasion, and the reference

TARGETS = (
    "/", "/x", "/admin", "/admin/", "/admin/x", "/adminx", "/admin?x", "/x?/../admin", "//admin",
    "/./admin", "/x/../admin", "/x/../../admin", "/%61dmin", "/ad%6Din", "/%2e/admin",
    "/x/%2e%2e/admin", "/x/.%2e/admin", "/x%3f/../admin", "/x//..//admin", "/%2fadmin",
    "/x%2f..%2fadmin", "/%5cadmin", "/x\\..\\admin", "/admin;x", "/;/admin", "/.;/admin",
    "/x/..;/admin", "/x/%2e%2e;/admin", "/admin;/", "/admin%3bx", "/admin#x", "/ADMIN",
    "/%2561dmin", "/admin%20", "/live", "/live/", "/live/../admin", "/LIVE",
)  # fmt: skip
HOSTS = (
    "shop", "shop:80", "secret.example", "SECRET.example", "secret.example.", "secret.example:80",
    "Secret.Example.:80", "x@secret.example", "secret.example@x", "a.wide.example",
    "a.WIDE.example.", "wide.example", "xwide.example", "secret.example:80:80", "secret.example..",
    "secret.example%00", "%73ecret.example", "secret.example;x", "shop,secret.example",
    "[secret.example]", ".secret.example", "secret.example:", "secret.example:x", "[fd00::1]:80",
    "known.example", "known.example:80@secret.example", "known.example:x@secret.example",
)  # fmt: skip
GUARDED: tuple[Compact, ...] = (
    WEB,
    {"hr": "shop/open", "for": "web", "rules": [rule("/")]},
    {"hr": "shop/live", "for": "web", "rules": [rule("/live", "Exact", method="GET")]},
    {"hr": "shop/admin", "for": "web", "rules": [rule("/admin")]},
    {"hr": "shop/secret", "for": "web", "rules": [rule("/")], "hosts": ["secret.example"]},
    {"hr": "shop/wide", "for": "web", "rules": [rule("/")], "hosts": ["*.wide.example"]},
    {"hr": "shop/known", "for": "web", "rules": [rule("/")], "hosts": ["known.example"]},
    {"az": "shop/open", "for": ["HTTPRoute.gateway.networking.k8s.io", "open"]},
    {"az": "shop/known", "for": ["HTTPRoute.gateway.networking.k8s.io", "known"]},
    {"az": "shop/live", "for": ["HTTPRoute.gateway.networking.k8s.io", "live"]},
    *only(PICKER, on=["HTTPRoute.gateway.networking.k8s.io", "admin"]),
    *only(PICKER, name="s", on=["HTTPRoute.gateway.networking.k8s.io", "secret"]),
    *only(PICKER, name="w", on=["HTTPRoute.gateway.networking.k8s.io", "wide"]),
)
PEERS: tuple[tuple[str, str | None], ...] = ((STRANGER, None), (STRANGER, PICKER))


def expected(held: World, target: str, host: str, peer: tuple[str, str | None]) -> int | None:
    """What `ir.decide` says."""
    address, name = peer
    who = Peer(address, name is not None, parse_identity(name) if name is not None else None)
    found = held.db.read(inbound, InboundName(pod("shop/me"), 8080))
    verdict = decide(found, who, HttpRequest(authority=host, path=target)).verdict
    match verdict:
        case Admit():
            return 200
        case Reply(status=code):
            return code
        case Close():
            return None
        case _:
            raise AssertionError(verdict)


def asked() -> Iterator[tuple[str, str, tuple[str, str | None]]]:
    yield from itertools.product(TARGETS, ("shop",), PEERS)
    yield from itertools.product(("/", "/admin"), HOSTS, PEERS)


async def test_no_way_of_writing_a_path_or_host_leads_past_a_policy(
    tmp_path: Path, app: int
) -> None:
    held = world(*GUARDED)
    wrong = {}
    async with door(tmp_path, held, app) as entrance:
        for target, host, peer in asked():
            said = {"source": peer[0], "identity": peer[1], "host": host}
            found = await status(entrance, target, **said)
            wanted = expected(held, target, host, peer)
            if found != wanted:
                wrong[target, host, peer] = (found, wanted)
    assert wrong == {}


async def test_strangers_see_nothing_of_what_is_guarded(tmp_path: Path, app: int) -> None:
    """What the application is told to serve to a stranger is never /admin, however it reads it."""
    held = world(*GUARDED)
    async with door(tmp_path, held, app) as entrance:
        for target in TARGETS:
            answer = await entrance.ask(target, host="shop")
            assert answer is not None
            if answer.status == 200:
                path = answer.seen["path"].partition("?")[0]
                assert ";" not in path
                assert not path.startswith(("/admin/", "//")) and path != "/admin"  # noqa: PT018


async def test_parameters_pass_where_no_path_decides(tmp_path: Path, app: int) -> None:
    held = world({**WEB, "access": "all-unauthenticated"})
    async with door(tmp_path, held, app) as entrance:
        answer = await entrance.ask("/a;b/c;d")
        assert answer is not None
        assert answer.seen["path"] == "/a;b/c;d"


async def test_what_is_known_of_callers_cannot_be_said_by_them(tmp_path: Path, app: int) -> None:
    forged = {"l5d-client-id": "x", "isthmus-caller": "id:x", "isthmus-protocol": "HTTP/1.1",
              "x-forwarded-client-cert": "By=x;URI=spiffe://x", "l5d_client_id": "x",
              "l5d-client_id": "x", "x_forwarded_client_cert": "By=x"}  # fmt: skip
    async with door(tmp_path, world(), app) as entrance:
        plain = await entrance.ask(headers=forged)
        meshed = await entrance.ask(headers=forged, identity=PICKER)
    assert plain is not None
    assert meshed is not None
    assert not set(forged) - {"l5d-client-id"} & set(plain.seen["headers"])
    assert not plain.seen["headers"].get("l5d-client-id")
    assert meshed.seen["headers"]["l5d-client-id"] == PICKER
    known = {"l5d-client-id", "x-forwarded-client-cert"}
    assert set(forged) & set(meshed.seen["headers"]) == known


# ----------------------------------------------------------------------------- raw bytes


async def test_a_declared_protocol_is_not_left_by_speaking_another(
    tmp_path: Path, app: int
) -> None:
    held = world({**WEB, "protocol": "HTTP/1", "access": "all-unauthenticated"})
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance) == 200
        for how in ({}, {"identity": PICKER, "alpn": TCP}):
            answer = await entrance.send(b"\x00\x01 no request\r\n\r\n", **how)
            assert answer is None or answer.status == 400
        assert await status(entrance, identity=PICKER, alpn=TCP) == 200
        assert await status(entrance, identity=PICKER, sni="elsewhere.example") is None


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """A server that says back what it hears."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(4096):
            writer.write(some)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_connections_are_judged_by_identity_and_network(tmp_path: Path) -> None:
    held = world(
        {**WEB, "protocol": "opaque"},
        *only(PICKER),
        {"nets": "shop/ops", "networks": ["127.0.99.0/24"]},
        {"az": "shop/b", "for": "web", "needs": ["NetworkAuthentication ops"]},
    )
    async with echoing() as raw, door(tmp_path, held, raw) as entrance:
        said = b"\x00raw bytes"
        assert await entrance.exchange(said, identity=PICKER, alpn=TCP) == said
        assert await entrance.exchange(said, source=OPS_NET) == said
        assert await entrance.exchange(said, identity=SOWER, alpn=TCP) == b""
        assert await entrance.exchange(said) == b""


# -------------------------------------------------------------------------- modes, probes


async def test_audit_lets_in_and_tells(tmp_path: Path, app: int) -> None:
    held = world({**WEB, "access": "audit"}, *only(PICKER))
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance) == 200
        assert await status(entrance, identity=PICKER) == 200
        lines = await entrance.stat("isthmus_inbound_http{")
    assert ";~default/audit;" in lines
    assert ";authorizationpolicy/shop/a;" in lines


async def test_strict_workloads_take_mesh_tls_and_probes(tmp_path: Path, app: int) -> None:
    strict = {"config.isthmus.dev/inbound-tls": "strict"}
    held = world(annotations=strict, probes=[{"port": 8080, "path": "/live"}])
    async with door(tmp_path, held, app) as entrance:
        assert await status(entrance, identity=PICKER) == 200
        for target, found in (("/", 404), ("/live", 200), ("/live?x", 200), ("/live/../x", 404)):
            assert await status(entrance, target) == found
            assert expected(held, target, "me.shop", (STRANGER, None)) == found


async def test_probes_are_answered_until_a_route_takes_their_place(
    tmp_path: Path, app: int
) -> None:
    probes = [{"port": 8080, "path": "/live"}]
    async with door(tmp_path / "a", world(WEB, probes=probes), app) as entrance:
        assert await status(entrance, "/live") == 200
        assert await status(entrance, "/live/x") == 403
        assert await status(entrance, "/live/../x") == 403
    juice = {"phr": "shop/juice", "for": "web", "rules": [rule("/juice")]}
    async with door(tmp_path / "b", world(WEB, juice, probes=probes), app) as entrance:
        assert await status(entrance, "/live") == 404


async def test_filters_of_routes(tmp_path: Path, app: int) -> None:
    change = {"set": [{"name": "x-set", "value": "100%"}], "remove": ["x-gone"]}
    own = {"group": "g", "kind": "K", "name": "n"}
    moved = {"hostname": "other.example", "statusCode": 301}
    held = world(
        {**WEB, "access": "all-unauthenticated"},
        {"hr": "shop/r", "for": "web", "rules": [
            rule("/a") | {"filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": change}]},
            rule("/b") | {"filters": [{"type": "RequestRedirect", "requestRedirect": moved}]},
            rule("/c") | {"filters": [{"type": "ExtensionRef", "extensionRef": own}]},
        ]},
    )  # fmt: skip
    async with door(tmp_path, held, app) as entrance:
        answer = await entrance.ask("/a", headers={"x-gone": "1"})
        assert answer is not None
        assert answer.seen["headers"]["x-set"] == "100%"
        assert "x-gone" not in answer.seen["headers"]
        moved_to = await entrance.ask("/b", host="here.example")
        assert moved_to is not None
        assert (moved_to.status, moved_to.headers["location"]) == (301, "http://other.example/b")
        assert await status(entrance, "/c") == 500


# --------------------------------------------------------------------------- rate limits

LIMITED: Compact = {"limit": "shop/lim", "for": "web"}


async def burst(entrance: Door, number: int, **said: Any) -> Counter[int | None]:  # noqa: ANN401
    return Counter(await asyncio.gather(*(status(entrance, **said) for _ in range(number))))


def open_port(**limit: object) -> World:
    return world({**WEB, "access": "all-unauthenticated"}, {**LIMITED, **limit})


async def test_each_client_has_its_own_allowance_and_strangers_share_one(
    tmp_path: Path, app: int
) -> None:
    async with door(tmp_path, open_port(identity=1), app) as entrance:
        found = await burst(entrance, 8)
        assert found[200] < 8
        assert found[200] + found[429] == 8
        forged = await burst(entrance, 8, headers={"isthmus-caller": f"id:{PICKER}"})
        assert forged[429] > 0
        assert await status(entrance, identity=PICKER) == 200
        assert await status(entrance, identity=SOWER) == 200


async def test_an_override_is_shared_by_those_it_names(tmp_path: Path, app: int) -> None:
    held = open_port(identity=1000, overrides=[[1, ["picker", "sower"]]])
    async with door(tmp_path, held, app) as entrance:
        first = await burst(entrance, 6, identity=PICKER)
        second = await burst(entrance, 6, identity=SOWER)
        assert first[429] + second[429] > 0
        assert await burst(entrance, 6, identity=f"other.shop.{ENDING}") == {200: 6}


async def test_the_total_counts_everybody(tmp_path: Path, app: int) -> None:
    async with door(tmp_path, open_port(total=1), app) as entrance:
        found = await burst(entrance, 8)
        assert found[429] > 0
        told = await entrance.ask(headers={"content-type": "application/grpc"})
        while told is not None and "grpc-status" not in told.headers:
            told = await entrance.ask(headers={"content-type": "application/grpc"})
        assert told is not None
        assert (told.status, told.headers["grpc-status"]) == (200, "8")


# ----------------------------------------------------------------------------------- gRPC


class Anything(grpc.GenericRpcHandler):
    """Answers every call with what it was sent."""

    def service(self, _details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def echo(request: bytes, _context: object) -> bytes:
            return request

        return grpc.unary_unary_rpc_method_handler(echo)


@asynccontextmanager
async def calls() -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Anything(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def code(entrance: Door, path: str, **how: Any) -> grpc.StatusCode:  # noqa: ANN401
    async with entrance.relay(**how) as at, grpc.aio.insecure_channel(at) as channel:
        call: Any = channel.unary_unary(path)
        try:
            await call(b"x", timeout=20)
        except grpc.aio.AioRpcError as fault:
            return fault.code()
        return grpc.StatusCode.OK


async def test_calls_are_judged_by_method(tmp_path: Path) -> None:
    pay = {"matches": [{"method": {"service": "shop.Till", "method": "Pay"}}]}
    look = {"matches": [{"method": {"service": "shop.Till", "method": "Look"}}]}
    held = world(
        {**WEB, "protocol": "gRPC"},
        {"gr": "shop/pay", "for": "web", "rules": [pay]},
        {"gr": "shop/look", "for": "web", "rules": [look]},
        *only(PICKER, on=["GRPCRoute", "pay"]),
        {"az": "shop/all", "for": ["GRPCRoute", "look"]},
    )
    async with calls() as backend, door(tmp_path, held, backend) as entrance:
        ok, denied = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED
        assert await code(entrance, "/shop.Till/Pay", identity=PICKER) is ok
        assert await code(entrance, "/shop.Till/Pay", identity=SOWER) is denied
        assert await code(entrance, "/shop.Till/Pay") is denied
        assert await code(entrance, "/shop.Till/Look") is ok
        assert await code(entrance, "/shop.Till/Steal") is grpc.StatusCode.NOT_FOUND
        assert await code(entrance, "/shop.TillX/Pay") is grpc.StatusCode.NOT_FOUND
