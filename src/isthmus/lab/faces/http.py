"""HTTP/1.1 in small: a server and a client for short messages. Everything has a bound."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from isthmus.lab.faces.pace import within

Headers = tuple[tuple[str, str], ...]

HEAD: Final = 32 * 1024
"""Bytes of a request line with headers."""
BODY: Final = 256 * 1024
"""Bytes of a body, either way."""
IDLE: Final = 60.0
"""Seconds that a connection may wait for a request, or take to send one."""
CONNECTIONS: Final = 512
HOPS: Final = frozenset(
    {
        "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers of one connection, which nobody passes on (RFC 9110, section 7.6.1)."""


class Request(NamedTuple):
    """One request. Names of headers are in small letters; `target` is as sent."""

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Headers
    body: bytes
    client: str

    def header(self, name: str, default: str = "") -> str:
        """The first header of this name."""
        wanted = name.lower()
        return next((value for each, value in self.headers if each == wanted), default)


class Response(NamedTuple):
    """One answer."""

    status: int
    body: bytes = b""
    headers: Headers = ()

    def header(self, name: str, default: str = "") -> str:
        """The first header of this name, in any case."""
        wanted = name.lower()
        return next((value for each, value in self.headers if each.lower() == wanted), default)


class BadMessageError(Exception):
    """Not HTTP as we read it. `status` is what to answer."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


Handler = Callable[[Request], Awaitable[Response]]


# ---------------------------------------------------------------------------------- messages


async def _head(reader: asyncio.StreamReader) -> list[str] | None:
    """The lines of a head; None where the other side has nothing more to say."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as fault:
        if fault.partial.strip():
            raise BadMessageError("the message ends early") from fault
        return None
    except asyncio.LimitOverrunError as fault:
        raise BadMessageError("the headers are too long", 431) from fault
    return raw.decode("latin-1").strip("\r\n").split("\r\n")


def _headers(lines: Iterable[str]) -> Headers:
    found = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadMessageError("a header has no name")
        if any(ord(character) < 0x20 and character != "\t" for character in value):
            raise BadMessageError("a header holds control characters")
        found.append((name.lower(), value.strip()))
    return tuple(found)


async def _body(reader: asyncio.StreamReader, headers: Headers, *, to_end: bool) -> bytes:
    """The body that the headers announce; `to_end`: without announcement, all there is."""
    said = dict(headers)
    if "chunked" in said.get("transfer-encoding", "").lower():
        return await _chunks(reader)
    if "transfer-encoding" in said:
        raise BadMessageError("the transfer encoding is not known", 501)
    announced = said.get("content-length")
    if announced is None:
        rest = await reader.read(BODY + 1) if to_end else b""
        while to_end and len(rest) <= BODY and (more := await reader.read(BODY)):
            rest += more
        return _bounded(rest)
    if not (announced.isascii() and announced.isdecimal() and len(announced) < 10):
        raise BadMessageError("the content length is no number")
    if int(announced) > BODY:
        raise BadMessageError("the body is too long", 413)
    return await reader.readexactly(int(announced))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        line = (await reader.readuntil(b"\r\n")).split(b";")[0].strip()
        try:
            size = int(line, 16)
        except ValueError as fault:
            raise BadMessageError("a chunk has no size") from fault
        if not 0 <= size <= BODY - len(body):
            raise BadMessageError("the body is too long", 413)
        body += (await reader.readexactly(size + 2))[:-2]
        if not size:
            return body


def _bounded(body: bytes) -> bytes:
    if len(body) > BODY:
        raise BadMessageError("the body is too long", 413)
    return body


async def _request(reader: asyncio.StreamReader, client: str) -> tuple[Request, bool] | None:
    """A request, and whether its connection goes on after it."""
    lines = await _head(reader)
    if lines is None:
        return None
    match lines[0].split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0" as version] if method and target:
            headers = _headers(lines[1:])
        case _:
            raise BadMessageError("the request line cannot be read")
    try:
        parts = urlsplit(target)
    except ValueError as fault:
        raise BadMessageError("the target cannot be read") from fault
    body = await _body(reader, headers, to_end=False)
    wish = dict(headers).get("connection", "").lower()
    query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64))
    found = Request(method, target, unquote(parts.path), query, headers, body, client)
    return found, version == "HTTP/1.1" and "close" not in wish


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Trouble"


