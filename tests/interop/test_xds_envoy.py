"""Real peers: Envoy by both protocols, and grpcio's xDS client, told by a dialect made by hand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest
from aiohttp import web
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2,
)
from google.protobuf.json_format import ParseDict
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from isthmus.aio import SystemClock, breathe, deadline
from isthmus.serve.xds import XdsServer
from isthmus.serve.xds.machine.frames import framed
from isthmus.serve.xds.machine.types import CLUSTER as CDS
from isthmus.serve.xds.machine.types import ENDPOINTS as EDS
from isthmus.serve.xds.machine.types import LISTENER as LDS
from isthmus.serve.xds.machine.types import ROUTES as RDS
from isthmus.serve.xds.machine.values import Framed
from tests.support.envoy_process import CLOCK, PAUSE, Envoy, envoy
from tests.support.log import ListLog
from tests.support.xds import Mesh, admit

KINDS = {
    CDS: cluster_pb2.Cluster,
    EDS: endpoint_pb2.ClusterLoadAssignment,
    LDS: listener_pb2.Listener,
    RDS: route_pb2.RouteConfiguration,
}
ADS = {"ads": {}, "resource_api_version": "V3"}
SOON = 10.0
"""Less than the 15 s after which Envoy goes on without an answer that it needs."""
PREFIX = "type.googleapis.com/"
HCM = PREFIX + http_connection_manager_pb2.HttpConnectionManager.DESCRIPTOR.full_name
ROUTER = {"@type": PREFIX + router_pb2.Router.DESCRIPTOR.full_name}


@pytest.fixture(scope="module", autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """One loop for all tests: gRPC tells some of its ends late, and to the loop they began on."""
    yield
    for _ in range(100):
        await breathe()


def made(
    type_url: str, name: str, content: dict[str, Any], clusters: tuple[str, ...] = ()
) -> tuple[str, Framed]:
    """A resource from its JSON form."""
    message = ParseDict(content, KINDS[type_url]()).SerializeToString(deterministic=True)
    version = hashlib.sha256(message).hexdigest()[:16]
    return type_url, framed(name, version, type_url, message, clusters=clusters, origin=name)


def cluster(name: str, timeout: str = "1s") -> tuple[str, Framed]:
    content = {
        "name": name,
        "type": "EDS",
        "connect_timeout": timeout,
        "eds_cluster_config": {"eds_config": ADS},
    }
    return made(CDS, name, content)


def endpoints(name: str, port: int) -> tuple[str, Framed]:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    group = {
        "locality": {"zone": "z"},
        "load_balancing_weight": 1,
        "lb_endpoints": [{"endpoint": {"address": address}}],
    }
    return made(EDS, name, {"cluster_name": name, "endpoints": [group]})


def manager(name: str) -> dict[str, Any]:
    filters = [{"name": "router", "typed_config": ROUTER}]
    rds = {"config_source": ADS, "route_config_name": name}
    return {"@type": HCM, "stat_prefix": name, "rds": rds, "http_filters": filters}


def listener(name: str, port: int) -> tuple[str, Framed]:
    chain = {"filters": [{"name": "hcm", "typed_config": manager(name)}]}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return made(LDS, name, {"name": name, "address": address, "filter_chains": [chain]})


def routes(name: str, to: str) -> tuple[str, Framed]:
    route = {"match": {"prefix": "/"}, "route": {"cluster": to}}
    host = {"name": "all", "domains": ["*"], "routes": [route]}
    return made(RDS, name, {"name": name, "virtual_hosts": [host]}, clusters=(to,))


class Control:
    """A control plane whose server may be stopped and started again at the same socket."""

    def __init__(self, folder: Path) -> None:
        self.mesh, self.log, self.socket = Mesh(), ListLog(), folder / "ads.sock"
        for type_url in KINDS:
            self.mesh.names[type_url] = set()
        self.mesh.change()

    async def start(self) -> None:
        clock = SystemClock()
        self.server = XdsServer(self.mesh, admit, clock=clock, random=Random(1), log=self.log)
        self.server.bind_unix(self.socket)
        self._task = asyncio.get_running_loop().create_task(self.server.run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def accepted(self, *names: tuple[str, str]) -> None:
        """Wait until every proxy has the newest of these, and all else that it was told."""
        async with deadline(CLOCK, SOON, f"acceptance of {names}"):
            while any(self.server.streams.behind(*name) for name in names) or self.busy():
                await CLOCK.sleep(PAUSE)

    def busy(self) -> bool:
        types = [one for report in self.server.streams.report().proxies for one in report.types]
        return not types or any(one.waiting or one.unanswered_since for one in types)


@asynccontextmanager
async def control(folder: Path) -> AsyncIterator[Control]:
    one = Control(folder)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


@asynccontextmanager
async def backend(text: str) -> AsyncIterator[int]:
    """A server on HTTP that always says `text`; yields its port."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=text)

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
    return port


