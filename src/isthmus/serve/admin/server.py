"""The admin surface on aiohttp."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from inspect import isawaitable
from typing import Final

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from isthmus.serve.admin.files import GUARDS, dashboard

LARGEST: Final = 16 * 1024
"""Bytes of a request's body: none of ours has one."""
GOODBYE: Final = 0.5
"""Seconds that open requests get when the server stops."""
PATIENCE: Final = 20.0
"""Seconds within which a connection must send a whole request; and in which it may stay idle."""
MOST: Final = 256
"""Open connections. Whoever collects figures and probes health needs a handful."""

Page = Callable[[Mapping[str, str]], object]
"""A value for the query of a request, or an awaitable of one; asked for at each, told as JSON."""

NO_PAGES: Final[Mapping[str, Page]] = {}

Next = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Admin:
    """Serves on one listening socket.

    `reasons` says what stands in the way of readiness, by part; nothing means ready. Its texts are
    told to anybody who can reach the port. `names` are host names under which people come.
    `pages` are by their path.
    """

    def __init__(
        self,
        listening: socket.socket,
        reasons: Callable[[], Mapping[str, str]],
        metrics: CollectorRegistry,
        *,
        names: Collection[str] = (),
        pages: Mapping[str, Page] = NO_PAGES,
        patience: float = PATIENCE,
        most: int = MOST,
    ) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._listening = listening
        self._reasons = reasons
        self._pages = pages
        self._files = dashboard()
        self._metrics = metrics
        self._patience = patience
        self._most = most

    async def run(self) -> None:
        """Serve until cancelled."""
        runner = web.AppRunner(
            self.application(),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=GOODBYE,
            keepalive_timeout=self._patience,
        )
        await runner.setup()
        try:
            async with await self._listen(runner):
                await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        def accept() -> asyncio.Protocol:
            made = runner.server
            if made is None or len(made.connections) >= self._most:
                return _Full()
            return made()

        return await loop.create_server(accept, sock=self._listening)

    def application(self) -> web.Application:
        """The routes, behind the guard."""
        application = web.Application(middlewares=[self._guard], client_max_size=LARGEST)
        for path, handler in (
            ("/live", self._live),
            ("/ready", self._ready),
            ("/metrics", self._tell),
        ):
            application.router.add_get(path, handler)
        for path in self._pages:
            application.router.add_get(path, self._page)
        for path in self._files:
            application.router.add_get(path, self._file)
        return application

    async def _live(self, _request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def _ready(self, _request: web.Request) -> web.Response:
        reasons = dict(self._reasons())
        body = {"ready": not reasons, "reasons": reasons}
        return web.json_response(body, status=503 if reasons else 200)

    async def _page(self, request: web.Request) -> web.Response:
        value = self._pages[request.path](request.query)
        if isawaitable(value):
            value = await value
        return web.Response(body=msgspec.json.encode(value), content_type="application/json")

    async def _file(self, request: web.Request) -> web.Response:
        found = self._files[request.path]
        return web.Response(
            body=found.body, content_type=found.content_type, charset="utf-8", headers=GUARDS
        )

    async def _tell(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._metrics), headers={"Content-Type": content_type})

    @web.middleware
    async def _guard(self, request: web.Request, handler: Next) -> web.StreamResponse:
        """Refuse names that are not ours; add what keeps browsers from guessing and storing.

        A page of some other site can make a browser talk to loopback, under a name that its owner
        points there (DNS rebinding). Then the Host header bears that name.
        """
        if not self._serves(request.host):
            answer: web.StreamResponse = _error(403, "this name is not served here")
        else:
            try:
                answer = await handler(request)
            except web.HTTPException as fault:
                answer = _error(fault.status, fault.reason)
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        return answer

    def _serves(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or is_here(name)


class _Full(asyncio.Protocol):
    """A connection for which there is no room: closed unread."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.abort()


def host_name(host: str) -> str:
    """The name in a Host header, without port, brackets and final dot."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal() or (":" in name and not name.startswith("[")):
        name = host
    return name.removeprefix("[").removesuffix("]").removesuffix(".").lower()


def is_here(name: str) -> bool:
    """Whether the name is an address (which nobody can rebind) or means this machine to all."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _error(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status)
