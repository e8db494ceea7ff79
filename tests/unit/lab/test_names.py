"""Names resolve while the name server is away."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from isthmus.aio import ManualClock
from isthmus.lab.network.names import PAUSE, TRIES, NameRelay

pytestmark = pytest.mark.anyio

QUESTION = b"\x12\x34" + bytes(10) + b"face"


class Here:
    """A namespace that is this one."""

    def socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> socket.socket:
        return udp()


def udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


class World:
    """A client, a relay, a name server."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server, listening, self.client = udp(), udp(), udp()
        for each in (self.server, listening):
            each.bind(("127.0.0.1", 0))
        self.client.connect(listening.getsockname())
        here: object = Here()
        self.relay = NameRelay(listening, here, self.server.getsockname(), self.clock)  # type: ignore[arg-type]

    def ask(self, packet: bytes = QUESTION) -> None:
        self.client.send(packet)

    async def asked(self) -> tuple[bytes, tuple[str, int]]:
        got, where = await asyncio.get_running_loop().sock_recvfrom(self.server, 4096)
        return got, where

    async def told(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.client, 4096)

    async def answer(self, text: bytes, code: int = 0) -> None:
        packet, where = await self.asked()
        self.server.sendto(packet[:3] + bytes((code,)) + packet[4:12] + text, where)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    running = asyncio.get_running_loop().create_task(made.relay.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.wait((running,))
        made.server.close()
        made.client.close()


async def test_an_answer_comes_back_under_the_client_s_number() -> None:
    async with world() as w:
        w.ask()
        await w.answer(b"here")
        assert await w.told() == QUESTION[:2] + bytes(10) + b"here"


async def test_without_an_answer_the_last_one_is_told() -> None:
    async with world() as w:
        w.ask()
        await w.answer(b"here")
        await w.told()
        w.ask(b"\x56\x78" + QUESTION[2:])
        await w.asked()
        w.clock.advance(PAUSE)
        assert await w.told() == b"\x56\x78" + bytes(10) + b"here"


async def test_a_server_that_fails_is_not_remembered() -> None:
    async with world() as w:
        w.ask()
        await w.answer(b"trouble", code=2)
        assert (await w.told())[12:] == b"trouble"
        w.ask()
        await w.asked()
        w.clock.advance(PAUSE)
        await w.answer(b"here")
        assert (await w.told())[12:] == b"here"


async def test_what_was_never_answered_is_asked_again_and_at_last_given_up() -> None:
    async with world() as w:
        w.ask()
        for _ in range(TRIES):
            await w.asked()
            w.clock.advance(PAUSE)
        w.ask(b"\x56\x78" + QUESTION[2:] + b"-other")
        packet, _ = await w.asked()  # nothing of the first came between
        assert packet.endswith(b"-other")


async def test_what_is_no_question_is_dropped() -> None:
    async with world() as w:
        w.ask(b"short")
        w.ask()
        packet, _ = await w.asked()
        assert packet[2:] == QUESTION[2:]
