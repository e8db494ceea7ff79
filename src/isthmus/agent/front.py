"""Port 4191 of a workload: is its proxy ready, what does it count, whose certificate it shows."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from isthmus.errors import Unavailable

PORT: Final = 4191
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


class Front:
    """Serves on `listening`, which it owns. Everything here is public within the cluster."""

    def __init__(
        self,
        listening: socket.socket,
        ready: Callable[[], bool],
        metrics: Callable[[float | None], Awaitable[str]],
        chain: Callable[[], bytes],
    ) -> None:
        self._listening = listening
        self._ready = ready
        self._metrics = metrics
        self._chain = chain
        application = web.Application()
        application.router.add_get("/live", self._answer_live)
        application.router.add_get("/ready", self._answer_ready)
        application.router.add_get("/metrics", self._answer_metrics)
        application.router.add_get("/certificate", self._answer_certificate)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Listen."""
        await self._runner.setup()
        await web.SockSite(self._runner, self._listening).start()

    async def stop(self) -> None:
        """Listen no more."""
        await self._runner.cleanup()
        self._listening.close()

    async def _answer_live(self, _: web.Request) -> web.Response:
        return web.Response(text="live\n")

    async def _answer_ready(self, _: web.Request) -> web.Response:
        if self._ready():
            return web.Response(text="ready\n")
        return web.Response(text="not ready\n", status=503)

    async def _answer_metrics(self, request: web.Request) -> web.Response:
        """`?ago=SECONDS`: as they were then, in finer histograms; the first line tells the age."""
        said = request.query.get("ago")
        if said is not None and not (said.isdecimal() and len(said) < 7):
            return web.Response(text="ago is a number of seconds\n", status=400)
        try:
            text = await self._metrics(float(said) if said is not None else None)
        except Unavailable as fault:
            return web.Response(text=f"{fault.message}\n", status=503)
        answer = web.Response(body=text.encode(), headers={"Content-Type": PROMETHEUS})
        answer.enable_compression()
        return answer

    async def _answer_certificate(self, _: web.Request) -> web.Response:
        return web.json_response({"chain": self._chain().decode()})
