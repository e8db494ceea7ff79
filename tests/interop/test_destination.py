"""The Destination service of a real server: streams that last, clients that do not behave."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from isthmus.proto.linkerd import destination_pb2 as pb
from tests.support.asking import SERVICE, Asker, Stream, asker, request
from tests.support.compact import Compact
from tests.support.meshapi import MeshApi
from tests.support.meshworld import fold
from tests.support.server import ServerProcess

MESH = "linkerd"
WEB = "web.shop.svc.cluster.local:80"
MEMORY = ("--store", "memory:")
NARROW = {"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 65_535}
"""A client that takes little before it reads."""


class Running(NamedTuple):
    server: ServerProcess
    api: MeshApi
    at: str


def run(home: Path, *flags: str) -> Iterator[Running]:
    with ServerProcess(home, *flags) as server:
        api = MeshApi(server, MESH)
        yield Running(server, api, server.endpoints["destination"])
        api.close()


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One server for all; asynchronous so that all tests share one loop."""
    for one in run(tmp_path_factory.mktemp("destination"), *MEMORY):
        yield one


@pytest.fixture
def one(running: Running) -> Iterator[Running]:
    yield running
    running.api.clear()


@pytest.fixture
async def client(one: Running) -> AsyncIterator[Asker]:
    async with asker(one.at) as made:
        yield made


def web(*ips: str, name: str = "web") -> list[Compact]:
    """A Service with these endpoints."""
    eps = [{"ip": ip} for ip in ips]
    service = {"svc": f"shop/{name}", "ports": [80]}
    return [service, {"slice": f"shop/{name}-1", "svc": name, "ports": [80], "eps": eps}]


def held(stream: Stream) -> set[str]:
    messages = [each.SerializeToString() for each in stream.told]
    return {ip for ip, _ in fold({}, messages)}


async def there(client: Asker, path: str, rpc: str = "Get") -> None:
    """The server has absorbed what this path is about."""
    while True:
        async with client.ask(rpc, path) as stream:
            await stream.answered()
            if stream.ended is not grpc.StatusCode.NOT_FOUND:
                return


# ----------------------------------------------------------------------------- misbehaviour


async def refused(client: Asker, rpc: str, body: bytes) -> tuple[str, str]:
    async with Stream(client.channel, rpc, body) as stream:
        await stream.end()
        assert stream.told == []
        assert stream.ended is not None
        return stream.ended.name, stream.text


@pytest.mark.parametrize("rpc", ["Get", "GetProfile"])
async def test_hostile_requests_get_a_status_and_disturb_nobody(
    rpc: str, one: Running, client: Asker
) -> None:
    one.api.apply(*web("10.1.0.1"))
    await there(client, WEB)
    async with client.get(WEB) as other:
        await other.answered()
        for body in (
            b"\xff",
            b"\x12\xff\xff\xff\xff\x0f",
            b"\x12\x02\xc3\x28",  # no UTF-8
            request("x" * (1 << 20)),
            request("[" * 1000),
            request(":" * 1000),
            request("a." * 100_000 + "svc.cluster.local:80"),
            request("\0\n\u2028:80"),
            request("web.shop.svc.cluster.local:" + "9" * 10_000),
        ):
            status, text = await refused(client, rpc, body)
            assert status == "INVALID_ARGUMENT", body[:40]
            assert 0 < len(text) <= 256
        assert (await refused(client, rpc, b"x" * (5 << 20)))[0] == "RESOURCE_EXHAUSTED"
        one.api.apply(*web("10.1.0.2"))
        await other.until(lambda it: held(it) == {"10.1.0.2"})


