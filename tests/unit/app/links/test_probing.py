"""A gateway's probes: how many failures are death, and that one answer is life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from isthmus.aio import SystemClock
from isthmus.app.links.report import figures_of
from isthmus.mesh.links import Reached
from tests.support.fakeapi import FakeApi, service
from tests.support.linkworld import LinkWorld

OK, BAD = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 503 no\r\n\r\n"


class Gateway:
    """Answers probes one by one, as the test says; the one after waits."""

    def __init__(self) -> None:
        self.port = 0
        self._asked = self._said = 0
        self._more = asyncio.Condition()
        self._answers: list[bytes] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Gateway]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline():  # who asks whether the data plane lives says nothing
            self._asked += 1
            async with self._more:
                await self._more.wait_for(lambda: self._answers)
                writer.write(self._answers.pop(0))
        writer.close()

    async def say(self, *answers: bytes) -> None:
        async with self._more:
            self._said += len(answers)
            self._answers += answers
            self._more.notify()

    @property
    def judged(self) -> bool:
        """The probe after the last answer has come: so that answer was taken in."""
        return self._asked > self._said


def figure(world: LinkWorld, name: str) -> dict[tuple[str, ...], float]:
    read = {each.name: each.read for each in figures_of(world.links, SystemClock())}
    found = read[f"isthmus_link_{name}"]()
    assert isinstance(found, Mapping)
    return dict(found)


@pytest.mark.timeout(60)
async def test_failures_in_a_row_are_death_and_one_answer_is_life() -> None:
    async with (
        FakeApi().serving() as api,
        Gateway().serving() as gateway,
        LinkWorld().running() as world,
    ):
        port = str(gateway.port)
        probe = {"path": "/ready", "port": port, "period": "1s", "failureThreshold": "2"}
        at = {"gatewayAddress": "127.0.0.1", "gatewayPort": port, "probeSpec": probe}
        await world.link("east", api.kubeconfig(), **at)
        await world.link("flat", api.kubeconfig())
        for name in ("east", "flat"):
            await world.until_health(name, lambda it: it.state is Reached.SYNCED)
        assert figure(world, "gateway_enabled") == {("east",): 1.0, ("flat",): 0.0}
        assert figure(world, "gateway_alive") == {}
        await gateway.say(OK)
        await world.until_health("east", lambda it: it.gateway_alive is True)
        await gateway.say(BAD, OK, BAD)
        await world.until(lambda: gateway.judged)
        assert figure(world, "gateway_alive") == {("east",): 1.0}
        await gateway.say(BAD)
        await world.until_health("east", lambda it: it.gateway_alive is False)
        assert figure(world, "gateway_alive") == {("east",): 0.0}
        await gateway.say(OK)
        await world.until_health("east", lambda it: it.gateway_alive is True)


@pytest.mark.timeout(60)
async def test_a_link_that_changes_otherwise_is_not_listed_again() -> None:
    async with FakeApi().serving() as api, LinkWorld().running() as world:
        await world.link("east", api.kubeconfig())
        await world.until_health("east", lambda it: it.state is Reached.SYNCED)
        assert figure(world, "watch_starts_total") == {("east",): 1.0}
        api.put(service("pay"))
        await world.until(lambda: world.has("east", "pay"))
        assert figure(world, "watch_starts_total") == {("east",): 1.0}
