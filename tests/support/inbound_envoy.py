"""A real Envoy before a small application, told what the sidecar of `shop/me` is told of inbound.

Chains, TLS, rules and routes are as they are. What no test can have without redirection comes
another way: the port that was dialled by a PROXY header, clients' addresses from the loopback net
(127.0.0.1 is the workload itself), and the application at a port of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from isthmus.aio import deadline
from isthmus.ir.names import Ref
from tests.support.anchors import Anchor
from tests.support.envoy_process import CLOCK, PAUSE, Envoy, prepare, read
from tests.support.envoys import Sidecar, pod, static
from tests.support.meshworld import World

SOON = 20.0
STRANGER = "127.0.42.7"
"""An address of a client that is nobody in particular."""
ENDING = "serviceaccount.identity.isthmus.trust.mesh.test"
SERVER = f"me.shop.{ENDING}"
HTTP = "isthmus/http"
TCP = "isthmus/tcp"

_KEPT = ("app", "app-http1", "refused")
_PROXY = "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"


class Answer(NamedTuple):
    """What came back; `body` is the application's echo of the request, empty if it saw none."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def seen(self) -> dict[str, Any]:
        """The request as the application saw it."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Door:
    """The inbound side of a sidecar."""

    def __init__(self, folder: Path, anchor: Anchor) -> None:
        self._folder = folder
        self._anchor = anchor
        self.port = 0
        self.envoy: Envoy

    async def connect(
        self,
        port: int = 8080,
        *,
        source: str = STRANGER,
        identity: str | None = None,
        alpn: str = HTTP,
        sni: str = SERVER,
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a port of the workload, by mesh TLS if there is an identity."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, local_addr=(source, 0)
        )
        writer.write(f"PROXY TCP4 {source} 10.1.0.9 9 {port}\r\n".encode())
        if identity is not None:
            context = self._anchor.context(self._folder, identity)
            if alpn:
                context.set_alpn_protocols([alpn])
            await writer.start_tls(context, server_hostname=sni)
        return reader, writer

    async def ask(
        self,
        target: str = "/",
        method: str = "GET",
        /,
        **said: Any,  # noqa: ANN401  # of several types
    ) -> Answer | None:
        """One request, its target sent as it is; None if the connection was closed.

        `host` and `headers` are the request's, the rest is `connect`'s.
        """
        host, headers = said.pop("host", "me.shop"), said.pop("headers", {})
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return await self.send("\r\n".join([*lines, "", ""]).encode(), **said)

    async def send(self, request: bytes, **said: Any) -> Answer | None:  # noqa: ANN401
        """These bytes, and the answer to them."""
        async with deadline(CLOCK, SOON, "an answer"):
            try:
                reader, writer = await self.connect(**said)
                writer.write(request)
                await writer.drain()
                told = await _response(reader)
            except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                return None
            writer.close()
        return _answer(told) if told else None

    async def exchange(self, said: bytes, **how: Any) -> bytes:  # noqa: ANN401
        """Raw bytes there and back; nothing if the connection was closed."""
        async with deadline(CLOCK, SOON, "an exchange"):
            try:
                reader, writer = await self.connect(**how)
                writer.write(said)
                await writer.drain()
                told = await reader.read(len(said))
            except (ConnectionError, ssl.SSLError):
                return b""
            writer.close()
        return told

    @asynccontextmanager
    async def relay(self, **how: Any) -> AsyncIterator[str]:  # noqa: ANN401
        """An address from which connections go on through `connect`, for other clients."""

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner, out = await self.connect(**how)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, out))
                group.create_task(_pump(inner, writer))

        server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        async with server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            server.close()

    async def stat(self, name: str) -> str:
        """The lines of a statistic of ours."""
        _, text = await self.envoy.ask("/stats/prometheus")
        return "\n".join(line for line in text.splitlines() if name in line and line[0] != "#")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def response(reader: asyncio.StreamReader) -> Answer | None:
    """One response; None if there is none."""
    told = await _response(reader)
    return _answer(told) if told else None


async def _response(reader: asyncio.StreamReader) -> bytes:
    """One response, of the length that it says itself."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            return head
        head += line
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)\r\n", head)
    return head + (await reader.readexactly(int(length[1])) if length else await reader.read(-1))


def _answer(told: bytes) -> Answer:
    head, _, body = told.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(re.split(rb"[0-9a-f]+\r\n", body)).replace(b"\r\n", b"")
    return Answer(int(first.split(" ")[1]), headers, body.decode())


@asynccontextmanager
async def application() -> AsyncIterator[int]:
    """Tells of each request what it was; yields its port."""

    async def answer(request: web.BaseRequest) -> web.Response:
        seen = {
            "path": request.raw_path,
            "host": request.headers.get("Host"),
            "headers": {name.lower(): value for name, value in request.headers.items()},
        }
        return web.json_response(seen)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def door(
    folder: Path, world: World, app: int, workload: Ref | None = None
) -> AsyncIterator[Door]:
    """The sidecar of a workload of a world, before the application at a port."""
    anchor = Anchor()
    anchor.write(folder, SERVER)
    config = configuration(Sidecar(world, workload or pod("shop/me")), app)
    command = prepare(folder, config)
    made = Door(folder, anchor)
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
        (listener,) = json.loads(text)["listener_statuses"]
        made.port = listener["local_address"]["socket_address"]["port_value"]
        yield made


def configuration(sidecar: Sidecar, app: int) -> dict[str, Any]:
    """What it is told of inbound, without a control plane."""
    config: dict[str, Any] = json.loads(static(sidecar.told()))
    own = config["static_resources"]
    (inbound,) = (one for one in own["listeners"] if one["name"] == "inbound")
    inbound["address"] = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
    inbound.pop("bind_to_port", None)
    filters = inbound["listener_filters"]
    (dialled,) = (one for one in filters if one["name"].endswith("original_dst"))
    filters[filters.index(dialled)] = {
        "name": "envoy.filters.listener.proxy_protocol",
        "typed_config": {"@type": _PROXY},
    }
    own["listeners"] = [inbound]
    own["clusters"] = [_at(one, app) for one in own["clusters"] if one["name"] in _KEPT]
    config["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}
    config.pop("stats_config", None)
    return config


def _at(cluster: dict[str, Any], app: int) -> dict[str, Any]:
    """The application's cluster, which leads to the port where it is here."""
    if cluster["name"] == "refused":
        return cluster
    address = {"socket_address": {"address": "127.0.0.1", "port_value": app}}
    endpoint = {"endpoint": {"address": address}}
    made = {name: value for name, value in cluster.items() if "original" not in name}
    made.pop("upstream_bind_config", None)
    return {
        **made,
        "type": "STATIC",
        "lb_policy": "ROUND_ROBIN",
        "load_assignment": {
            "cluster_name": cluster["name"],
            "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
