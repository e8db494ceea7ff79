"""The board over a real store and a real database; time is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random

import msgspec
import pytest

from isthmus.aio import ManualClock
from isthmus.board import MEMBERS, Board, Intake, Intakes, Subscription
from isthmus.board.feed import MOST, PAGE, QUIET
from isthmus.engine import Database, Table, View, query
from isthmus.errors import Compacted, DeadlineExceeded, Unavailable
from isthmus.model.key import Key, ObjectKey
from isthmus.store import Memory
from isthmus.store.contract import Batch, Delete, Page, Put, Watch
from tests.support.log import ListLog

pytestmark = pytest.mark.anyio


class Thing(msgspec.Struct, frozen=True):
    size: int


THINGS: Table[ObjectKey, Thing] = Table("things", scope=lambda key: key.namespace)


@query
def size(db: View, name: str) -> int:
    thing = THINGS.get(db, ObjectKey("east", "", name))
    return thing.size if thing else 0


@query
def total(db: View, cluster: str) -> int:
    """Fails for a thing of size 13: a bug in a query."""
    rows = [THINGS.get(db, key) for key in THINGS.names(db, "") if key.cluster == cluster]
    if any(row is not None and row.size == 13 for row in rows):
        raise ZeroDivisionError("a bug")
    return sum(row.size for row in rows if row is not None)


INTAKES = Intakes({"things": Intake(THINGS, msgspec.json.Decoder(Thing).decode)})


class Flaky(Memory):
    """A store that can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: Exception | None = None
        self.lists = 0

    async def list(
        self,
        resource: str = "",
        namespace: str = "",
        *,
        revision: int = 0,
        after: Key | None = None,
        limit: int = 0,
    ) -> Page:
        self.fail_if_told()
        self.lists += 1
        return await super().list(resource, namespace, revision=revision, after=after, limit=limit)

    def watch(self, since: int) -> AbstractAsyncContextManager[Watch]:  # type: ignore[override]
        return self._watch(since)

    @asynccontextmanager
    async def _watch(self, since: int) -> AsyncIterator[Watch]:
        self.fail_if_told()
        async with super().watch(since) as cursor:
            yield _FlakyCursor(self, cursor)

    def fail_if_told(self) -> None:
        if self.failing is not None:
            raise self.failing


class _FlakyCursor:
    def __init__(self, store: Flaky, cursor: Watch) -> None:
        self._store = store
        self._cursor = cursor

    async def next(self) -> Batch:
        batch = await self._cursor.next()
        self._store.fail_if_told()
        return batch


class World:
    def __init__(self) -> None:
        self.store = Flaky()
        self.clock = ManualClock()
        self.log = ListLog()
        self.database = Database()
        self.board = Board(
            self.database, "east", self.store, INTAKES,
            clock=self.clock, random=Random(1), log=self.log,
        )  # fmt: skip

    async def put(self, **sizes: int) -> int:
        ops: Sequence[Put] = [
            Put(Key("things", "", name), msgspec.json.encode(Thing(value)))
            for name, value in sizes.items()
        ]
        done = await self.store.txn([], ops)
        return done.revision  # type: ignore[union-attr]

    async def delete(self, name: str) -> None:
        await self.store.txn([], [Delete(Key("things", "", name))])

    def held(self) -> dict[str, int]:
        return {key.name: row.size for key, row in THINGS.rows(self.database).items()}

    async def settled(self) -> None:
        """Let everything that is ready happen, and quiet periods pass."""
        await self.clock.turn(QUIET * 2)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.put(a=1, b=2)
    yield world
    await world.store.close()


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.board.run())
        await world.clock.turn(0)
        yield world
        task.cancel()


async def test_the_first_sync_is_one_revision_and_makes_a_member(world: World) -> None:
    assert not world.board.synced
    assert MEMBERS.rows(world.database) == {}
    async with running(world):
        assert world.board.health.synced
        assert world.held() == {"a": 1, "b": 2}
        assert world.database.revision == 1
        assert list(MEMBERS.rows(world.database)) == ["east"]


async def test_an_empty_store_is_a_member_too() -> None:
    world = World()
    async with running(world):
        assert world.board.synced
        assert list(MEMBERS.rows(world.database)) == ["east"]
        await world.put(a=1)
        await world.settled()
        assert world.held() == {"a": 1}


