from __future__ import annotations

import asyncio

import pytest

from isthmus.aio import Latest, breathe


async def test_a_watch_tells_the_present_value_at_once_and_then_each_newer_one() -> None:
    cell = Latest(1)
    with cell.watch() as watch:
        assert await watch.next() == 1
        assert cell.set(2)
        assert await watch.next() == 2


async def test_a_waiting_watch_is_woken() -> None:
    cell = Latest("a")
    with cell.watch() as watch:
        await watch.next()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(watch.next())
            await breathe()
            assert not waiting.done()
            cell.set("b")
    assert waiting.result() == "b"


async def test_a_slow_watcher_skips_to_the_newest() -> None:
    cell = Latest(0)
    with cell.watch() as watch:
        await watch.next()
        for value in range(1, 1000):
            cell.set(value)
        assert await watch.next() == 999


async def test_there_and_back_again_tells_nothing() -> None:
    cell = Latest("a")
    with cell.watch() as watch:
        await watch.next()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(watch.next())
            await breathe()
            cell.set("b")
            cell.set("a")
            await breathe()
            await breathe()
            assert not waiting.done()
            cell.set("c")
    assert waiting.result() == "c"


def test_an_equal_value_is_no_change_and_keeps_the_old_object() -> None:
    held = ["a"]
    cell = Latest(held)
    assert not cell.set(["a"])
    assert cell.value is held


async def test_watchers_do_not_disturb_each_other() -> None:
    cell = Latest(0)
    with cell.watch() as quick, cell.watch() as slow:
        assert (await quick.next(), await slow.next()) == (0, 0)
        cell.set(1)
        assert await quick.next() == 1
        cell.set(2)
        assert (await quick.next(), await slow.next()) == (2, 2)


async def test_a_watch_counts_only_inside_its_block() -> None:
    cell = Latest(0)
    watch = cell.watch()
    with pytest.raises(RuntimeError, match="outside"):
        await watch.next()
    with watch:
        assert await watch.next() == 0
    with pytest.raises(RuntimeError, match="outside"):
        await watch.next()
