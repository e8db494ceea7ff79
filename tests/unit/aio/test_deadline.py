from __future__ import annotations

import asyncio

import pytest

from isthmus.aio import ManualClock, deadline
from isthmus.errors import DeadlineExceeded


async def forever(clock: ManualClock, seconds: float = 5) -> None:
    async with deadline(clock, seconds, "reading the body"):
        await asyncio.Event().wait()


async def test_what_ends_in_time_is_left_alone_and_leaves_no_alarm() -> None:
    clock = ManualClock()
    async with deadline(clock, 5, "reading the body"):
        pass
    assert clock.waiting == 0


async def test_what_does_not_end_is_cancelled_and_named() -> None:
    clock = ManualClock()
    waiting = asyncio.gather(forever(clock), return_exceptions=True)
    await clock.until_waiting(1)
    await clock.turn(4.9)
    assert not waiting.done()
    await clock.turn(0.1)
    (error,) = await waiting
    assert isinstance(error, DeadlineExceeded)
    assert str(error) == "reading the body: not done after 5 s"


async def test_a_cancellation_from_outside_stays_one() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(forever(clock))
        await clock.until_waiting(1)
        task.cancel()
        clock.advance(5)  # the time runs out while the cancellation is under way
    assert task.cancelled()


async def test_the_inner_of_two_deadlines_is_the_one_that_is_told() -> None:
    clock, caught = ManualClock(), []

    async def nested() -> None:
        async with deadline(clock, 10, "the whole"):
            try:
                await forever(clock, 1)
            except DeadlineExceeded as error:
                caught.append(str(error))
            await asyncio.Event().wait()

    waiting = asyncio.gather(nested(), return_exceptions=True)
    await clock.until_waiting(2)
    await clock.turn(1)
    assert caught == ["reading the body: not done after 1 s"]
    await clock.turn(9)
    (error,) = await waiting
    assert str(error) == "the whole: not done after 10 s"


async def test_an_error_inside_passes_through() -> None:
    clock = ManualClock()
    with pytest.raises(KeyError):
        async with deadline(clock, 5, "reading the body"):
            raise KeyError
    assert clock.waiting == 0