async def test_a_long_list_comes_in_pages_of_one_revision() -> None:
    world = World()
    for start in range(0, PAGE + 20, 100):
        await world.put(**{f"t{n}": n for n in range(start, min(start + 100, PAGE + 20))})
    async with running(world):
        assert len(world.held()) == PAGE + 20
        assert world.database.revision == 1
        assert world.store.lists == 2


async def test_a_burst_is_one_revision_after_a_quiet_moment(world: World) -> None:
    async with running(world):
        for n in range(5):
            await world.put(a=n)
        await world.clock.turn(QUIET / 2)
        assert world.database.revision == 1
        await world.settled()
        assert world.database.revision == 2
        assert world.held() == {"a": 4, "b": 2}


async def test_a_steady_stream_is_held_back_for_no_longer_than_most(world: World) -> None:
    async with running(world):
        for n in range(1, 60):
            await world.put(a=100 + n)
            await world.clock.turn(QUIET * 0.9)
        lasted = 59 * QUIET * 0.9
        commits = world.database.revision - 1
        assert lasted / (MOST + QUIET) - 1 <= commits <= lasted / MOST + 1


async def test_a_transaction_is_never_cut(world: World) -> None:
    seen: list[int] = []

    async def look() -> None:
        async with world.board.subscribe() as sub:
            sub.add(total, "east")
            while True:
                seen.extend((await sub.next()).values())

    async with running(world), asyncio.TaskGroup() as group:
        task = group.create_task(look())
        for n in range(20):
            await world.put(a=n, b=10 - n)
            await world.clock.turn(QUIET * (n % 3))
        await world.settled()
        task.cancel()
    assert set(seen) == {3, 10}


async def test_the_fence_waits_for_the_store_revision(world: World) -> None:
    async with running(world):
        revision = await world.put(a=7)
        async with asyncio.TaskGroup() as group:
            fence = group.create_task(world.board.at(revision))
            await world.clock.turn(0)
            assert not fence.done()
            await world.settled()
            await fence
        assert world.held()["a"] == 7
        await world.board.at(0)


async def test_the_fence_covers_revisions_that_change_no_row(world: World) -> None:
    async with running(world):
        done = await world.store.txn([], [Put(Key("secrets", "", "s"), b"{}")])
        async with asyncio.TaskGroup() as group:
            fence = group.create_task(world.board.at(done.revision))  # type: ignore[union-attr]
            await world.settled()
            await fence
        assert world.database.revision == 1


async def test_the_fence_has_a_deadline(world: World) -> None:
    async with running(world), asyncio.TaskGroup() as group:
        fence = group.create_task(expect_deadline(world))
        await world.clock.turn(3)
        await fence


async def expect_deadline(world: World) -> None:
    with pytest.raises(DeadlineExceeded, match="absorbing revision 99"):
        await world.board.at(99, seconds=2)


async def test_after_compaction_it_lists_again_as_a_difference(world: World) -> None:
    async with running(world):
        world.store.failing = Compacted("too old")
        await world.put(a=5)
        await world.clock.turn(0.05)
        await world.put(c=3)
        await world.delete("b")
        lists = world.store.lists
        world.store.failing = None
        await world.clock.turn(1)
        assert world.store.lists > lists
        assert world.held() == {"a": 5, "c": 3}
        assert world.database.revision == 2
        assert world.board.health.trouble == ""


async def test_a_failing_store_is_tried_again_from_where_it_was(world: World) -> None:
    async with running(world):
        lists = world.store.lists
        world.store.failing = Unavailable("the disk is full")
        await world.put(a=5)
        await world.clock.turn(1)
        assert "the disk is full" in world.board.health.trouble
        assert world.held() == {"a": 1, "b": 2}
        assert world.board.synced
        world.store.failing = None
        await world.clock.turn(10)
        assert world.board.health.trouble == ""
        assert world.held() == {"a": 5, "b": 2}
        assert world.store.lists == lists


async def test_a_store_that_fails_at_first_is_no_member(world: World) -> None:
    world.store.failing = Unavailable("not yet")
    async with running(world):
        await world.clock.turn(1)
        assert not world.board.synced
        assert MEMBERS.rows(world.database) == {}
        assert "not yet" in world.board.health.trouble
        world.store.failing = None
        await world.clock.turn(10)
        assert world.board.synced


async def test_an_unreadable_object_is_counted(world: World) -> None:
    await world.store.txn([], [Put(Key("things", "", "bad"), b'{"size":"x"}')])
    async with running(world):
        assert world.held() == {"a": 1, "b": 2}
        assert world.board.health.unreadable == 1


