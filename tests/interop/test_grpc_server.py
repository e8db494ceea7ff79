"""grpcio's own xDS server, told by the dialect: who may make which call, without a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import grpc

from isthmus.aio import SystemClock, deadline
from isthmus.board import Subscription
from isthmus.dialects.grpc import GrpcDialect, asker
from isthmus.dialects.grpc.servers import TEMPLATE
from isthmus.engine import Database
from isthmus.serve.xds import Node, Peer, Proxy, XdsServer
from tests.support.envoys import pod
from tests.support.log import ListLog
from tests.support.meshworld import World

CLOCK = SystemClock()
STRANGER = "127.0.42.7"
OPS = "127.0.99.1"
SERVE = """
import sys, grpc
from concurrent.futures import ThreadPoolExecutor
class Anything(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(ThreadPoolExecutor(4), handlers=[Anything()], xds=True)
plain = grpc.xds_server_credentials(grpc.insecure_server_credentials())
server.add_secure_port(sys.argv[1], plain)
server.start()
print("goes", flush=True)
sys.stdin.read()
"""


class Mesh:
    """What the server needs of a board."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def subscribe(self) -> Subscription:
        return Subscription(self.database, CLOCK)


@asynccontextmanager
async def told(folder: Path, world: World) -> AsyncIterator[Path]:
    """A control plane; yields its socket."""

    def admit(_peer: Peer, node: Node) -> Proxy:
        return Proxy(node.id, GrpcDialect(), world.db.read(asker, pod(node.id)))

    log = ListLog()
    server = XdsServer(Mesh(world.db), admit, clock=CLOCK, random=Random(1), log=log)
    server.bind_unix(folder / "ads.sock")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.run())
        yield folder / "ads.sock"
        running.cancel()
    assert not log.lines


@asynccontextmanager
async def serving(socket: Path, port: int) -> AsyncIterator[None]:
    """A server in a process of its own: gRPC reads its bootstrap once."""
    control = {"server_uri": f"unix:{socket}", "channel_creds": [{"type": "insecure"}]}
    bootstrap = {
        "xds_servers": [{**control, "server_features": ["xds_v3"]}],
        "node": {"id": "shop/me"},
        "server_listener_resource_name_template": f"{TEMPLATE}%s",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, f"127.0.0.1:{port}",
        env={**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with deadline(CLOCK, 40, "the server"):
            assert await process.stdout.readline() == b"goes\n"
        yield
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def from_address(source: str, port: int) -> AsyncIterator[grpc.aio.Channel]:
    """A channel whose connections come from an address of the loopback net."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(65536):
            writer.write(some)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, out = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
        except ConnectionRefusedError:  # it does not know yet what to serve
            writer.close()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, out))
            group.create_task(pump(inner, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, grpc.aio.insecure_channel(at) as channel:
        yield channel


async def code(source: str, port: int, method: str) -> grpc.StatusCode:
    async with from_address(source, port) as channel:
        call: Any = channel.unary_unary(method)
        try:
            await call(b"x", timeout=20, wait_for_ready=True)
        except grpc.aio.AioRpcError as fault:
            return fault.code()
        return grpc.StatusCode.OK


async def free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
    return port


def rule(method: str) -> dict[str, object]:
    return {"matches": [{"method": {"service": "shop.Till", "method": method}}]}


async def test_a_server_without_a_proxy_judges_calls_by_route(tmp_path: Path) -> None:
    port = await free_port()
    world = World(
        {"ns": "shop"},
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}},
        {"server": "shop/rpc", "pods": {"app": "me"}, "port": port, "protocol": "gRPC"},
        {"gr": "shop/pay", "for": "rpc", "rules": [rule("Pay")]},
        {"gr": "shop/look", "for": "rpc", "rules": [rule("Look")]},
        {"nets": "shop/ops", "networks": ["127.0.99.0/24"]},
        {"az": "shop/pay", "for": ["GRPCRoute", "pay"], "needs": ["NetworkAuthentication ops"]},
        {"az": "shop/look", "for": ["GRPCRoute", "look"]},
    )
    async with told(tmp_path, world) as socket, serving(socket, port):
        assert await code(OPS, port, "/shop.Till/Pay") is grpc.StatusCode.OK
        assert await code(STRANGER, port, "/shop.Till/Pay") is grpc.StatusCode.PERMISSION_DENIED
        assert await code(STRANGER, port, "/shop.Till/Look") is grpc.StatusCode.OK
        assert await code(OPS, port, "/shop.Till/Steal") is grpc.StatusCode.UNAVAILABLE
