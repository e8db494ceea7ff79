"""One response on the wire, with a deadline on each wait for a slow reader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from isthmus.aio import Clock, deadline
from isthmus.serve.kube.answer import Answer, Response, Stream, Takeover, warning_headers
from isthmus.serve.kube.api import Call, Verdict
from isthmus.serve.kube.limits import Limits


class Sending:
    """Puts the answer to one request on the wire and notes its code in the verdict."""

    def __init__(
        self,
        request: web.BaseRequest,
        call: Call,
        verdict: Verdict,
        clock: Clock,
        limits: Limits,
        confirm: Callable[[], Awaitable[None]],
    ) -> None:
        """`confirm` raises if the client may no longer have what it is being sent."""
        self._confirm = confirm
        self._confirmed = clock.now()
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
            case Takeover():
                self.response = await response.run(self._request)
                self._verdict.code = self.response.status
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
        response.headers["Server"] = "isthmus"
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
        if self._call.watching and self._clock.now() - self._confirmed >= self._limits.trust_time:
            await self._confirm()
            self._confirmed = self._clock.now()
        async with deadline(self._clock, self._limits.write_time, "a slow reader"):
            await self.response.write(data)
