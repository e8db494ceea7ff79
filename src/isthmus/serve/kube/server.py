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
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import ClientPayloadError, HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from isthmus.aio import Clock, Gate, Log, deadline
from isthmus.aio.supervise import describe
from isthmus.errors import BadRequest, IsthmusError, TooLarge
from isthmus.serve.kube.answer import Response, of_document
from isthmus.serve.kube.api import Call, Dispatcher, Verdict
from isthmus.serve.kube.limits import AT_ONCE, DEFAULT_LIMITS, LARGE, Claim, Limits, Share, Shares
from isthmus.serve.kube.listener import Connections, Door, greet, thin_tls
from isthmus.serve.kube.sending import Sending
from isthmus.serve.kube.status import refusal

SHUTDOWN = 1.0
"""Seconds that requests get to end when the server stops; watches do not end by themselves."""

LINGER = 10.0
"""Seconds that the rest of an unwanted body is read and dropped, so that its sender, who is still
sending, reads the refusal and not a reset."""

WAITING = 1024
"""Connections that the kernel keeps until they are accepted."""

LEFT = 499
"""What is noted of a request whose client left before it was answered."""

RESTART = 1.0
"""Seconds before the store is watched again after it failed."""


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
        self._gate = Gate(limits.connections, limits.connections_each, limits.strangers)
        self._certificates: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()
        self._runner: web.ServerRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept on a bound socket. Without a context: plain HTTP, where everybody is anonymous."""
        limits = self._limits
        handlers = Connections(
            self._handle,
            keepalive_timeout=limits.header_time,
            lingering_time=LINGER,
            access_log=None,
            max_line_size=16 * 1024,
            max_field_size=10 * 1024,  # a token is at most 8 KiB
            max_headers=100,
        )
        self._runner = web.ServerRunner(handlers, shutdown_timeout=SHUTDOWN)
        await self._runner.setup()
        if tls is not None:
            thin_tls()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Door(self._gate, handlers, tls, limits), sock=listening, backlog=AT_ONCE
        )
        # The loop accepts as many in one turn as it was told to let wait, before the gate counts
        # them, and logs each that it finds no file for: few at a time, and more may wait.
        listening.listen(WAITING)

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

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._gate.inside

    @property
    def turned_away(self) -> int:
        """How many connections were closed unread, for want of room."""
        return self._gate.refused

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
        claim = Claim(self._shares)
        call = Call(
            id=secrets.token_hex(8),
            method=request.method,
            path=request.raw_path,
            headers=_first_values(request),
            impersonation=_impersonation(request),
            certificate=self._certificate(request),
            address=request.remote or "",
            body=lambda: self._body(request, claim.large),
            greet=lambda: greet(request),
        )
        verdict = Verdict(call)
        sending = Sending(
            request, call, verdict, self._clock, self._limits,
            lambda: self._dispatcher.authenticate(call, Verdict(call)),
        )  # fmt: skip
        try:
            return await self._answered(sending, call, verdict, claim)
        except ConnectionError:  # the client left while it was written to
            sending.abort()
            return sending.response
        finally:
            claim.close()
            verdict.code = verdict.code or LEFT
            verdict.seconds = self._clock.now() - started
            self._dispatcher.observe(verdict)
            _let_go(verdict.error)

    async def _answered(
        self, sending: Sending, call: Call, verdict: Verdict, claim: Claim
    ) -> web.StreamResponse:
        try:
            await self._dispatcher.authenticate(call, verdict)
            claim.begin(verdict.client, Share.WATCH if call.lasting else Share.REQUEST)
            if call.lasting:
                return await sending.send(await self._respond(call, verdict))
            async with deadline(self._clock, self._limits.request_time, "the request"):
                return await sending.send(await self._respond(call, verdict))
        except Exception as error:  # noqa: BLE001  # the edge: every error becomes a Status
            return await self._refused(sending, call, verdict, error)

    async def _respond(self, call: Call, verdict: Verdict) -> Response:
        return await self._dispatcher.respond(call, verdict)

    async def _refused(
        self, sending: Sending, call: Call, verdict: Verdict, error: Exception
    ) -> web.StreamResponse:
        if isinstance(error, ConnectionError):
            raise error
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

    async def _body(self, request: web.BaseRequest, large: Callable[[], None]) -> bytes:
        """The whole body, decompressed; TooLarge as soon as it is over the limit.

        `large` is called once it is large; what it raises, refuses the body.
        """
        limit = self._limits.body
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        _go_on(request)
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.content.iter_any():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                if size - len(part) <= LARGE < size:
                    large()
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


def _go_on(request: web.BaseRequest) -> None:
    """Tell a client that asked before sending its body (RFC 9110 section 10.1.1)."""
    asks = request.headers.get("Expect", "").lower() == "100-continue"
    if asks and request.transport is not None and request.version >= HttpVersion11:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _first_values(request: web.BaseRequest) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        found.setdefault(name.lower(), value)
    return found


def _impersonation(request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
    headers = request.headers.items()
    return tuple(pair for pair in headers if pair[0].lower().startswith("impersonate-"))


def _let_go(error: BaseException | None) -> None:
    """Part an error from the frames it came through.

    They hold the verdict that holds the error: a ring, and in it the body and all that was made of
    it, for as long as the garbage collector does not look. Refused bodies could fill the machine.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {limit}")
