"""grpcio's own xDS client, told by the dialect: `xds:///` reaches a Service without a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from random import Random

import grpc

from isthmus.aio import SystemClock, deadline
from isthmus.board import Subscription
from isthmus.dialects.grpc import GrpcDialect, asker
from isthmus.engine import Database
from isthmus.serve.xds import Node, Peer, Proxy, XdsServer
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.log import ListLog
from tests.support.meshworld import World

CLOCK = SystemClock()
CALL = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
print(channel.unary_unary("/a.B/C")(b"hello", timeout=20).decode())
"""


class Echo(grpc.GenericRpcHandler):
    """Answers every call with what was sent, and its own word."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def answer(self, request: bytes, _context: object) -> bytes:
        return b"echo " + request


class Mesh:
    """What the server needs of a board."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def subscribe(self) -> Subscription:
        return Subscription(self.database, CLOCK)


async def call(socket: Path, target: str) -> str:
    """One call by a client of its own process: gRPC reads its bootstrap once."""
    server = {"server_uri": f"unix:{socket}", "channel_creds": [{"type": "insecure"}]}
    bootstrap = {
        "xds_servers": [{**server, "server_features": ["xds_v3"]}],
        "node": {"id": "shop/me"},
    }
    done = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CALL,
        target,
        env={**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with deadline(CLOCK, 40, "a call"):
        out, errors = await done.communicate()
    assert done.returncode == 0, errors.decode()
    return out.decode().strip()


async def asked(folder: Path, *objects: Compact, cluster: str = "") -> str:
    """What a client hears from `echo.shop`, whose endpoint in a cluster is a server of ours."""
    backend = grpc.aio.server()
    backend.add_generic_rpc_handlers((Echo(),))
    port = backend.add_insecure_port("127.0.0.1:0")
    await backend.start()
    part: Compact = {"slice": "shop/e", "svc": "echo", "eps": [{"ip": "127.0.0.1"}]}
    world = World(
        {"ns": "shop"},
        {"pod": "shop/me", "ip": "10.1.0.9"},
        {"svc": "shop/echo", "ip": "10.96.0.10", "ports": [{"port": 80, "app": "grpc"}]},
        {**part, "ports": [port], **({"in": cluster} if cluster else {})},
        *objects,
    )

    def admit(_peer: Peer, node: Node) -> Proxy:
        return Proxy(node.id, GrpcDialect(), world.db.read(asker, pod(node.id)))

    log = ListLog()
    server = XdsServer(Mesh(world.db), admit, clock=CLOCK, random=Random(1), log=log)
    server.bind_unix(folder / "ads.sock")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.run())
        said = await call(folder / "ads.sock", "xds:///echo.shop:80")
        running.cancel()
    await backend.stop(None)
    assert not log.lines
    return said


async def test_a_client_without_a_proxy_reaches_a_service(tmp_path: Path) -> None:
    assert await asked(tmp_path) == "echo hello"


async def test_a_client_without_a_proxy_falls_back_to_another_cluster(tmp_path: Path) -> None:
    """Of a federated Service the first member has nobody, so the second one answers."""
    notes = {
        "multicluster.linkerd.io/local-discovery": "echo-here",
        "multicluster.linkerd.io/remote-discovery": "echo@east",
        "multicluster.isthmus.dev/member.east": "priority=1",
    }
    ports = [{"port": 80, "app": "grpc"}]
    said = await asked(
        tmp_path,
        {"link": "east", "trust": "east.test", "domain": "x"},
        {"svc": "shop/echo", "ip": "10.96.0.10", "ports": ports, "annotations": notes},
        {"svc": "shop/echo-here", "ports": [80]},
        {"svc": "shop/echo", "in": "east", "ports": [80]},
        cluster="east",
    )
    assert said == "echo hello"
