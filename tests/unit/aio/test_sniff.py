from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.aio import Arrival, Batch, ManualClock, SniffingListener
from tests.support.log import ListLog
from tests.support.tls import contexts

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Port:
    """A listener on a free port, and what arrived at it. Echoes one line."""

    def __init__(self, tls: ssl.SSLContext | None, *, limit: int = 100) -> None:
        self.clock = ManualClock()
        self.log = ListLog()
        self.arrivals = Batch[Arrival](100)
        self.fail: Exception | None = None
        listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = listening.getsockname()
        self.listener = SniffingListener(
            listening, self.echo, tls=tls, clock=self.clock, log=self.log, limit=limit, patience=10
        )

    async def echo(self, arrival: Arrival) -> None:
        self.arrivals.offer(arrival)
        line = await arrival.reader.readline()
        if self.fail is not None:
            raise self.fail
        arrival.writer.write(line)
        await arrival.writer.drain()

    async def connect(self, tls: ssl.SSLContext | None = None, name: str | None = None) -> Streams:
        return await asyncio.open_connection(*self.address, ssl=tls, server_hostname=name)

    async def one(self) -> Arrival:
        (arrival,) = await self.arrivals.take()
        return arrival


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None, *, limit: int = 100) -> AsyncIterator[Port]:
    port = Port(tls, limit=limit)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(port.listener.run())
        yield port
        running.cancel()


async def ask(streams: Streams, line: bytes) -> bytes:
    reader, writer = streams
    writer.write(line)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.fixture
def both(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server, client = contexts(tmp_path, "server.dc1.consul", "other.dc1.consul")
    server.set_alpn_protocols(["consul/rpc-single", "consul/gossip"])
    return server, client


async def test_a_plain_connection_keeps_its_first_byte() -> None:
    async with listening(None) as port:
        assert await ask(await port.connect(), b"\x01hello\n") == b"\x01hello\n"
        arrival = await port.one()
        assert (arrival.first, arrival.encrypted) == (1, False)
        assert (arrival.alpn, arrival.server_name) == (None, None)


async def test_tls_tells_the_protocol_and_the_name(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = both
    client.set_alpn_protocols(["consul/gossip"])
    async with listening(server) as port:
        assert await ask(await port.connect(client, "other.dc1.consul"), b"hi\n") == b"hi\n"
        arrival = await port.one()
        assert arrival.encrypted
        assert (arrival.alpn, arrival.server_name) == ("consul/gossip", "other.dc1.consul")


async def test_tls_without_a_name_or_protocol(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = both
    client.check_hostname = False
    async with listening(server) as port:
        assert await ask(await port.connect(client), b"hi\n") == b"hi\n"
        arrival = await port.one()
        assert (arrival.alpn, arrival.server_name) == (None, None)


async def test_plain_and_tls_share_the_port(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = both
    async with listening(server) as port:
        assert await ask(await port.connect(), b"plain\n") == b"plain\n"
        assert await ask(await port.connect(client, "server.dc1.consul"), b"tls\n") == b"tls\n"


async def test_a_name_chooser_that_was_there_before_still_chooses(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = both
    asked = []
    server.sni_callback = lambda _, name, __: asked.append(name)
    async with listening(server) as port:
        await ask(await port.connect(client, "server.dc1.consul"), b"hi\n")
    assert asked == ["server.dc1.consul"]


async def test_tls_on_a_plain_port_is_refused(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with listening(None) as port:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await port.connect(both[1], "server.dc1.consul")
        assert port.log.lines[0].fields["error"] == (
            "PeerFault: a TLS handshake on a port that speaks no TLS"
        )


async def test_a_silent_peer_is_let_go_in_time() -> None:
    async with listening(None) as port:
        reader, writer = await port.connect()
        await port.clock.until_waiting(1)
        port.clock.advance(10)
        assert await reader.read() == b""
        writer.close()
        assert port.log.lines[0].fields["error"] == (
            "DeadlineExceeded: the first byte of a connection: not done after 10 s"
        )


async def test_a_peer_that_stops_within_its_handshake_is_let_go_in_time(
    both: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with listening(both[0]) as port:
        reader, writer = await port.connect()
        writer.write(b"\x16\x03\x01")
        await port.clock.until_waiting(1)
        while "TLS" not in str([line.fields for line in port.log.lines]):
            await port.clock.turn(10)
        assert await reader.read() == b""
        writer.close()


async def test_a_peer_that_leaves_at_once_is_no_bug() -> None:
    async with listening(None) as port:
        _, writer = await port.connect()
        writer.close()
        await writer.wait_closed()
        assert await ask(await port.connect(), b"next\n") == b"next\n"
        assert [line.level for line in port.log.lines] == ["info"]


async def test_a_handler_that_fails_ends_its_own_connection_only() -> None:
    async with listening(None) as port:
        port.fail = ZeroDivisionError("oops")
        assert await ask(await port.connect(), b"first\n") == b""
        assert port.log.lines[0].level == "warning"
        assert port.log.lines[0].fields["exc_info"] is port.fail
        port.fail = None
        assert await ask(await port.connect(), b"second\n") == b"second\n"


async def test_no_more_than_the_limit_are_served_at_once() -> None:
    async with listening(None, limit=1) as port:
        first = await port.connect()
        first[1].write(b"1")
        await port.one()
        second = await port.connect()
        second[1].write(b"2\n")
        await port.clock.turn(0)
        assert len(port.arrivals) == 0
        assert await ask(first, b"1\n") == b"11\n"
        assert await second[0].read() == b"2\n"
        second[1].close()
        await second[1].wait_closed()


async def test_a_failing_accept_is_tried_again() -> None:
    clock, log = ManualClock(), ListLog()
    deaf = socket.socket()  # does not listen, so each accept fails, as without free descriptors

    async def nobody(arrival: Arrival) -> None:
        pytest.fail(f"{arrival} arrived")

    listener = SniffingListener(deaf, nobody, tls=None, clock=clock, log=log)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(listener.run())
        await clock.turn(0.25)
        running.cancel()
    assert log.events() == ["accept failed"] * 3
    assert deaf.fileno() == -1
