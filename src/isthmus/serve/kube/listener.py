"""Connections: aiohttp's protocol behind a gate, and refusals of what is not even HTTP.

Here is all that leans on aiohttp's and asyncio's insides.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio import sslproto
from typing import Any

import msgspec
from aiohttp import web

from isthmus.aio import Gate, Visit
from isthmus.errors import BadRequest
from isthmus.serve.kube.limits import Limits
from isthmus.serve.kube.status import refusal

TLS_BUFFER = 16 * 1024
"""Bytes that asyncio holds per TLS connection for reading. Its own 256 KiB is dear with many
watches, and one TLS record is at most this long."""

SILENCE = 120
"""Seconds after which the kernel gives up on a client's machine that does not answer."""

SHUTDOWN = 1
"""Seconds that TLS gets to say goodbye."""


class Connections(web.Server):
    """Makes the HTTP protocol of each connection that was let in."""

    def __init__(self, handler: Any, **settings: Any) -> None:  # noqa: ANN401 - aiohttp's types
        super().__init__(handler, handler_cancellation=True)
        self._settings = settings

    def __call__(self) -> HttpConnection:
        """The protocol of one new connection."""
        return HttpConnection(self, loop=asyncio.get_running_loop(), **self._settings)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Said by the protocol when its connection stands, with TLS after the handshake."""
        super().connection_made(handler, transport)
        _notice_silence(transport)


class HttpConnection(web.RequestHandler):
    """One connection."""

    __slots__ = ("visit",)

    visit: Visit
    """Its stay; set before anything is read."""

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.visit.leave()

    def log_exception(self, *words: Any, **more: Any) -> None:  # noqa: ANN401 - aiohttp's types
        """A body that nobody can decode is the client's fault, wanted or not: no line of it."""
        error = more.get("exc_info")
        if isinstance(error, web.RequestPayloadError):
            error.__traceback__ = None  # its frames hold the stream, and the stream holds it
        else:
            super().log_exception(*words, **more)

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


class Door(asyncio.Protocol):
    """The first protocol of an accepted connection: asks the gate, then makes way for the next.

    asyncio's own TLS server tells of a connection when its handshake is over, which a client may
    draw out and have any number of.
    """

    def __init__(
        self, gate: Gate, make: Connections, tls: ssl.SSLContext | None, limits: Limits
    ) -> None:
        self._gate = gate
        self._make = make
        self._tls = tls
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, or close it unread."""
        peer = transport.get_extra_info("peername")
        visit = self._gate.enter(str(peer[0]) if peer else "")
        if visit is None:
            transport.abort()
            return
        http = self._make()
        http.visit = visit
        if self._tls is None:
            transport.set_protocol(http)
            http.connection_made(transport)
        else:
            secure = _Tls(http, self._tls, self._limits)
            transport.set_protocol(secure)
            secure.connection_made(transport)


class _Tls(sslproto.SSLProtocol):
    """TLS whose end, in the handshake or after it, ends the visit."""

    def __init__(self, http: HttpConnection, tls: ssl.SSLContext, limits: Limits) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            http,
            tls,
            None,  # type: ignore[arg-type]  # nobody waits for the handshake
            server_side=True,
            ssl_handshake_timeout=limits.handshake_time,  # type: ignore[arg-type]  # floats do
            ssl_shutdown_timeout=SHUTDOWN,
        )
        self._visit = http.visit

    def _fatal_error(self, exc: BaseException, message: str = "TLS failed") -> None:
        """Tell the client why its certificate is not taken: asyncio would drop the alert."""
        if isinstance(exc, ssl.SSLError):
            self._process_outgoing()  # type: ignore[attr-defined]  # not in the stubs
        super()._fatal_error(exc, message)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._visit.leave()


def greet(request: web.BaseRequest) -> None:
    """The sender of this request has proved who they are: the connection is no stranger's."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.visit.greet()


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
