from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import pytest

from isthmus.aio import ManualClock
from isthmus.app.gatewaynames import AGAIN, PERIOD, GatewayNames, system_addresses
from isthmus.app.means import Means
from isthmus.board import Board, Intake, Intakes
from isthmus.engine import Database
from isthmus.mesh import SOURCES
from isthmus.mesh.exports import GATEWAY_NAMES
from isthmus.model.registry import BUILT_IN
from isthmus.store import Memory
from isthmus.store.objects import Objects
from tests.support.log import ListLog

pytestmark = pytest.mark.anyio

NAMESPACE = "linkerd-multicluster"


class NameServer:
    """Answers as it is told to."""

    def __init__(self, **answers: tuple[str, ...]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError(f"no such host: {host}")
        return self.answers[host]


class Place:
    """A board over a store, and names that are kept."""

    def __init__(self, server: NameServer) -> None:
        self.clock = ManualClock()
        self.log = ListLog()
        self.store = Memory(clock=self.clock)
        self.objects = Objects(self.store, clock=self.clock, random=Random(1))
        self.db = Database()
        where = Intakes({name: Intake(*source) for name, source in SOURCES.items()})
        means = Means(self.clock, Random(2), self.log)
        self.board = Board(self.db, "here", self.store, where, **means._asdict())
        self.names = GatewayNames("here", self.board, means, server)

    async def link(self, name: str, address: str) -> None:
        metadata = {"name": name, "namespace": NAMESPACE}
        document = {"apiVersion": "multicluster.linkerd.io/v1alpha3", "kind": "Link"}
        spec = {"targetClusterName": name, "gatewayAddress": address}
        kind = BUILT_IN.by_kind("multicluster.linkerd.io", "Link")
        assert kind is not None
        await self.objects.create(kind, {**document, "metadata": metadata, "spec": spec})

    async def unlink(self, name: str) -> None:
        kind = BUILT_IN.by_kind("multicluster.linkerd.io", "Link")
        assert kind is not None
        await self.objects.delete(kind, NAMESPACE, name)

    def known(self, host: str) -> tuple[str, ...] | None:
        return GATEWAY_NAMES.get(self.db, host)

    async def until(self, true: Callable[[], bool]) -> None:
        """Turn the loop, and the clock by less than matters."""
        for _ in range(200):
            if true():
                return
            await self.clock.turn(0.02)
        raise AssertionError(GATEWAY_NAMES.rows(self.db))


@pytest.fixture
def server() -> NameServer:
    return NameServer(**{"gw.test": ("192.0.2.1",), "gw2.test": ("192.0.2.2", "192.0.2.3")})


@pytest.fixture
async def place(server: NameServer) -> AsyncIterator[Place]:
    place = Place(server)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in (place.board, place.names)]
        yield place
        for task in tasks:
            task.cancel()


async def test_names_become_addresses_and_addresses_are_not_asked_for(
    place: Place, server: NameServer
) -> None:
    await place.link("east", "192.0.2.9, gw.test,gw2.test,2001:db8::1")
    await place.until(lambda: place.known("gw2.test") == ("192.0.2.2", "192.0.2.3"))
    assert place.known("gw.test") == ("192.0.2.1",)
    assert set(server.asked) == {"gw.test", "gw2.test"}


async def test_another_answer_is_taken_up_and_none_leaves_what_was_known(
    place: Place, server: NameServer
) -> None:
    await place.link("east", "gw.test")
    await place.until(lambda: place.known("gw.test") == ("192.0.2.1",))
    server.answers["gw.test"] = ("192.0.2.7",)
    await place.clock.turn(PERIOD)
    await place.until(lambda: place.known("gw.test") == ("192.0.2.7",))
    del server.answers["gw.test"]
    asked = len(server.asked)
    await place.clock.turn(PERIOD)
    await place.until(lambda: len(server.asked) > asked)
    assert place.known("gw.test") == ("192.0.2.7",)


async def test_a_name_without_an_answer_is_told_as_that_and_asked_for_sooner(
    place: Place, server: NameServer
) -> None:
    await place.link("east", "gone.test")
    await place.until(lambda: place.known("gone.test") == ())
    server.answers["gone.test"] = ("192.0.2.8",)
    await place.clock.turn(AGAIN)
    await place.until(lambda: place.known("gone.test") == ("192.0.2.8",))
    told = [each for each in place.log.lines if "no address" in str(each)]
    assert len(told) == 1


async def test_what_no_link_names_is_forgotten(place: Place) -> None:
    await place.link("east", "gw.test")
    await place.until(lambda: place.known("gw.test") is not None)
    await place.unlink("east")
    await place.until(lambda: place.known("gw.test") is None)


async def test_the_machines_own_resolver() -> None:
    assert "127.0.0.1" in await system_addresses("localhost")
    with pytest.raises(OSError, match=r".+"):
        await system_addresses("no-such-host.invalid")
