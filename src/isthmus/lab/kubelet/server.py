"""Where a node is asked for logs and execs."""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import msgspec
from aiohttp import web

from isthmus.aio import Clock
from isthmus.ca import Leaf
from isthmus.errors import IsthmusError
from isthmus.lab.kubelet import channels
from isthmus.lab.kubelet.session import execute, execute_in_terminal
from isthmus.lab.pods import logs
from isthmus.lab.pods.container import Container
from isthmus.lab.pods.logs import Wanted
from isthmus.lab.pods.pod import Pod
from isthmus.lab.short import short
from isthmus.lab.topology import Run
from isthmus.model.times import parse_time

MASTERS = "system:masters"
"""Who may ask: the API server's client certificate is of this group."""

HEARTBEAT = 30.0

Find = Callable[[str, str], Pod | None]
"""Namespace and name to a pod."""


class Orders(Protocol):
    """Who starts and ends what hosts outside the clusters run."""

    def start(self, name: str, run: Run) -> None:
        """Have a host run something."""
        ...

    def stop(self, name: str) -> None:
        """End it."""
        ...


class Kubelet:
    """The handlers of one set of pods; `start` once for each listener, then `close`."""

    def __init__(
        self,
        find: Find,
        clock: Clock,
        status: Callable[[], object] = dict,
        orders: Orders | None = None,
    ) -> None:
        """`status`: what `/status` tells on the Unix socket; `orders`: who takes what it asks."""
        self._find = find
        self._orders = orders
        self._clock = clock
        self._status = status
        self._runners: list[web.AppRunner] = []

    async def serve_tls(self, listening: socket.socket, tls: ssl.SSLContext) -> None:
        """Answer on a node's address, to the cluster's API server alone."""
        await self._serve(listening, tls)

    async def serve_local(self, path: Path) -> None:
        """Answer on a Unix socket that this user alone reaches."""
        await self._serve(_unix(path), None)

    async def _serve(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        app = web.Application(middlewares=[_masters_only] if tls is not None else [])
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/containerLogs/{namespace}/{pod}/{container}", self._logs),
                web.get("/exec/{namespace}/{pod}/{container}", self._exec),
            ]
        )
        if tls is None:
            app.router.add_get("/status", self._tell)
            app.router.add_post("/run/{host}", self._run)
            app.router.add_delete("/run/{host}", self._end)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        self._runners.append(runner)
        await web.SockSite(runner, listening, ssl_context=tls).start()

    async def close(self) -> None:
        """Close every listener and connection."""
        for runner in self._runners:
            await runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _tell(self, _request: web.Request) -> web.Response:
        return web.Response(
            body=msgspec.json.encode(self._status()), content_type="application/json"
        )

    async def _run(self, request: web.Request) -> web.Response:
        try:
            run = msgspec.json.decode(await request.read(), type=Run)
        except msgspec.DecodeError as fault:
            raise web.HTTPBadRequest(text=f"what shall run is not understood: {fault}") from fault
        return self._ordered(lambda orders: orders.start(request.match_info["host"], run))

    async def _end(self, request: web.Request) -> web.Response:
        return self._ordered(lambda orders: orders.stop(request.match_info["host"]))

    def _ordered(self, order: Callable[[Orders], None]) -> web.Response:
        if self._orders is None:
            raise web.HTTPNotFound(text="there are no hosts")
        try:
            order(self._orders)
        except IsthmusError as fault:
            return web.Response(status=fault.http, text=fault.message)
        return web.Response()

    def _container(self, request: web.Request) -> Container:
        about = request.match_info
        pod = self._find(about["namespace"], about["pod"])
        name = about["container"].removeprefix("-")
        container = None if pod is None else pod.container(name)
        if container is None:
            told = f"container {name!r} of pod {about['pod']!r} was not started yet"
            raise web.HTTPNotFound(text=told)
        return container

    # -------------------------------------------------------------------------------------- logs

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        beside = self._sidecar_log(request)
        if beside is not None:
            body = logs.plain(beside, self._wanted(request))
            return web.Response(body=body, content_type="text/plain")
        held = self._container(request).logs
        old = request.query.get("previous") == "true"
        if len(held) < (2 if old else 1):
            which = "previous " if old else ""
            raise web.HTTPBadRequest(text=f"there is no {which}output of this container")
        wanted = self._wanted(request)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            async for chunk in logs.read(held[-2 if old else -1], wanted):
                await response.write(chunk)
            await response.write_eof()
        return response

    def _sidecar_log(self, request: web.Request) -> Path | None:
        about = request.match_info
        pod = self._find(about["namespace"], about["pod"])
        return None if pod is None else pod.sidecar_log(about["container"].removeprefix("-"))

    def _wanted(self, request: web.Request) -> Wanted:
        query = request.query
        since = parse_time(query.get("sinceTime", ""))
        seconds = _number(query.get("sinceSeconds"), "sinceSeconds")
        if seconds is not None:
            since = self._clock.utc() - timedelta(seconds=seconds)
        return Wanted(
            follow=query.get("follow") == "true",
            tail=_number(query.get("tailLines"), "tailLines"),
            since=since,
            timestamps=query.get("timestamps") == "true",
            limit=_number(query.get("limitBytes"), "limitBytes"),
        )

    # -------------------------------------------------------------------------------------- exec

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        container = self._container(request)
        command = request.query.getall("command", [])
        if not command:
            raise web.HTTPBadRequest(text="a command must be given")
        asked = {
            name for name in ("input", "output", "error", "tty") if request.query.get(name) == "1"
        }
        channel = web.WebSocketResponse(protocols=channels.PROTOCOLS, heartbeat=HEARTBEAT)
        if not channel.can_prepare(request):
            raise web.HTTPBadRequest(text="exec needs a WebSocket")
        await channel.prepare(request)
        if "tty" in asked:
            await execute_in_terminal(channel, container, command)
        else:
            await execute(
                channel, container, command,
                stdin="input" in asked, stdout="output" in asked, stderr="error" in asked,
            )  # fmt: skip
        await channel.close()
        return channel


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise web.HTTPBadRequest(text=f"{name} is not a number")
    return int(text)


@web.middleware
async def _masters_only(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    channel = request.get_extra_info("ssl_object")
    certificate = {} if channel is None else channel.getpeercert() or {}
    groups = [
        value
        for names in certificate.get("subject", ())
        for field, value in names
        if field == "organizationName"
    ]
    if MASTERS not in groups:
        raise web.HTTPForbidden(text="only the API server may ask")
    return await handler(request)


def server_context(leaf: Leaf, authority: bytes) -> ssl.SSLContext:
    """TLS that shows `leaf` and wants a certificate of `authority`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.decode())
    with tempfile.NamedTemporaryFile() as chain:  # OpenSSL reads keys from files alone
        chain.write(leaf.certificate + leaf.key)
        chain.flush()
        context.load_cert_chain(chain.name)
    return context


def _unix(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    path.unlink(missing_ok=True)
    with short(path) as name:
        listening.bind(name)
    path.chmod(0o600)
    return listening