@pytest.mark.parametrize(
    "token",
    ["x" * (1 << 20), "{" * 100_000, '{"ns": ["shop"]}', '{"ns": "\\ud800"}', "ns:a:b", "\0"],
)
async def test_a_hostile_token_says_nothing(token: str, one: Running, client: Asker) -> None:
    one.api.apply(*web("10.1.0.1"))
    await there(client, WEB)
    async with client.get(WEB, token) as stream, client.profile(WEB, token) as profile:
        await stream.until(lambda it: held(it) == {"10.1.0.1"})
        await profile.answered()
        assert profile.told[0].fully_qualified_name == "web.shop.svc.cluster.local"


# ------------------------------------------------------------------------ a slow client


def resident(server: ServerProcess) -> int:
    """Bytes of memory that the server holds."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


async def test_a_client_that_never_reads_costs_nothing_and_finds_the_newest(one: Running) -> None:
    """400 changes of 60 addresses each: a queue of them would be 8 MiB."""
    ips = [f"10.1.1.{number}" for number in range(60)]
    one.api.apply(
        {"svc": "shop/web", "ports": [80]},
        *(
            {"pod": f"shop/web-{ip}", "ip": ip, "meshed": True, "labels": {"app": "web"}}
            for ip in ips
        ),
        {
            "slice": "shop/web-1",
            "svc": "web",
            "ports": [80],
            "eps": [{"ip": ip, "pod": f"web-{ip}"} for ip in ips],
        },
    )

    def flip(number: int) -> str:
        """Make the port opaque, or not; the hint that tells."""
        protocol = ("opaque", "HTTP/1")[number % 2]
        one.api.apply(
            {"server": "shop/web", "pods": {"app": "web"}, "port": 80, "protocol": protocol}
        )
        return ("opaque", "h2")[number % 2]

    async with asker(one.at, **NARROW) as narrow, asker(one.at) as wide:
        await there(wide, WEB)
        async with wide.get(WEB) as first:
            await first.until(lambda it: held(it) == set(ips))
        call: Any = narrow.channel.unary_stream(f"{SERVICE}/Get", None, pb.Update.FromString)
        slow = call(request(WEB))
        assert len((await slow.read()).add.addrs) == len(ips)
        async with wide.get(WEB) as quick:
            await quick.answered()
            settled = 0
            for number in range(1_001):
                hint = flip(number)
                await quick.until(partial(_says, hint))
                quick.told[:-1] = []
                if number == 600:  # every cache and the store's history are full
                    settled = resident(one.server)
            assert resident(one.server) - settled < 4 << 20
        one.api.apply(*web("10.1.9.9"))
        unread: list[bytes] = []
        while {ip for ip, _ in fold({}, unread)} != {"10.1.9.9"}:
            unread.append((await slow.read()).SerializeToString())
        assert len(unread) < 20
        slow.cancel()


def _says(hint: str, stream: Stream) -> bool:
    return _hints(stream.told[-1]) == {hint}


def _hints(update: pb.Update) -> set[str | None]:
    return {each.protocol_hint.WhichOneof("protocol") for each in update.add.addrs}


# -------------------------------------------------------------------- one first answer


async def test_profiles_that_appear_are_never_told_backwards(one: Running, client: Asker) -> None:
    """200 streams of clients in `pay`, opened before, between and after two ServiceProfiles."""
    names = [f"s{number}" for number in range(20)]
    one.api.apply(*({"svc": f"shop/{name}", "ports": [80]} for name in names))
    await there(client, f"{names[-1]}.shop.svc.cluster.local:80")
    streams: dict[str, list[Stream]] = {name: [] for name in names}

    def ask(name: str, times: int) -> None:
        path = f"{name}.shop.svc.cluster.local:80"
        streams[name] += [client.profile(path, {"ns": "pay"}) for _ in range(times)]

    for name in names:
        ask(name, 3)
        for namespace in ("shop", "pay"):
            spec = {"routes": [{"name": namespace, "condition": {"pathRegex": f"/{namespace}"}}]}
            one.api.apply({"sp": f"{namespace}/{name}.shop.svc.cluster.local", "spec": spec})
            ask(name, 3 if namespace == "shop" else 4)
            await asyncio.gather(*(each.answered() for each in streams[name]))
    order = ["", "shop", "pay"]
    for name in names:
        for stream in streams[name]:
            await stream.until(lambda it: _used(it.told[-1]) == "pay")
            told = [order.index(_used(each)) for each in stream.told]
            assert told == sorted(set(told)), f"{name}: {told}"
    await close(*(each for some in streams.values() for each in some))


async def close(*streams: Stream) -> None:
    await asyncio.gather(*(each.__aexit__(None, None, None) for each in streams))


def _used(profile: pb.DestinationProfile) -> str:
    return profile.profile_ref.resource.namespace


async def test_200_clients_at_once_are_told_the_same_once(one: Running, client: Asker) -> None:
    for namespace in ("shop", "pay"):
        one.api.apply({"sp": f"{namespace}/web.shop.svc.cluster.local", "spec": {"routes": []}})
    one.api.apply(*web("10.1.0.1"))
    await there(client, WEB)
    streams = [client.profile(WEB, {"ns": "pay"}) for _ in range(200)]
    await asyncio.gather(*(each.answered() for each in streams))
    one.api.touch("svc shop/web")
    one.api.apply({"svc": "shop/web", "ports": [80], "opaque": "80"})
    await asyncio.gather(*(each.until(lambda it: len(it.told) == 2) for each in streams))
    for stream in streams:
        assert [_used(each) for each in stream.told] == ["pay", "pay"]
        assert [each.opaque_protocol for each in stream.told] == [False, True]
    await close(*streams)


# -------------------------------------------------------------------------- beginnings, ends


async def test_health_is_that_of_the_service(client: Asker) -> None:
    health = health_pb2_grpc.HealthStub(client.channel)
    name = SERVICE.removeprefix("/")
    answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_metrics_count_streams_and_refusals(one: Running, client: Asker) -> None:
    one.api.apply(*web("10.1.0.1"))
    await there(client, WEB)
    async with client.get(WEB) as stream:
        await stream.answered()
        await refused(client, "Get", request("foo"))
        text = one.server.admin("/metrics")[1]
    assert 'isthmus_streams{listener="destination",method="Get"} 1.0' in text
    labels = 'listener="destination",method="Get",status="INVALID_ARGUMENT"'
    assert f"isthmus_streams_refused_total{{{labels}}}" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_server_that_stops_ends_streams_with_ok(number: int, tmp_path: Path) -> None:
    for one in run(tmp_path, *MEMORY):
        one.api.apply(*web("10.1.0.1"))
        async with asker(one.at) as client:
            await there(client, WEB)
            streams = [client.get(WEB) for _ in range(50)]
            streams += [client.profile(WEB) for _ in range(50)]
            for each in streams:
                await each.answered()
            assert held(streams[0]) == {"10.1.0.1"}
            one.server.process.send_signal(number)
            for each in streams:
                await each.end()
                assert each.ended is grpc.StatusCode.OK, each.text
            await close(*streams)
        assert one.server.process.wait(timeout=5) == 0


async def test_a_server_that_is_killed_is_asked_again_and_tells_everything(tmp_path: Path) -> None:
    """The store is a file: what was acknowledged is there, and nothing of before counts."""
    for one in run(tmp_path):
        one.api.apply(*web("10.1.0.1", "10.1.0.2"))
        async with asker(one.at) as client:
            await there(client, WEB)
            async with client.get(WEB) as stream:
                await stream.until(lambda it: held(it) == {"10.1.0.1", "10.1.0.2"})
                one.api.apply(*web("10.1.0.2", "10.1.0.3"))
                one.server.stop(signal.SIGKILL)
                await stream.end()
                assert stream.ended is grpc.StatusCode.UNAVAILABLE
    for again in run(tmp_path):
        async with asker(again.at) as client, client.get(WEB) as stream:
            await stream.answered()
            assert held(stream) == {"10.1.0.2", "10.1.0.3"}
            assert len(stream.told) == 1
