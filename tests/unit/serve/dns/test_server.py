"""Real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from dns import asyncquery, message

from isthmus.aio import ManualClock, breathe
from isthmus.app import dns as wiring
from isthmus.config.values import HostPort
from isthmus.serve.dns import DnsServer, Resolver
from isthmus.serve.dns.server import EACH, IDLE
from tests.support.dnsworld import MANY, SVC, said, small_mesh

CART = f"cart.shop.{SVC}"
HERE = "127.0.0.1"


class Running:
    """A server and where it is."""

    def __init__(self, server: DnsServer, port: int, clock: ManualClock) -> None:
        self.server = server
        self.port = port
        self.clock = clock
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, room: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection; `room` bytes for what was not read yet."""
        made = socket.socket()
        if room:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (HERE, self.port))
        reader, writer = await asyncio.open_connection(sock=made)
        self._writers.append(writer)
        return reader, writer

    async def close(self) -> None:
        for each in self._writers:
            each.close()
            with contextlib.suppress(OSError):
                await each.wait_closed()


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    datagrams, listening = wiring.bind(HostPort(HERE, 0))
    clock = ManualClock()
    with datagrams, listening:
        server = DnsServer(Resolver(small_mesh().db.read), datagrams, listening, clock)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(server.run())
            made = Running(server, listening.getsockname()[1], clock)
            yield made
            await made.close()
            task.cancel()


async def test_udp(running: Running) -> None:
    answer = await asyncquery.udp(
        message.make_query(CART, "A"), HERE, port=running.port, timeout=30
    )
    assert said(answer.answer) == [f"{CART} A 10.96.0.7"]


async def test_truncated_over_udp_and_then_whole_over_tcp(running: Running) -> None:
    query = message.make_query(f"many.shop.{SVC}", "A")
    answer, over_tcp = await asyncquery.udp_with_fallback(
        query, HERE, port=running.port, timeout=30
    )
    assert over_tcp
    assert len(said(answer.answer)) == MANY


async def test_noise_does_not_stop_it(running: Running) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for noise in (b"", b"x", b"\0" * 12, b"\xff" * 1000, b"\0" * 60_000):
            sender.sendto(noise, (HERE, running.port))
    await test_udp(running)


async def test_an_asker_who_left_does_not_stop_it(running: Running) -> None:
    """The kernel then reports an error at our socket."""
    for _ in range(8):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(message.make_query(CART, "A").to_wire(), (HERE, running.port))
    await test_udp(running)


async def test_many_questions_on_one_connection(running: Running) -> None:
    """More than are answered at once, sent before any answer is read."""
    reader, writer = await running.connect()
    asked = [message.make_query(CART, "A", id=number) for number in range(500)]
    for query in asked:
        raw = query.to_wire()
        writer.write(len(raw).to_bytes(2) + raw)
    for query in asked:
        assert query.is_response(message.from_wire(await _frame(reader)))


async def test_answers_that_nobody_reads_stop_the_reading(running: Running) -> None:
    """And go on when they are read: none is lost."""
    reader, writer = await running.connect(room=4096)
    count = 5000
    raw = message.make_query(f"many.shop.{SVC}", "A").to_wire()
    frame = len(raw).to_bytes(2) + raw

    async def send() -> None:
        for _ in range(count):
            writer.write(frame)
            await writer.drain()

    async with asyncio.TaskGroup() as group:
        sending = group.create_task(send())
        while not any(connection.stuck for connection in running.server.connections):
            await breathe()
        answered = running.server.resolver.counts["tcp", "NOERROR"]
        assert 0 < answered < count
        for _ in range(count):
            await _frame(reader)
        await sending


async def test_nonsense_over_tcp_ends_the_connection(running: Running) -> None:
    for noise in (b"\0\0", b"\xff\xff\xff", b"\0\3abc"):
        reader, writer = await running.connect()
        writer.write(noise)
        assert await _ended(reader)
        assert running.server.gate.inside == 0


async def _frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(2)))


async def _ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def test_a_silent_connection_is_left(running: Running) -> None:
    reader, writer = await running.connect()
    query = message.make_query(CART, "A").to_wire()
    writer.write(len(query).to_bytes(2) + query)
    await _frame(reader)
    await running.clock.turn(IDLE - 1)
    writer.write(len(query).to_bytes(2) + query)
    await _frame(reader)
    await running.clock.turn(2)
    assert running.server.gate.inside == 1
    await running.clock.turn(IDLE)
    assert await _ended(reader)


async def test_one_address_has_room_for_so_many_connections(running: Running) -> None:
    held = [await running.connect() for _ in range(EACH)]
    reader, _ = await running.connect()
    assert await _ended(reader)
    assert len(held) == running.server.gate.inside == EACH


def test_one_port_for_both() -> None:
    datagrams, listening = wiring.bind(HostPort(HERE, 0))
    with datagrams, listening:
        assert datagrams.getsockname() == listening.getsockname()
