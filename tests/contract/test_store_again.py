"""What a durable store still knows when it is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import Compacted
from isthmus.store import (
    Delete,
    Put,
    Record,
)
from tests.contract.asking import A, B, C, collect, values, write
from tests.contract.stores import DURABLE, Opener


@pytest.fixture(params=list(DURABLE.values()), ids=list(DURABLE))
def durable(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.param
    return opener


async def test_an_opened_again_store_goes_on(durable: Opener, tmp_path: Path) -> None:
    async with durable(tmp_path) as store:
        first = await write(store, Put(A, b"1"), Put(C, b"1"))
        await write(store, Put(A, b"2"))
        last = await write(store, Delete(C))
        held = (await store.list()).records
    async with durable(tmp_path) as store:
        assert store.revision == last
        assert (await store.list()).records == held
        assert values((await store.list(revision=first)).records) == {"a": b"1", "c": b"1"}
        assert await write(store, Put(B, b"1")) > last


async def test_a_watch_resumes_over_a_restart(durable: Opener, tmp_path: Path) -> None:
    async with durable(tmp_path) as store:
        async with store.watch(0) as watch:
            first = await write(store, Put(A, b"1"))
            seen = await collect(watch, first)
        await write(store, Put(A, b"2"), Put(B, b"1"))
        await write(store, Delete(B))
        async with store.watch(first) as watch:
            expected = await collect(watch, store.revision)
    async with durable(tmp_path) as store, store.watch(seen[-1].revision) as watch:
        assert await collect(watch, store.revision) == expected


async def test_the_revision_does_not_go_back_after_all_is_deleted_and_forgotten(
    durable: Opener, tmp_path: Path
) -> None:
    async with durable(tmp_path) as store:
        await write(store, Put(A, b"1"))
        last = await write(store, Delete(A))
        await store.compact(last)
    async with durable(tmp_path) as store:
        assert store.revision == last
        assert (await store.list()).records == ()
        with pytest.raises(Compacted):
            await store.list(revision=last - 1)
        assert await write(store, Put(A, b"1")) > last
        assert await store.get(A) == Record(A, b"1", last + 1, last + 1)


async def test_compaction_lasts_over_a_restart(durable: Opener, tmp_path: Path) -> None:
    async with durable(tmp_path) as store:
        await write(store, Put(A, b"1"), Put(B, b"1"), Put(C, b"1"))
        middle = await write(store, Put(A, b"2"), Delete(C))
        await write(store, Put(A, b"3"))
        last = await write(store, Delete(B))
        await store.compact(middle)
        async with store.watch(middle) as watch:
            expected = await collect(watch, last)
        state = (await store.list(revision=middle)).records
    async with durable(tmp_path) as store:
        assert (await store.list(revision=middle)).records == state
        with pytest.raises(Compacted):
            await store.list(revision=middle - 1)
        async with store.watch(middle) as watch:
            assert await collect(watch, last) == expected
