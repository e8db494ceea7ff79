from __future__ import annotations

from isthmus.aio import ManualClock
from isthmus.model.key import Key
from isthmus.store import History, Memory, Put
from isthmus.store.history import Keeper
from isthmus.store.timeline import Timeline

A = Key("services", "faces", "a")


async def writes(store: Memory, count: int, size: int = 1) -> None:
    for _ in range(count):
        await store.txn((), (Put(A, bytes(size)),))


async def test_old_revisions_are_forgotten_when_there_are_many() -> None:
    clock = ManualClock()
    store = Memory(history=History(revisions=100, seconds=60), clock=clock)
    await writes(store, 200)
    assert (await store.list(revision=1)).revision == 1, "young history is kept, however much"
    clock.advance(7)
    await writes(store, 1)
    assert store.floor <= 1
    clock.advance(61)
    await writes(store, 1)
    assert store.floor == 102
    await writes(store, 9)
    assert store.floor == 102, "it moves in steps of a tenth"


async def test_history_younger_than_its_time_is_kept() -> None:
    clock = ManualClock()
    store = Memory(history=History(revisions=10, seconds=100), clock=clock)
    for _ in range(30):
        await writes(store, 10)
        clock.advance(10)
    await writes(store, 10)
    # The last hundred seconds are ten rounds; what is forgotten goes in steps of ten seconds.
    assert 180 <= store.floor <= 210


async def test_a_quiet_store_forgets_nothing() -> None:
    clock = ManualClock()
    store = Memory(history=History(revisions=100, seconds=60), clock=clock)
    await writes(store, 50)
    clock.advance(100_000)
    await writes(store, 50)
    assert store.floor == 0


async def test_history_is_bounded_in_bytes() -> None:
    store = Memory(history=History(revisions=1_000, seconds=60, bytes=100_000), clock=ManualClock())
    await writes(store, 500, size=1_000)
    assert store.superseded <= 100_000
    assert 20 < store.revision - store.floor < 100
    assert store.revision == 500


async def test_one_value_above_the_bound_leaves_no_history() -> None:
    store = Memory(history=History(bytes=1_000), clock=ManualClock())
    await writes(store, 3, size=10_000)
    assert store.floor >= 2
    assert (await store.list()).records[0].revision == 3


def test_a_keeper_that_sees_nothing_new_holds_few_marks() -> None:
    clock = ManualClock()
    keeper = Keeper(History(seconds=10), clock)
    timeline = Timeline()
    for _ in range(10_000):
        clock.advance(0.5)
        assert keeper.floor(timeline) == 0
    assert keeper.marks <= 12