async def load(proxy: Envoy, port: int, seen: Counter[str], over: asyncio.Event) -> None:
    """One client that asks again and again, and counts answers."""
    while not over.is_set():
        async with proxy.session.get(f"http://127.0.0.1:{port}/") as answer:
            seen[await answer.text() if answer.status == 200 else str(answer.status)] += 1


Apis = pytest.mark.parametrize("api", ["DELTA_GRPC", "GRPC"])


@Apis
async def test_an_envoy_that_is_told_nothing_is_live_at_once(tmp_path: Path, api: str) -> None:
    async with control(tmp_path), envoy(tmp_path, tmp_path / "ads.sock", api=api) as proxy:
        await proxy.until(proxy.live, SOON, "an Envoy with nothing to do")


@Apis
async def test_thirty_swaps_under_load_fail_no_request(tmp_path: Path, api: str) -> None:
    async with (
        backend("ok") as to,
        control(tmp_path) as here,
        envoy(tmp_path, here.socket, api=api) as proxy,
    ):
        port = await free_port()
        here.mesh.change(
            (cluster("c0"), endpoints("c0", to), listener("in", port), routes("in", "c0"))
        )
        await proxy.until(proxy.live, SOON, "the first configuration")
        await here.accepted((LDS, "in"), (RDS, "in"))
        seen, over = Counter[str](), asyncio.Event()
        async with asyncio.TaskGroup() as clients:
            for _ in range(4):
                clients.create_task(load(proxy, port, seen, over))
            for number in range(1, 31):
                old, new = f"c{number - 1}", f"c{number}"
                here.mesh.change(
                    (cluster(new), endpoints(new, to), routes("in", new)), ((CDS, old), (EDS, old))
                )
                await here.accepted((RDS, "in"), (CDS, new))
            over.set()
        assert set(seen) == {"ok"}
        assert seen["ok"] > 30
        assert await proxy.clusters() == {"c30"}
        assert not here.log.lines


@Apis
async def test_a_changed_cluster_is_in_use_at_once(tmp_path: Path, api: str) -> None:
    # go-control-plane 1035: 15 s if its endpoints do not follow.
    async with control(tmp_path) as here, envoy(tmp_path, here.socket, api=api) as proxy:
        here.mesh.change((cluster("teapot"), endpoints("teapot", 9)))
        await here.accepted((CDS, "teapot"))
        here.mesh.change((cluster("teapot", "2s"),))
        await here.accepted((CDS, "teapot"))
        _, dump = await proxy.ask("/config_dump?resource=dynamic_active_clusters")
        assert json.loads(dump)["configs"][0]["cluster"]["connect_timeout"] == "2s"


@Apis
async def test_the_guilty_of_a_rejection_without_names_is_found(tmp_path: Path, api: str) -> None:
    async with control(tmp_path) as here, envoy(tmp_path, here.socket, api=api) as proxy:
        names = [f"good-{number}" for number in range(7)]
        good = [each(name) for name in names for each in (cluster, lambda n: endpoints(n, 9))]
        # A timeout of nothing breaks the rules of the message: all of it is rejected.
        here.mesh.change((*good, cluster("evil", "0s"), endpoints("evil", 9)))
        await proxy.until(lambda: _is(here.server.streams.nacked.value), SOON, "a rejection")
        await here.accepted(*((CDS, name) for name in names))
        assert await proxy.clusters() == set(names)
        [nacked] = here.server.streams.nacked.value
        assert (nacked.name, nacked.origin) == ("evil", "evil")
        assert "ConnectTimeout" in nacked.message
        here.mesh.change((cluster("evil", "3s"),))
        await here.accepted((CDS, "evil"))
        assert await proxy.clusters() == {*names, "evil"}
        assert here.server.streams.nacked.value == ()