def _head_bytes(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    safe = (line.replace("\r", " ").replace("\n", " ") for line in lines)
    return ("\r\n".join(safe) + "\r\n\r\n").encode("latin-1", "replace")


# ------------------------------------------------------------------------------------ server


class HttpServer:
    """Answers with what `handler` returns. It must not raise; if it does, that is a 500."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._idle: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.Task[None]] = set()
        self._ending = False

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._talk, host, port, limit=HEAD)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self, grace: float) -> None:
        """Take no more; give requests that are being answered `grace` seconds."""
        self._ending = True
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._idle):
            writer.close()
        if self._open:
            await asyncio.wait(tuple(self._open), timeout=grace)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._requests(reader, writer)
        finally:
            self._open.discard(task)
            self._idle.discard(writer)
            writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or ("",)
        goes_on = True
        while goes_on and not self._ending:
            self._idle.add(writer)
            try:
                async with within(IDLE):
                    found = await _request(reader, str(peer[0]))
            except BadMessageError as fault:
                await _send(writer, Response(fault.status, str(fault).encode()), last=True)
                return
            self._idle.discard(writer)
            if found is None:
                return
            request, goes_on = found
            response = await self._answer(request)
            goes_on = goes_on and not self._ending
            await _send(writer, response, last=not goes_on, bare=request.method == "HEAD")

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception as fault:  # noqa: BLE001  # one bad request must not end the others
            return Response(500, f"internal error: {type(fault).__name__}".encode())


async def _send(
    writer: asyncio.StreamWriter, response: Response, *, last: bool, bare: bool = False
) -> None:
    headers = [*response.headers, ("Content-Length", str(len(response.body)))]
    if last:
        headers.append(("Connection", "close"))
    first = f"HTTP/1.1 {response.status} {_reason(response.status)}"
    writer.write(_head_bytes(first, headers) + (b"" if bare else response.body))
    async with within(IDLE):
        await writer.drain()


# ------------------------------------------------------------------------------------ client


def address(text: str, port: int = 80) -> tuple[str, int]:
    """`name`, `name:port`, `[::1]:port` or a bare IPv6 address."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        digits = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, digits = text, ""
    else:
        host, _, digits = text.partition(":")
    return host, int(digits) if digits.isascii() and digits.isdecimal() else port


async def fetch(
    service: str, target: str, headers: Iterable[tuple[str, str]], *, method: str = "GET"
) -> Response:
    """Ask a service, on a connection of its own: so every request is balanced anew.

    Raises OSError, TimeoutError or BadMessageError; set a time with `within`.
    """
    host, port = address(service)
    reader, writer = await asyncio.open_connection(host, port, limit=HEAD)
    try:
        own = [("Host", service), *headers, ("Connection", "close")]
        writer.write(_head_bytes(f"{method} {target} HTTP/1.1", own))
        await writer.drain()
        return await _response(reader, method)
    except asyncio.IncompleteReadError as fault:
        raise BadMessageError("the answer ends early") from fault
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _response(reader: asyncio.StreamReader, method: str) -> Response:
    while True:
        lines = await _head(reader)
        if lines is None:
            raise BadMessageError("there is no answer")
        words = lines[0].split(" ", 2)
        status = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
        if not words[0].startswith("HTTP/1.") or not 100 <= status <= 999:
            raise BadMessageError("the answer is not HTTP")
        if status >= 200:  # before it there may be others that only inform
            break
    headers = _headers(lines[1:])
    bare = method == "HEAD" or status in (204, 304)
    return Response(status, b"" if bare else await _body(reader, headers, to_end=True), headers)
