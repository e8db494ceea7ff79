"""HTTP in small: what is read, what is refused, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from isthmus.lab.faces.http import (
    BODY,
    BadMessageError,
    HttpServer,
    Request,
    Response,
    address,
    fetch,
)

HERE = "127.0.0.1"


class Echo:
    """Tells what it was asked; at /wait only when it is let go, at /bug it fails."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        if request.path == "/wait":
            self.asked.set()
            await self.let_go.wait()
        if request.path == "/bug":
            raise ZeroDivisionError
        said = f"{request.method} {request.path} {dict(request.query)} {request.body!r}"
        return Response(200, said.encode(), (("X-Name", request.header("x-name", "-")),))


class Running:
    def __init__(self, server: HttpServer, echo: Echo, port: int) -> None:
        self.server, self.echo, self.port = server, echo, port

    async def talk(self, raw: bytes) -> bytes:
        """All that is answered until the connection ends."""
        reader, writer = await asyncio.open_connection(HERE, self.port)
        writer.write(raw)
        writer.write_eof()
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
        return said


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    echo = Echo()
    server = HttpServer(echo)
    port = await server.start(HERE, 0)
    yield Running(server, echo, port)
    echo.let_go.set()
    await server.stop(5.0)


async def test_a_request(running: Running) -> None:
    got = await fetch(f"{HERE}:{running.port}", "/a%20b/?row=1&col=", [("X-Name", "Ada")])
    assert (got.status, got.body) == (200, b"GET /a b/ {'row': '1', 'col': ''} b''")
    assert got.header("X-NAME") == "Ada"


async def test_a_connection_goes_on(running: Running) -> None:
    one = b"PUT /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    two = b"PUT /y HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1;x\r\nf\r\n0\r\n\r\n"
    last = b"HEAD /z HTTP/1.1\r\nConnection: close\r\n\r\n"
    said = await running.talk(one + two + last)
    assert b"PUT /x {} b'abc'" in said
    assert b"PUT /y {} b'def'" in said
    assert said.count(b"HTTP/1.1 200 OK") == 3
    assert said.endswith(b"Connection: close\r\n\r\n")


async def test_an_old_client_gets_one_answer(running: Running) -> None:
    said = await running.talk(b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n")
    assert said.count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET http://[x/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: " + b"9" * 50 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /bug HTTP/1.1\r\n\r\n", 500),
    ],
)
async def test_what_cannot_be_served(running: Running, raw: bytes, status: int) -> None:
    said = await running.talk(raw)
    assert said.startswith(f"HTTP/1.1 {status} ".encode()), said
    assert (await fetch(f"{HERE}:{running.port}", "/", ())).status == 200


@pytest.mark.parametrize(
    "raw", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"]
)
async def test_a_client_that_leaves(running: Running, raw: bytes) -> None:
    assert b" 200 " not in await running.talk(raw)


async def test_stopping_ends_idle_connections_and_waits_for_answers(running: Running) -> None:
    reader, writer = await asyncio.open_connection(HERE, running.port)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(fetch(f"{HERE}:{running.port}", "/wait", ()))
        await running.echo.asked.wait()
        stopping = group.create_task(running.server.stop(30.0))
        assert await reader.read() == b""
        assert not stopping.done()
        running.echo.let_go.set()
    assert asked.result().status == 200
    writer.close()
    with pytest.raises(ConnectionError):
        await fetch(f"{HERE}:{running.port}", "/", ())


# -------------------------------------------------------------------------------- the client


async def answered(raw: bytes) -> Response:
    """What `fetch` makes of these bytes."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(say, HERE, 0) as server:
        return await fetch(f"{HERE}:{server.sockets[0].getsockname()[1]}", "/", ())


@pytest.mark.parametrize(
    ("raw", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
        (b"HTTP/1.1 599 Trouble\r\n\r\nto the end", 599, b"to the end"),
        (b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, b"hi"),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 Done\r\n\r\n", 204, b""),
    ],
)
async def test_answers(raw: bytes, status: int, body: bytes) -> None:
    got = await answered(raw)
    assert (got.status, got.body) == (status, body)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (BODY + 1),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_answers_that_are_none(raw: bytes) -> None:
    with pytest.raises((BadMessageError, ConnectionError)):
        await answered(raw)


async def test_a_header_cannot_bring_another(running: Running) -> None:
    got = await fetch(f"{HERE}:{running.port}", "/", [("X-Name", "a\r\nX-Other: b")])
    assert got.header("X-Name") == "a  X-Other: b"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("smiley", ("smiley", 80)),
        ("color:8000", ("color", 8000)),
        ("[fd00::1]:81", ("fd00::1", 81)),
        ("[fd00::1]", ("fd00::1", 80)),
        ("fd00::1", ("fd00::1", 80)),
        ("odd:port", ("odd", 80)),
    ],
)
def test_addresses(text: str, found: tuple[str, int]) -> None:
    assert address(text) == found