async def test_a_restart_of_the_control_plane_sends_nothing_again(tmp_path: Path) -> None:
    async with (
        backend("ok") as to,
        control(tmp_path) as here,
        envoy(tmp_path, here.socket) as proxy,
    ):
        port = await free_port()
        first = (cluster("a"), endpoints("a", to), listener("in", port), routes("in", "a"))
        here.mesh.change(first)
        await proxy.until(proxy.live, SOON, "the first configuration")
        await here.accepted((RDS, "in"))
        seen, over = Counter[str](), asyncio.Event()
        async with asyncio.TaskGroup() as clients:
            clients.create_task(load(proxy, port, seen, over))
            await here.stop()
            await here.start()
            await proxy.until(
                lambda: _is(_types(here) >= {"Cluster", "RouteConfiguration"}), SOON, "it"
            )
            assert not here.server.streams.messages
            # And what changes from then on is told alone.
            here.mesh.change((cluster("b"), endpoints("b", to), routes("in", "b")))
            await here.accepted((RDS, "in"), (CDS, "b"))
            over.set()
        assert here.server.streams.messages == {CDS: 1, EDS: 1, RDS: 1}
        assert set(seen) == {"ok"}


def _types(here: Control) -> set[str]:
    return {one.type for report in here.server.streams.report().proxies for one in report.types}


async def _is(what: object) -> bool:
    return bool(what)


# ---------------------------------------------------------------- proxyless gRPC

CLIENT = """
import sys, grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
with grpc.insecure_channel("xds:///echo.test:80") as channel:
    stub = health_pb2_grpc.HealthStub(channel)
    for line in sys.stdin:
        request = health_pb2.HealthCheckRequest(service=line.strip())
        try:
            print(stub.Check(request, wait_for_ready=True, timeout=10).status, flush=True)
        except grpc.RpcError as fault:
            print(fault.code(), fault.details(), flush=True)
"""


@asynccontextmanager
async def grpc_backend(name: str) -> AsyncIterator[int]:
    """A health service that knows `name`; yields its port."""
    server, servicer = grpc.aio.server(), health.aio.HealthServicer()
    await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@asynccontextmanager
async def proxyless(socket: Path) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """A grpcio client; yields how to ask it for the health of a name."""
    bootstrap = {
        "xds_servers": [
            {
                "server_uri": f"unix:{socket}",
                "channel_creds": [{"type": "insecure"}],
                "server_features": ["xds_v3"],
            }
        ],
        "node": {"id": "client"},
    }
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, stdin=pipe, stdout=pipe, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    reader, writer = process.stdout, process.stdin

    async def ask(name: str) -> str:
        writer.write(f"{name}\n".encode())
        async with deadline(CLOCK, 20, "an answer of the client"):
            return (await reader.readline()).decode().strip()

    try:
        yield ask
    finally:
        process.kill()
        await process.wait()


async def test_a_proxyless_client_is_told_and_follows(tmp_path: Path) -> None:
    async with (
        grpc_backend("one") as one,
        grpc_backend("two") as two,
        control(tmp_path) as here,
        proxyless(here.socket) as ask,
    ):
        name = "echo.test:80"
        api = made(LDS, name, {"name": name, "api_listener": {"api_listener": manager(name)}})
        here.mesh.change((api, routes(name, "c1"), cluster("c1"), endpoints("c1", one)))
        here.mesh.change((cluster("stranger"), endpoints("stranger", 9)))
        assert await ask("one") == "1"
        assert (await ask("two")).startswith("StatusCode.NOT_FOUND")
        [report] = here.server.streams.report().proxies
        assert (report.protocol, report.agent.partition(" ")[0]) == ("Sotw", "gRPC")
        assert {each.type: each.sent for each in report.types} == dict.fromkeys(
            ("Listener", "RouteConfiguration", "Cluster", "ClusterLoadAssignment"), 1
        )
        here.mesh.change(
            (routes(name, "c2"), cluster("c2"), endpoints("c2", two)), ((CDS, "c1"), (EDS, "c1"))
        )
        await here.accepted((RDS, name))
        assert await ask("two") == "1"
        here.mesh.change((endpoints("c2", one),))
        await here.accepted((EDS, "c2"))
        assert await ask("one") == "1"
        # A resource that it rejects leaves it with the one before.
        content = {"name": "c2", "type": "EDS", "lb_policy": "MAGLEV"}
        bad = {**content, "eds_cluster_config": {"eds_config": ADS}}
        here.mesh.change((made(CDS, "c2", bad),))
        async with deadline(CLOCK, SOON, "a rejection"):
            while not here.server.streams.nacked.value:
                await CLOCK.sleep(PAUSE)
        assert "LB policy" in here.server.streams.nacked.value[0].message
        assert await ask("one") == "1"
