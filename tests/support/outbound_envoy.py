"""A real Envoy that is told what the sidecar of `shop/me` is told of what leaves the workload.

Listeners, chains and routes are as they are. What no test can have without redirection comes
another way: the address that was dialled by a PROXY header. Every cluster is one small application
that tells what it was asked; `passthrough` is the world outside.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import grpc

from isthmus.aio import deadline
from tests.support.anchors import Anchor
from tests.support.envoy_process import CLOCK, PAUSE, Envoy, prepare, read
from tests.support.envoys import Sidecar, pod, static
from tests.support.inbound_envoy import Answer, response
from tests.support.meshworld import World

SOON: Final = 20.0
IDENTITY: Final = "me.shop.serviceaccount.identity.isthmus.trust.mesh.test"

_FIXED: Final = ("app", "app-http1", "detect", "refused")
PROXY: Final = (
    "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"
)


class Dialled(NamedTuple):
    """Where the application believes that it connects to."""

    ip: str
    port: int


class Way:
    """The way out of a workload."""

    def __init__(self) -> None:
        self.port = 0
        self.envoy: Envoy

    async def connect(self, to: Dialled) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address, as the application makes it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        family, source = ("TCP6", "::1") if ":" in to.ip else ("TCP4", "127.0.0.1")
        writer.write(f"PROXY {family} {source} {to.ip} 9 {to.port}\r\n".encode())
        return reader, writer

    async def ask(
        self,
        to: Dialled,
        target: str = "/",
        method: str = "GET",
        *,
        host: str = "here.test",
        headers: Mapping[str, str] | None = None,
    ) -> Answer | None:
        """One request; None if the connection was closed without an answer."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return await self.send(to, "\r\n".join([*lines, "", ""]).encode())

    async def send(self, to: Dialled, request: bytes) -> Answer | None:
        """These bytes, and the answer to them."""
        async with deadline(CLOCK, SOON, "an answer"):
            reader, writer = await self.connect(to)
            try:
                writer.write(request)
                await writer.drain()
                told = await response(reader)
            except (ConnectionError, asyncio.IncompleteReadError):
                return None
            finally:
                writer.close()
        return told

    async def exchange(self, to: Dialled, said: bytes) -> bytes:
        """Raw bytes there, and what comes back; nothing if the connection was closed."""
        async with deadline(CLOCK, SOON, "an exchange"):
            reader, writer = await self.connect(to)
            try:
                writer.write(said)
                await writer.drain()
                return await reader.read(256)
            except ConnectionError:
                return b""
            finally:
                writer.close()

    @asynccontextmanager
    async def relay(self, to: Dialled) -> AsyncIterator[str]:
        """An address from which other clients' connections go on to there."""

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner, out = await self.connect(to)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, out))
                group.create_task(_pump(inner, writer))

        server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        async with server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            server.close()

    async def stats(self, name: str) -> list[str]:
        """The lines of a counter of ours."""
        _, text = await self.envoy.ask("/stats/prometheus")
        return [line for line in text.splitlines() if line.startswith(f"envoy_{name}{{")]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


# ----------------------------------------------------------------------------- applications


