"""The HTTPS listener: connections, limits, who asks, may they, and the bytes back.

Everything a request means is decided elsewhere (`api.Dispatcher`); this is the thin shell around
it. aiohttp's low-level server is used, one handler for all paths. HTTP/1.1 only: the TLS context
must not offer `h2`, or clients would speak it. A client that leaves cancels its handler; one that
reads nothing is cut off; one that sends half a request, or half a handshake, is closed when its
time is over.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import zlib
from asyncio import sslproto
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from isthmus.aio import Clock, Log, deadline
from isthmus.aio.supervise import describe
from isthmus.errors import BadRequest, IsthmusError, TooLarge
from isthmus.serve.kube.answer import Answer, Response, Stream, of_document, warning_headers
from isthmus.serve.kube.api import Call, Dispatcher, Verdict
from isthmus.serve.kube.limits import DEFAULT_LIMITS, Limits, Shares
from isthmus.serve.kube.status import refusal

SHUTDOWN = 1.0
"""Seconds that requests get to end when the server stops; watches do not end by themselves."""

LEFT = 499
"""What is noted of a request whose client left before it was answered."""

RESTART = 1.0
"""Seconds before the store is watched again after it failed."""

TLS_BUFFER = 16 * 1024
"""Bytes that asyncio holds per TLS connection for reading. Its own 256 KiB is dear with many
watches, and one TLS record is at most this long."""


class KubeApi:
    """One listener of the Kubernetes API. `start`, then `run` until cancelled; `run` stops it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        clock: Clock,
        log: Log,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._log = log
        self._limits = limits
        self._shares = Shares(limits)
        self._certificates: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()
        self._runner: web.ServerRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept on a bound socket. Without a context: plain HTTP, where everybody is anonymous."""
        limits = self._limits
        handlers = _Server(
            self._handle,
            limits.connections,
            handler_cancellation=True,
            keepalive_timeout=limits.header_time,
            lingering_time=1.0,
            access_log=None,
            max_line_size=16 * 1024,
            max_field_size=16 * 1024,
            max_headers=100,
        )
        self._runner = web.ServerRunner(handlers, shutdown_timeout=SHUTDOWN)
        await self._runner.setup()
        if tls is not None:
            thin_tls()
        self._server = await asyncio.get_running_loop().create_server(
            handlers,
            sock=listening,
            ssl=tls,
            ssl_handshake_timeout=limits.handshake_time if tls is not None else None,
            ssl_shutdown_timeout=SHUTDOWN if tls is not None else None,
            backlog=1024,
        )

    async def run(self) -> None:
        """Serve until cancelled, then close every connection. Feeds the watches meanwhile."""
        try:
            while True:
                await self._feed()
        finally:
            await self.stop()

    async def _feed(self) -> None:
        try:
            await self._dispatcher.run()
        except IsthmusError as fault:
            self._log.warning("watches start anew", error=describe(fault))
            await self._clock.sleep(RESTART)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return self._shares.watches

    async def stop(self) -> None:
        """Close the listener and every connection; requests in flight get a second."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._runner is not None:
            runner, self._runner = self._runner, None
            self._dispatcher.stop()
            await runner.cleanup()

    # ------------------------------------------------------------------------------- one request

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = self._clock.now()
        call = Call(
            id=secrets.token_hex(8),
            method=request.method,
            path=request.raw_path,
            headers=_first_values(request),
            impersonation=_impersonation(request),
            certificate=self._certificate(request),
            address=request.remote or "",
            body=lambda: self._body(request),
        )
        verdict = Verdict(call)
        try:
            return await self._answered(request, call, verdict)
        finally:
            verdict.seconds = self._clock.now() - started
            self._dispatcher.observe(verdict)

    async def _answered(
        self, request: web.BaseRequest, call: Call, verdict: Verdict
    ) -> web.StreamResponse:
        sending = _Sending(request, call, verdict, self._clock, self._limits)
        try:
            await self._dispatcher.authenticate(call, verdict)
            with self._shares.hold(verdict.client, watching=call.watching):
                if call.watching:
                    return await sending.send(await self._respond(call, verdict))
                async with deadline(self._clock, self._limits.request_time, "the request"):
                    return await sending.send(await self._respond(call, verdict))
        except ConnectionError:  # the client left while it was written to
            verdict.code = verdict.code or LEFT
            sending.abort()
            return sending.response
        except asyncio.CancelledError:
            verdict.code = verdict.code or LEFT
            raise
        except Exception as error:  # noqa: BLE001  # the edge: every error becomes a Status
            return await self._refused(sending, call, verdict, error)

    async def _respond(self, call: Call, verdict: Verdict) -> Response:
        return await self._dispatcher.respond(call, verdict)

    async def _refused(
        self, sending: _Sending, call: Call, verdict: Verdict, error: Exception
    ) -> web.StreamResponse:
        if not isinstance(error, IsthmusError):
            self._log.warning("request failed", id=call.id, path=call.path, exc_info=error)
        verdict.error = error
        if sending.begun:  # the status line is gone: all that is left is to break off
            sending.abort()
            return sending.response
        told = refusal(error, call.id)
        retry = (("Retry-After", str(told.retry_after)),) if told.retry_after else ()
        answer = of_document(told.status, told.code)
        return await sending.send(answer._replace(headers=retry))

    def _certificate(self, request: web.BaseRequest) -> Mapping[str, Any] | None:
        """The client's certificate as TLS verified it; asked of each connection once."""
        channel = request.get_extra_info("ssl_object")
        if channel is None:
            return None
        held = self._certificates.get(channel)
        if held is None:
            held = self._certificates[channel] = channel.getpeercert() or {}
        return held

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The whole body, decompressed; TooLarge as soon as it is over the limit."""
        limit = self._limits.body
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.content.iter_any():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
        except (
            ClientPayloadError,
            HttpProcessingError,
            zlib.error,
            web.RequestPayloadError,
        ) as fault:
            raise BadRequest(
                "the body could not be read: it is cut off or badly encoded"
            ) from fault
        return b"".join(parts)


def _first_values(request: web.BaseRequest) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        found.setdefault(name.lower(), value)
    return found


def _impersonation(request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
    headers = request.headers.items()
    return tuple(pair for pair in headers if pair[0].lower().startswith("impersonate-"))


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {limit}")


class _Sending:
    """Puts one response on the wire, with a deadline on each wait for a slow reader."""

    def __init__(
        self,
        request: web.BaseRequest,
        call: Call,
        verdict: Verdict,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._request = request
        self._call = call
        self._verdict = verdict
        self._clock = clock
        self._limits = limits
        self.response: web.StreamResponse = web.Response(status=500)

    @property
    def begun(self) -> bool:
        """Whether the status line is on its way."""
        return self.response.prepared

    def abort(self) -> None:
        """Cut the connection, so that the client sees a broken response and not a short one."""
        transport = self._request.transport
        if transport is not None:
            transport.abort()

    async def send(self, response: Response) -> web.StreamResponse:
        """Write it to the last byte."""
        match response:
            case Answer():
                self._verdict.code = response.code
                self.response = self._whole(response)
                await self.response.prepare(self._request)
                await self.response.write_eof()
            case Stream():
                self._verdict.code = 200
                await self._stream(response)
        return self.response

    def _whole(self, answer: Answer) -> web.Response:
        response = web.Response(status=answer.code, body=answer.body)
        self._head(response, answer.content_type, answer.warnings)
        for name, value in answer.headers:
            response.headers[name] = value
        return response

    def _head(
        self, response: web.StreamResponse, content_type: str, warnings: tuple[str, ...]
    ) -> None:
        response.headers["Content-Type"] = content_type
        response.headers["Audit-Id"] = self._call.id
        response.headers["Cache-Control"] = "no-cache, private"
        for value in warning_headers(warnings):
            response.headers.add("Warning", value)

    async def _stream(self, stream: Stream) -> None:
        response = self.response = web.StreamResponse()
        self._head(response, stream.content_type, stream.warnings)
        response.enable_chunked_encoding()
        await response.prepare(self._request)
        if self._request.method == "HEAD":
            return
        await stream.run(self._write)
        await response.write_eof()

    async def _write(self, data: bytes) -> None:
        async with deadline(self._clock, self._limits.write_time, "a slow reader"):
            await self.response.write(data)


class _Server(web.Server):
    """aiohttp's protocol factory, with a limit on connections: those over it are closed unread."""

    def __init__(self, handler: Any, most: int, **settings: Any) -> None:  # noqa: ANN401 - aiohttp's types
        super().__init__(handler, **settings)
        self._most = most

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:  # noqa: ANN401
        super().connection_made(handler, transport)
        _notice_silence(transport)
        if len(self.connections) > self._most:
            transport.abort()


def _notice_silence(transport: asyncio.Transport) -> None:
    """Have the kernel find out within two minutes that a client's machine is gone."""
    channel: socket.socket | None = transport.get_extra_info("socket")
    if channel is None or channel.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for option, value in ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15),
                          (socket.TCP_KEEPCNT, 4), (socket.TCP_USER_TIMEOUT, 120_000)):  # fmt: skip
        channel.setsockopt(socket.IPPROTO_TCP, option, value)


def thin_tls() -> None:
    """Let asyncio hold less per TLS connection; a setting of the whole process."""
    sslproto.SSLProtocol.max_size = TLS_BUFFER
