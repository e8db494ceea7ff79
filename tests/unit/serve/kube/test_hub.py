"""One store watch, many cursors: each sees its events in order, once, or learns of its loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from isthmus.aio import ManualClock, breathe
from isthmus.errors import Compacted, Unavailable
from isthmus.model.key import Key
from isthmus.serve.kube.hub import Cursor, Entry, Hub, Scope
from isthmus.store.codec import encode
from isthmus.store.contract import Delete, Put
from isthmus.store.memory import Memory

SOON = 1e9


def pod(name: str, namespace: str = "ns", **labels: str) -> Put:
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return Put(Key("pods", namespace, name), encode({"metadata": meta}))


class Play:
    """A store with a running hub."""

    def __init__(self, store: Memory, hub: Hub, clock: ManualClock) -> None:
        self.store = store
        self.hub = hub
        self.clock = clock

    async def put(self, *ops: Put | Delete) -> int:
        """Write, and wait until the hub has read it."""
        await self.store.txn([], ops)
        while self.hub.revision < self.store.revision:
            await breathe()
        return self.store.revision

    def cursor(self, since: int, namespace: str = "", name: str = "") -> Cursor:
        cursor = self.hub.cursor("pods", Scope(namespace, name), since)
        assert cursor is not None
        return cursor


@asynccontextmanager
async def playing(**settings: int) -> AsyncIterator[Play]:
    store, clock = Memory(), ManualClock()
    hub = Hub(store, clock, **settings)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(hub.run())
        await breathe()
        yield Play(store, hub, clock)
        running.cancel()


def names(entries: object) -> list[str]:
    assert isinstance(entries, list | tuple)
    return [entry.event.key.name for entry in entries if isinstance(entry, Entry)]


async def test_a_cursor_gets_what_came_after_its_revision() -> None:
    async with playing() as play:
        await play.put(pod("a"))
        since = await play.put(pod("b"))
        await play.put(pod("c"), pod("d"))
        with play.cursor(since) as cursor:
            assert names(await cursor.next(SOON)) == ["c", "d"]
            assert names(await cursor.next(play.clock.now())) == []
            assert cursor.revision == play.store.revision


async def test_a_waiting_cursor_is_woken_by_an_event_in_its_scope_only() -> None:
    async with playing() as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0, "ns", "mine") as cursor:
            waiting = tasks.create_task(_next(cursor))
            await breathe()
            await play.put(pod("other"), pod("mine", "elsewhere"))
            assert not waiting.done()
            await play.put(pod("mine"))
            assert names(await waiting) == ["mine"]


async def _next(cursor: Cursor) -> object:
    return await cursor.next(SOON)


async def test_nothing_comes_when_the_time_is_over() -> None:
    async with playing() as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0) as cursor:
            waiting = tasks.create_task(_until(cursor, 30.0))
            await play.clock.until_waiting(1)
            await play.clock.turn(29)
            assert not waiting.done()
            await play.clock.turn(1)
            assert await waiting == ()
            # An event that nobody waited for is still told afterwards.
            await play.put(pod("a"))
            assert names(await cursor.next(SOON)) == ["a"]


async def _until(cursor: Cursor, until: float) -> object:
    return await cursor.next(until)


async def test_many_waits_keep_one_alarm() -> None:
    async with playing() as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0) as cursor:
            for number in range(20):
                waiting = tasks.create_task(_until(cursor, 100.0 + number))
                await breathe()
                await play.put(pod(f"p{number}"))
                assert len(names(await waiting)) == 1
            assert play.clock.waiting == 1
            waiting = tasks.create_task(_until(cursor, 500.0))
            await breathe()
            await play.clock.turn(200)  # the old alarm rings early; the wait goes on
            assert not waiting.done()
            await play.clock.turn(300)
            assert await waiting == ()


async def test_a_quiet_cursor_keeps_its_place_however_far_the_ring_turns() -> None:
    async with playing(ring_events=4) as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0, "quiet") as cursor:
            waiting = tasks.create_task(_next(cursor))
            await breathe()
            for number in range(20):
                await play.put(pod(f"p{number}"))
            await play.put(pod("mine", "quiet"))
            assert names(await waiting) == ["mine"]


async def test_a_cursor_that_does_not_read_loses_its_place_and_nobody_else_does() -> None:
    async with playing(ring_events=4) as play:
        with play.cursor(0) as slow, play.cursor(0) as quick:
            seen: list[str] = []
            for number in range(6):
                await play.put(pod(f"p{number}"))
                seen += names(await quick.next(SOON))
            assert seen == [f"p{number}" for number in range(6)]
            with pytest.raises(Compacted, match="too old resource version"):
                await slow.next(SOON)


async def test_the_ring_is_bounded_by_bytes_too() -> None:
    async with playing(ring_bytes=200) as play:
        for number in range(10):
            await play.put(pod(f"p{number}"))
        assert play.hub.cursor("pods", Scope(), 0) is None
        assert play.hub.cursor("pods", Scope(), play.store.revision - 1) is not None
        assert play.hub.cursor("services", Scope(), 0) is not None


async def test_a_large_batch_lets_watchers_read_in_between() -> None:
    async with playing(ring_events=300) as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0) as cursor:
            waiting = tasks.create_task(_collect(cursor, 1000))
            await breathe()
            for number in range(1000):
                await play.store.txn([], [pod(f"p{number:04}")])
            assert await waiting == [f"p{number:04}" for number in range(1000)]


async def _collect(cursor: Cursor, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        found += names(await cursor.next(SOON))
    return found


async def test_when_the_hub_ends_waiting_cursors_are_told_to_list_again() -> None:
    store, clock = Memory(), ManualClock()
    hub = Hub(store, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(_ends_unavailable(hub))
        await breathe()
        cursor = hub.cursor("pods", Scope(), 0)
        assert cursor is not None
        waiting = tasks.create_task(_next_or_lost(cursor))
        await breathe()
        await store.close()
        await running
        assert await waiting == "lost"


async def _ends_unavailable(hub: Hub) -> None:
    with pytest.raises(Unavailable):
        await hub.run()


async def _next_or_lost(cursor: Cursor) -> object:
    try:
        return await cursor.next(SOON)
    except Compacted:
        return "lost"


async def test_closing_ends_waits_without_an_error() -> None:
    async with playing() as play, asyncio.TaskGroup() as tasks:
        with play.cursor(0) as cursor:
            waiting = tasks.create_task(_next(cursor))
            await breathe()
            play.hub.close()
            assert await waiting == ()
            assert play.hub.closed


async def test_what_was_made_of_an_event_is_made_once() -> None:
    async with playing() as play:
        await play.put(pod("a", colour="blue"))
        await play.put(pod("a", colour="green"))
        with play.cursor(0) as one, play.cursor(0) as two:
            first, second = (await one.next(SOON))[1], (await two.next(SOON))[1]
            assert first is second
            made = first.made("json", lambda: b"x")
            assert second.made("json", lambda: b"y") is made
            assert second.made("table", lambda: b"y") == b"y"


async def test_a_selector_sees_arrivals_and_departures() -> None:
    async with playing() as play:
        await play.put(pod("a", colour="blue"))
        await play.put(pod("a", colour="green"))
        await play.put(Delete(Key("pods", "ns", "a")))
        with play.cursor(0) as cursor:
            entries = await cursor.next(SOON)

            def told(colour: str) -> list[str]:
                def matches(document: dict[str, object]) -> bool:
                    return f"'{colour}'" in str(document)

                return [seen.type for entry in entries if (seen := entry.seen(matches))]

            assert told("blue") == ["ADDED", "DELETED"]
            assert told("green") == ["ADDED", "DELETED"]
            assert [s.type for e in entries if (s := e.seen(None))] == [
                "ADDED", "MODIFIED", "DELETED",
            ]  # fmt: skip


async def test_watches_of_a_resource_that_is_gone_end_and_later_ones_begin_anew() -> None:
    async with playing() as play:
        since = await play.put(pod("a"))
        with play.cursor(since) as waiting, play.cursor(0) as behind:
            async with asyncio.TaskGroup() as tasks:
                told = tasks.create_task(waiting.next(SOON))
                await breathe()
                play.hub.retire(["pods"])
            assert told.result() == ()
            assert waiting.closed
            # What was there is told before the end.
            assert names(await behind.next(SOON)) == ["a"]
            assert await behind.next(SOON) == ()
        with play.cursor(since) as later:
            await play.put(pod("b"))
            assert names(await later.next(SOON)) == ["b"]
            assert not later.closed
        assert play.hub.cursor("pods", Scope(), 0) is None