class Apps:
    """One application for each cluster, each at a port of its own.

    It tells requests and gRPC calls what they were and who was asked, and everybody else its name.
    """

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._grpc = 0
        self.ports: dict[str, int] = {}
        self.asked: list[str] = []
        """The names of those that were asked by HTTP, in order."""

    async def add(self, name: str) -> int:
        """Start the application of a cluster; the port where it is."""
        if name not in self.ports:
            if not self._grpc:
                self._grpc = await self._stack.enter_async_context(_calls())
            server = await asyncio.start_server(self._serving(name), "127.0.0.1", 0)
            await self._stack.enter_async_context(server)
            self._stack.callback(server.close)
            self.ports[name] = server.sockets[0].getsockname()[1]
        return self.ports[name]

    def _serving(
        self, name: str
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                first = await reader.read(65536)
                if first.startswith(b"PRI * HTTP/2.0"):
                    inner, out = await asyncio.open_connection("127.0.0.1", self._grpc)
                    out.write(first)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_pump(reader, out))
                        group.create_task(_pump(inner, writer))
                elif b" HTTP/1.1\r\n" in first:
                    await self._answer(name, first, reader, writer)
                elif first:
                    writer.write(name.encode())
                    await writer.drain()
            except ConnectionError:
                pass
            finally:
                writer.close()

        return serve

    async def _answer(
        self, name: str, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request a connection. `x-answer` of the request is the status."""
        self.asked.append(name)
        head = first
        while b"\r\n\r\n" not in head:
            head += await reader.read(65536)
        line, *rest = head.partition(b"\r\n\r\n")[0].decode().split("\r\n")
        headers: dict[str, str] = {}
        for each in rest:
            key, _, value = each.partition(": ")
            headers[key.lower()] = ",".join(filter(None, (headers.get(key.lower()), value)))
        seen = {"app": name, "path": line.split(" ")[1], "headers": headers}
        body = json.dumps(seen).encode()
        status = headers.get("x-answer", "200")
        told = f"HTTP/1.1 {status} Told\r\nx-old: 1\r\nconnection: close\r\n"
        writer.write(f"{told}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()


class _Everything(grpc.GenericRpcHandler):
    """Answers every call with its method's name."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(_request: bytes, _context: Any) -> bytes:  # noqa: ANN401
            return details.method.encode()

        return grpc.unary_unary_rpc_method_handler(call)


@asynccontextmanager
async def _calls() -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Everything(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


# ---------------------------------------------------------------------------------- Envoy


@asynccontextmanager
async def way(folder: Path, world: World) -> AsyncIterator[tuple[Way, Apps]]:
    """The sidecar of `shop/me`, and an application behind every cluster."""
    Anchor().write(folder, IDENTITY)
    async with AsyncExitStack() as stack:
        apps = Apps(stack)
        config = await _configuration(Sidecar(world, pod("shop/me")), apps)
        yield await stack.enter_async_context(running(folder, config)), apps


@asynccontextmanager
async def running(folder: Path, config: dict[str, Any]) -> AsyncIterator[Way]:
    """An Envoy with this bootstrap, once it has a listener for all that leaves."""
    config["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}
    config.pop("stats_config", None)
    command, made = prepare(folder, config), Way()
    async with AsyncExitStack() as stack:
        log = stack.enter_context((folder / "envoy.log").open("wb"))
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, cwd=folder)
        stack.push_async_callback(process.wait)
        stack.callback(lambda: process.kill() if process.returncode is None else None)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with deadline(CLOCK, SOON, "the start of Envoy"):
            while not (admin := read(folder / "admin")):
                assert process.returncode is None, read(folder / "envoy.log")
                await CLOCK.sleep(PAUSE)
        made.envoy = Envoy(admin, session)
        await made.envoy.until(made.envoy.live, SOON, "an Envoy that serves")
        _, text = await made.envoy.ask("/listeners?format=json")
        bound = json.loads(text)["listener_statuses"]
        (found,) = (one for one in bound if one["name"] == "outbound")
        made.port = found["local_address"]["socket_address"]["port_value"]
        yield made


async def _configuration(sidecar: Sidecar, apps: Apps) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(static(sidecar.told()))
    own = config["static_resources"]
    own["listeners"] = [one for one in own["listeners"] if one["name"] != "inbound"]
    own["listeners"] = [
        dialled_by_proxy(one) if one["name"] == "outbound" else one for one in own["listeners"]
    ]
    ports = {one["name"]: await apps.add(one["name"]) for one in own["clusters"]}
    own["clusters"] = [at_application(one, ports[one["name"]]) for one in own["clusters"]]
    return config


def dialled_by_proxy(listener: dict[str, Any]) -> dict[str, Any]:
    """The listener of all that leaves, at any port, told by a PROXY header what was dialled."""
    proxied = {"name": "envoy.filters.listener.proxy_protocol", "typed_config": {"@type": PROXY}}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
    return {**listener, "address": address, "listener_filters": [proxied]}


def at_application(cluster: dict[str, Any], port: int) -> dict[str, Any]:
    """A cluster whose one endpoint is its application, without TLS."""
    name = cluster["name"]
    if name in _FIXED or "cluster_type" in cluster:
        return cluster
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    dropped = (
        "original_dst_lb_config",
        "upstream_bind_config",
        "transport_socket_matches",
        "transport_socket",
        "eds_cluster_config",
    )
    made = {key: value for key, value in cluster.items() if key not in dropped}
    return {
        **made,
        "type": "STATIC",
        "lb_policy": "ROUND_ROBIN",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }
