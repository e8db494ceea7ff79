"""What every store does, whatever it is made of. See tests/contract/stores.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isthmus.aio import breathe
from isthmus.errors import BadRequest, Compacted, TooLarge, Unavailable
from isthmus.model.key import Key
from isthmus.store import (
    Batch,
    Committed,
    Compare,
    Delete,
    Event,
    Op,
    Put,
    Record,
    Refused,
    Store,
    Watch,
)
from isthmus.store.contract import MAX_OPS, MAX_VALUE
from tests.contract.asking import NODE, ROUTE, A, B, C, collect, values, write
from tests.contract.stores import STORES


@pytest.fixture(params=list(STORES.values()), ids=list(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with request.param(tmp_path) as opened:
        yield opened


# -------------------------------------------------------------------- writing and reading


async def test_a_new_store_is_empty_at_revision_0(store: Store) -> None:
    page = await store.list()
    assert (store.revision, page) == (0, (((), 0, False, 0)))
    assert await store.get(A) is None


async def test_a_write_is_read_at_once(store: Store) -> None:
    revision = await write(store, Put(A, b"1"))
    assert revision > 0
    assert store.revision == revision
    assert await store.get(A) == Record(A, b"1", revision, revision)


async def test_a_record_knows_its_first_and_its_last_change(store: Store) -> None:
    first = await write(store, Put(A, b"1"))
    await write(store, Put(B, b"other"))
    last = await write(store, Put(A, b"2"))
    assert await store.get(A) == Record(A, b"2", last, first)


async def test_a_key_made_again_is_new(store: Store) -> None:
    await write(store, Put(A, b"1"))
    await write(store, Delete(A))
    assert await store.get(A) is None
    again = await write(store, Put(A, b"1"))
    assert await store.get(A) == Record(A, b"1", again, again)


async def test_one_transaction_is_one_revision(store: Store) -> None:
    before = await write(store, Put(A, b"1"))
    revision = await write(store, Put(A, b"2"), Put(B, b"2"), Put(NODE, b"2"))
    assert revision > before
    page = await store.list()
    assert {record.revision for record in page.records} == {revision}


async def test_writing_the_same_value_is_a_change(store: Store) -> None:
    first = await write(store, Put(A, b"1"))
    assert await write(store, Put(A, b"1")) > first


async def test_a_transaction_that_changes_nothing_has_the_present_revision(store: Store) -> None:
    revision = await write(store, Put(A, b"1"))
    assert await write(store, Delete(B)) == revision
    assert await write(store) == revision
    assert store.revision == revision


async def test_revisions_grow_over_every_kind_of_change(store: Store) -> None:
    revisions = [
        await write(store, Put(A, b"1")),
        await write(store, Put(A, b"2")),
        await write(store, Delete(A)),
        await write(store, Put(A, b"3")),
    ]
    assert revisions == sorted(set(revisions))


async def test_values_are_any_bytes(store: Store) -> None:
    value = bytes(range(256)) * 64
    await write(store, Put(A, value), Put(B, b""))
    page = await store.list()
    assert values(page.records) == {"a": value, "b": b""}


# -------------------------------------------------------------------- compares


async def test_a_compare_that_holds_lets_the_write_through(store: Store) -> None:
    first = await write(store, Put(A, b"1"), when=(Compare(A, 0),))
    await write(store, Put(A, b"2"), when=(Compare(A, first), Compare(B, 0)))
    record = await store.get(A)
    assert record is not None
    assert record.value == b"2"


async def test_a_compare_that_fails_writes_nothing_and_tells_what_is_there(store: Store) -> None:
    revision = await write(store, Put(A, b"1"))
    done = await store.txn((Compare(A, 0), Compare(B, 0)), (Put(A, b"2"), Put(C, b"2")))
    assert done == Refused({A: Record(A, b"1", revision, revision), B: None})
    assert await store.get(C) is None
    assert store.revision == revision


async def test_a_compare_with_an_older_change_fails(store: Store) -> None:
    old = await write(store, Put(A, b"1"))
    await write(store, Put(A, b"2"))
    assert isinstance(await store.txn((Compare(A, old),), (Delete(A),)), Refused)
    assert await store.get(A) is not None


async def test_a_deleted_key_compares_as_absent(store: Store) -> None:
    old = await write(store, Put(A, b"1"))
    await write(store, Delete(A))
    assert isinstance(await store.txn((Compare(A, old),), (Put(A, b"2"),)), Refused)
    await write(store, Put(A, b"2"), when=(Compare(A, 0),))


async def test_a_compare_may_guard_other_keys_than_the_written(store: Store) -> None:
    namespace = Key("namespaces", "", "faces")
    revision = await write(store, Put(namespace, b"1"))
    await write(store, Put(A, b"1"), when=(Compare(namespace, revision), Compare(A, 0)))
    await write(store, Delete(namespace))
    assert isinstance(await store.txn((Compare(namespace, revision),), (Put(B, b"1"),)), Refused)


async def test_of_many_writers_on_one_key_each_adds_once(store: Store) -> None:
    await write(store, Put(A, b"0"))

    async def add() -> None:
        while True:
            record = await store.get(A)
            assert record is not None
            more = str(int(record.value) + 1).encode()
            done = await store.txn((Compare(A, record.revision),), (Put(A, more),))
            if isinstance(done, Committed):
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(add())
    record = await store.get(A)
    assert record is not None
    assert record.value == b"20"


async def test_a_refused_transaction_does_not_touch_its_neighbours(store: Store) -> None:
    await write(store, Put(A, b"1"))
    done = await asyncio.gather(
        store.txn((), (Put(B, b"1"),)),
        store.txn((Compare(A, 0),), (Put(A, b"2"), Put(B, b"2"))),
        store.txn((), (Put(C, b"1"),)),
    )
    assert [type(each) for each in done] == [Committed, Refused, Committed]
    assert values((await store.list("services")).records) == {"a": b"1", "b": b"1", "c": b"1"}


# -------------------------------------------------------------------- refusals


async def test_one_key_in_two_ops_is_refused(store: Store) -> None:
    with pytest.raises(BadRequest, match="twice"):
        await store.txn((), (Put(A, b"1"), Delete(A)))
    assert store.revision == 0


@pytest.mark.parametrize(
    "key",
    [
        Key("", "x", "a"),
        Key("services", "x", ""),
        Key("services", "x", "a\x00b"),
        Key("s", "\ud800", "a"),
    ],
)
async def test_keys_that_cannot_be_kept_are_refused(store: Store, key: Key) -> None:
    with pytest.raises(BadRequest):
        await store.txn((), (Put(B, b"1"), Put(key, b"1")))
    assert await store.get(B) is None


async def test_what_is_too_large_is_refused(store: Store) -> None:
    with pytest.raises(TooLarge, match="services/faces/a"):
        await store.txn((), (Put(A, bytes(MAX_VALUE + 1)),))
    many = [Delete(Key("pods", "x", str(index))) for index in range(MAX_OPS + 1)]
    with pytest.raises(TooLarge):
        await store.txn((), many)
    with pytest.raises(TooLarge):
        await store.txn([Compare(op.key, 0) for op in many], ())


async def test_the_largest_transaction_is_taken(store: Store) -> None:
    puts = [Put(Key("pods", "x", str(index)), b"1") for index in range(MAX_OPS)]
    revision = await write(store, *puts, when=tuple(Compare(put.key, 0) for put in puts))
    page = await store.list("pods")
    assert len(page.records) == MAX_OPS
    assert {record.revision for record in page.records} == {revision}


# -------------------------------------------------------------------- lists


async def fill(store: Store) -> int:
    for key in (B, ROUTE, C, NODE, A):
        await write(store, Put(key, key.name.encode()))
    return store.revision


async def test_lists_are_in_key_order(store: Store) -> None:
    await fill(store)
    page = await store.list()
    assert [record.key for record in page.records] == [ROUTE, NODE, A, B, C]
    assert page.revision == store.revision


async def test_lists_of_a_resource_and_of_a_namespace(store: Store) -> None:
    await fill(store)
    assert [r.key for r in (await store.list("services")).records] == [A, B, C]
    assert [r.key for r in (await store.list("services", "faces")).records] == [A, B]
    assert [r.key for r in (await store.list("", "faces")).records] == [ROUTE, A, B]
    assert [r.key for r in (await store.list("nodes")).records] == [NODE]
    assert (await store.list("pods")).records == ()


async def test_a_name_that_begins_like_another_is_not_mixed_up(store: Store) -> None:
    keys = [
        Key("pods", "a", "x"),
        Key("pods", "a-b", "x"),
        Key("podsx", "a", "x"),
        Key("pods.b", "a", "x"),
    ]
    await write(store, *(Put(key, b"1") for key in keys))
    assert [r.key for r in (await store.list("pods", "a")).records] == [keys[0]]
    assert [r.key for r in (await store.list("pods")).records] == keys[:2]


async def test_keys_beyond_ascii_sort_by_code_point(store: Store) -> None:
    keys = [Key("x", "", name) for name in ("z", "é", "中", "😀", "~")]
    await write(store, *(Put(key, b"1") for key in keys))
    page = await store.list("x")
    assert [r.key for r in page.records] == sorted(keys)


async def test_pages_join_to_the_list(store: Store) -> None:
    await fill(store)
    whole = (await store.list()).records
    first = await store.list(limit=2)
    assert (first.records, first.more, first.remaining) == (whole[:2], True, 3)
    second = await store.list(limit=2, after=first.records[-1].key, revision=first.revision)
    assert (second.records, second.more, second.remaining) == (whole[2:4], True, 1)
    last = await store.list(limit=2, after=second.records[-1].key, revision=first.revision)
    assert (last.records, last.more, last.remaining) == (whole[4:], False, 0)


async def test_a_page_that_just_fits_has_no_more(store: Store) -> None:
    await fill(store)
    page = await store.list("services", limit=3)
    assert (len(page.records), page.more) == (3, False)


async def test_pages_at_a_revision_do_not_see_later_writes(store: Store) -> None:
    revision = await fill(store)
    first = await store.list("services", limit=1)
    await write(store, Delete(B))
    await write(store, Put(C, b"changed"))
    await write(store, Put(Key("services", "faces", "bb"), b"new"))
    rest = await store.list("services", revision=revision, after=first.records[-1].key)
    assert values(rest.records) == {"b": b"b", "c": b"c"}
    assert rest.revision == revision
    assert values((await store.list("services")).records) == {
        "a": b"a",
        "bb": b"new",
        "c": b"changed",
    }


async def test_every_kept_revision_can_be_listed(store: Store) -> None:
    states: dict[int, dict[str, bytes]] = {}
    ops: list[Op] = [Put(A, b"1"), Put(B, b"1"), Put(A, b"2"), Delete(B), Put(B, b"3")]
    for op in ops:
        revision = await write(store, op)
        states[revision] = values((await store.list()).records)
    for revision, state in states.items():
        page = await store.list(revision=revision)
        assert values(page.records) == state
        assert page.revision == revision


async def test_the_after_key_need_not_exist(store: Store) -> None:
    await fill(store)
    page = await store.list("services", after=Key("services", "faces", "aa"))
    assert [r.key for r in page.records] == [B, C]
    page = await store.list("services", after=Key("zzz", "", ""))
    assert page.records == ()


async def test_a_list_of_the_future_is_refused(store: Store) -> None:
    revision = await fill(store)
    with pytest.raises(BadRequest, match="future"):
        await store.list(revision=revision + 1)


# -------------------------------------------------------------------- watches


async def test_a_watch_tells_what_changed_and_what_was_before(store: Store) -> None:
    async with store.watch(0) as watch:
        first = await write(store, Put(A, b"1"))
        second = await write(store, Put(A, b"2"))
        third = await write(store, Delete(A))
        events = await collect(watch, third)
    made, changed = Record(A, b"1", first, first), Record(A, b"2", second, first)
    assert events == [
        Event(first, A, made, None),
        Event(second, A, changed, made),
        Event(third, A, None, changed),
    ]


async def test_a_watch_begins_after_its_revision(store: Store) -> None:
    await fill(store)
    since = store.revision
    last = await write(store, Put(A, b"2"))
    async with store.watch(since) as watch:
        events = await collect(watch, last)
    assert [(event.revision, event.key) for event in events] == [(last, A)]


async def test_a_watch_waits_until_there_is_something(store: Store) -> None:
    async with store.watch(0) as watch, asyncio.TaskGroup() as group:
        waiting = group.create_task(watch.next())
        await store.get(A)
        assert not waiting.done()
        revision = await write(store, Put(A, b"1"))
        batch = await waiting
    assert batch == Batch(
        (Event(revision, A, Record(A, b"1", revision, revision), None),), revision
    )


async def test_what_a_watch_tells_can_be_read(store: Store) -> None:
    """hashicorp/consul#16871: an event was told before its data could be read."""

    async def follow() -> None:
        at = 0
        async with store.watch(0) as watch:
            while at < 30:
                batch = await watch.next()
                page = await store.list(revision=batch.revision)
                record = await store.get(A)
                assert record is not None
                assert record.revision >= batch.revision
                assert page.records[0].revision == batch.revision
                at = int(page.records[0].value)

    async with asyncio.TaskGroup() as group:
        group.create_task(follow())
        for index in range(1, 31):
            await write(store, Put(A, str(index).encode()))


async def test_a_batch_never_cuts_a_transaction(store: Store) -> None:
    big = [Put(Key("pods", "x", str(index)), b"1") for index in range(600)]
    first = await write(store, *big)
    second = await write(store, *big)
    third = await write(store, *big)
    seen: list[int] = []
    async with store.watch(0) as watch:
        while not seen or seen[-1] < third:
            batch = await watch.next()
            revisions = [event.revision for event in batch.events]
            assert all(revisions.count(each) == 600 for each in set(revisions))
            assert revisions[-1] == batch.revision
            seen += revisions
    assert seen == [first] * 600 + [second] * 600 + [third] * 600


async def test_a_slow_watch_misses_nothing(store: Store) -> None:
    async with store.watch(0) as slow:
        for index in range(50):
            await write(store, Put(A, str(index).encode()))
        await write(store, *(Put(Key("pods", "x", str(i)), b"1") for i in range(900)))
        last = await write(store, *(Put(Key("pods", "y", str(i)), b"1") for i in range(900)))
        events = await collect(slow, last)
    assert len(events) == 50 + 1800
    assert [e.record.value for e in events[:50] if e.record] == [str(i).encode() for i in range(50)]


async def test_many_watches_see_the_same(store: Store) -> None:
    async def follow(since: int) -> list[Event]:
        async with store.watch(since) as watch:
            return await collect(watch, 40)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(0)) for _ in range(5)]
        for index in range(40):
            await write(store, Put(Key("pods", "x", str(index % 7)), str(index).encode()))
    results = [task.result() for task in tasks]
    assert len(results[0]) == 40
    assert all(result == results[0] for result in results)


async def test_a_cancelled_next_loses_nothing(store: Store) -> None:
    async with store.watch(0) as watch, asyncio.TaskGroup() as group:
        waiting = group.create_task(watch.next())
        await store.get(A)
        waiting.cancel()
        revision = await write(store, Put(A, b"1"))
        events = await collect(watch, revision)
    assert [event.revision for event in events] == [revision]


async def test_a_watch_from_the_future_is_refused(store: Store) -> None:
    revision = await fill(store)
    with pytest.raises(BadRequest, match="future"):
        async with store.watch(revision + 1):
            pass


# -------------------------------------------------------------------- compaction


async def test_compaction_forgets_the_past_and_nothing_else(store: Store) -> None:
    first = await write(store, Put(A, b"1"))
    middle = await write(store, Put(A, b"2"), Put(B, b"1"))
    last = await write(store, Delete(B))
    await store.compact(middle)
    assert values((await store.list()).records) == {"a": b"2"}
    assert values((await store.list(revision=middle)).records) == {"a": b"2", "b": b"1"}
    with pytest.raises(Compacted):
        await store.list(revision=first)
    with pytest.raises(Compacted):
        async with store.watch(first) as watch:
            await watch.next()
    async with store.watch(middle) as watch:
        events = await collect(watch, last)
    assert events == [Event(last, B, None, Record(B, b"1", middle, middle))]