async def test_another_cluster_joins_and_leaves(world: World) -> None:
    store = Memory()
    await store.txn([], [Put(Key("things", "", "far"), b'{"size":9}')])
    feed = world.board.feed("west", store)
    async with running(world), asyncio.TaskGroup() as group:
        task = group.create_task(feed.run())
        await world.settled()
        assert sorted(MEMBERS.rows(world.database)) == ["east", "west"]
        assert world.board.read(total, "west") == 9
        task.cancel()
        await world.settled()
        assert world.board.read(total, "west") == 9
        feed.leave()
        assert list(MEMBERS.rows(world.database)) == ["east"]
        assert world.board.read(total, "west") == 0
        assert world.board.read(total, "east") == 3


# ---------------------------------------------------------------------------- subscriptions


async def test_a_subscription_tells_values_and_then_what_changed(world: World) -> None:
    async with running(world), world.board.subscribe() as sub:
        sub.add(size, "a")
        sub.add(size, "b")
        assert await sub.next() == {(size, "a"): 1, (size, "b"): 2}
        await world.put(a=4)
        await world.settled()
        assert await sub.next() == {(size, "a"): 4}


async def test_a_change_and_back_tells_nothing(world: World) -> None:
    async with running(world), world.board.subscribe() as sub, asyncio.TaskGroup() as group:
        sub.add(size, "a")
        await sub.next()
        await world.put(a=9)
        await world.settled()
        await world.put(a=1)
        await world.settled()
        waiting = group.create_task(sub.next())
        await world.clock.turn(0)
        assert not waiting.done()
        await world.put(a=2)
        await world.settled()
        assert await waiting == {(size, "a"): 2}


async def test_a_failing_query_keeps_what_was_told_and_stops_nobody(world: World) -> None:
    async with running(world), world.board.subscribe() as sub:
        sub.add(total, "east")
        sub.add(size, "a")
        assert await sub.next() == {(total, "east"): 3, (size, "a"): 1}
        await world.put(a=13)
        await world.settled()
        assert await sub.next() == {(size, "a"): 13}
        await world.put(a=14)
        await world.settled()
        assert await sub.next() == {(size, "a"): 14, (total, "east"): 16}


async def test_an_owner_learns_that_all_is_up_to_date_even_if_a_query_fails(world: World) -> None:
    async with running(world), world.board.subscribe() as sub:
        woken = [sub.woken]
        sub.add(size, "a")
        woken.append(sub.woken)
        assert await sub.settled() == {(size, "a"): 1}
        woken.append(sub.woken)
        assert woken == [False, True, False]
        await world.put(a=13)
        await world.settled()
        await sub.settled()
        sub.add(total, "east")
        assert await sub.settled() == {}


async def test_leaving_releases_every_cell(world: World) -> None:
    async with running(world):
        async with world.board.subscribe() as sub:
            sub.add(total, "east")
            await sub.next()
            assert world.database.stats.cells == 1
        assert world.database.stats.cells == 0


async def test_a_dropped_cell_is_not_told(world: World) -> None:
    async with running(world), world.board.subscribe() as sub:
        sub.add(size, "a")
        sub.add(size, "b")
        sub.drop(size, "b")
        assert await sub.next() == {(size, "a"): 1}


async def test_an_owner_cancelled_while_settling_loses_no_wake(world: World) -> None:
    class Slow(ManualClock):
        def now(self) -> float:
            self.advance(1)  # every look at the clock finds the slice over
            return super().now()

    async with running(world):
        sub = Subscription(world.database, Slow())
        async with sub, asyncio.TaskGroup() as group:
            for name in "abcdefgh":
                sub.add(size, name)
            first = group.create_task(sub.next())
            await asyncio.sleep(0)  # noqa: TID251  # exactly one turn
            first.cancel()
            await world.clock.turn(0)
            assert first.cancelled()
            assert len(await sub.next()) == 8


async def test_two_owners_are_refused(world: World) -> None:
    async with running(world), world.board.subscribe() as sub, asyncio.TaskGroup() as group:
        sub.add(size, "a")
        await sub.next()
        waiting = group.create_task(sub.next())
        await world.clock.turn(0)
        with pytest.raises(RuntimeError, match="one owner"):
            await sub.next()
        waiting.cancel()
