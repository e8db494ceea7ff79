from __future__ import annotations

import asyncio

import pytest

from isthmus.aio import Batch, breathe


async def test_take_returns_all_that_waits_in_order() -> None:
    batch = Batch[int](10)
    for event in (1, 2, 3):
        assert batch.offer(event)
    assert len(batch) == 3
    assert await batch.take() == (1, 2, 3)
    assert len(batch) == 0


async def test_take_waits_for_the_first_event() -> None:
    batch = Batch[str](1)
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(batch.take())
        await breathe()
        assert not taking.done()
        await batch.put("a")
    assert taking.result() == ("a",)


async def test_a_full_batch_refuses_an_offer_and_holds_a_put_back() -> None:
    batch = Batch[int](2)
    await batch.put(1)
    await batch.put(2)
    assert not batch.offer(3)
    async with asyncio.TaskGroup() as group:
        putting = group.create_task(batch.put(3))
        await breathe()
        await breathe()
        assert not putting.done()
        assert await batch.take() == (1, 2)
    assert await batch.take() == (3,)


async def test_many_held_back_writers_never_pass_the_limit_and_lose_nothing() -> None:
    batch, taken = Batch[int](3), list[int]()
    async with asyncio.TaskGroup() as group:
        for event in range(50):
            group.create_task(batch.put(event))
        while len(taken) < 50:
            events = await batch.take()
            assert len(events) <= 3
            taken.extend(events)
    assert sorted(taken) == list(range(50))


async def test_after_the_end_the_rest_is_taken_and_then_nothing_for_ever() -> None:
    batch = Batch[int](5)
    batch.offer(1)
    batch.close()
    assert await batch.take() == (1,)
    assert await batch.take() == ()
    assert await batch.take() == ()


async def test_the_end_wakes_a_waiting_reader() -> None:
    batch = Batch[int](5)
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(batch.take())
        await breathe()
        batch.close()
    assert taking.result() == ()


def test_an_event_after_the_end_is_a_bug() -> None:
    batch = Batch[int](5)
    batch.close()
    with pytest.raises(RuntimeError, match="end"):
        batch.offer(1)


def test_a_batch_has_room_for_one_at_least() -> None:
    with pytest.raises(ValueError, match="not 0"):
        Batch[int](0)