async def test_a_watch_left_behind_is_told_so(store: Store) -> None:
    async with store.watch(0) as watch:
        await write(store, Put(A, b"1"))
        revision = await write(store, Put(A, b"2"))
        await store.compact(revision)
        with pytest.raises(Compacted):
            await watch.next()


async def test_a_watch_at_the_end_survives_compaction(store: Store) -> None:
    revision = await fill(store)
    async with store.watch(revision) as watch:
        await store.compact(revision)
        last = await write(store, Put(A, b"2"))
        events = await collect(watch, last)
    assert [event.revision for event in events] == [last]


async def test_compaction_may_be_repeated_but_not_of_the_future(store: Store) -> None:
    revision = await fill(store)
    await store.compact(revision)
    await store.compact(revision)
    await store.compact(revision - 1)
    with pytest.raises(BadRequest, match="future"):
        await store.compact(revision + 1)
    assert store.revision == revision


# -------------------------------------------------------------------- the end


async def test_a_closed_store_is_unavailable(store: Store) -> None:
    await write(store, Put(A, b"1"))
    async with store.watch(store.revision) as watch, asyncio.TaskGroup() as group:
        waiting = group.create_task(_unavailable(watch))
        await store.get(A)
        await store.close()
        await waiting
    for attempt in (store.get(A), store.list(), store.txn((), ()), store.compact(1)):
        with pytest.raises(Unavailable, match="closed"):
            await attempt
    with pytest.raises(Unavailable):
        async with store.watch(0):
            pass
    await store.close()


async def _unavailable(watch: Watch) -> None:
    with pytest.raises(Unavailable):
        await watch.next()


async def test_what_was_accepted_before_close_is_done(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        writes = [
            group.create_task(write(store, Put(Key("pods", "x", str(i)), b"1"))) for i in range(20)
        ]
        await breathe()  # every write has begun
        await store.close()
    assert sorted(task.result() for task in writes) == list(range(1, 21))
