"""Connections: aiohttp's protocol with our limits, and refusals of what is not even HTTP.

Here is all that leans on aiohttp's and asyncio's insides.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import sslproto
from typing import Any

import msgspec
from aiohttp import web

from isthmus.errors import BadRequest
from isthmus.serve.kube.status import refusal

TLS_BUFFER = 16 * 1024
"""Bytes that asyncio holds per TLS connection for reading. Its own 256 KiB is dear with many
watches, and one TLS record is at most this long."""

SILENCE = 120
"""Seconds after which the kernel gives up on a client's machine that does not answer."""


class Connections(web.Server):
    """Makes a protocol per connection; those over the limit are closed unread."""

    def __init__(self, handler: Any, most: int, **settings: Any) -> None:  # noqa: ANN401 - aiohttp's types
        super().__init__(handler, handler_cancellation=True)
        self._most = most
        self._settings = settings

    def __call__(self) -> web.RequestHandler:
        """The protocol of one new connection."""
        return _Protocol(self, loop=asyncio.get_running_loop(), **self._settings)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Said by the protocol when its connection stands."""
        super().connection_made(handler, transport)
        _notice_silence(transport)
        if len(self.connections) > self._most:
            transport.abort()


class _Protocol(web.RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to bytes that are no HTTP request: a Status, and nothing in the log."""
        if status != 400:
            return super().handle_error(request, status, exc, message)
        shown = "".join(c if c.isprintable() else " " for c in (message or "")[:200]).strip()
        told = refusal(BadRequest(f"this is no HTTP request: {shown}"), "").status
        body = msgspec.json.encode(told)
        response = web.Response(status=400, body=body, content_type="application/json")
        response.headers["Server"] = "isthmus"
        response.force_close()
        return response


def _notice_silence(transport: asyncio.Transport) -> None:
    """Have the kernel find out in time that a client's machine is gone."""
    channel: socket.socket | None = transport.get_extra_info("socket")
    if channel is None or channel.family not in (socket.AF_INET, socket.AF_INET6):
        return
    settings = (
        (socket.TCP_KEEPIDLE, SILENCE // 2),
        (socket.TCP_KEEPINTVL, SILENCE // 8),
        (socket.TCP_KEEPCNT, 4),
        (socket.TCP_USER_TIMEOUT, SILENCE * 1000),
    )
    for option, value in settings:
        channel.setsockopt(socket.IPPROTO_TCP, option, value)


def thin_tls() -> None:
    """Let asyncio hold less per TLS connection; a setting of the whole process."""
    sslproto.SSLProtocol.max_size = TLS_BUFFER
