from __future__ import annotations

import asyncio

import pytest

from isthmus.aio import race, together
from isthmus.errors import PeerFault, Unavailable


async def never() -> None:
    await asyncio.Event().wait()


async def after(turns: int, value: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)  # noqa: TID251  # turns of the loop
    return value


async def failing(turns: int, error: Exception) -> int:
    await after(turns, 0)
    raise error


async def failing_when_cancelled(error: Exception) -> None:
    try:
        await never()
    finally:
        raise error


async def test_the_first_decides_and_the_others_end() -> None:
    ended = asyncio.Event()

    async def other() -> None:
        try:
            await never()
        finally:
            ended.set()

    assert await race(after(3, 7), other(), after(1, 8)) == 7
    assert ended.is_set()
    assert await race(after(0, 7)) == 7


async def test_the_first_failure_ends_all_and_comes_alone() -> None:
    with pytest.raises(Unavailable, match="it"):
        await race(never(), never(), failing(2, Unavailable("it")))
    with pytest.raises(PeerFault, match="first"):
        await race(failing(1, PeerFault("first")), failing(9, Unavailable("second")))
    with pytest.raises(Unavailable, match="last words"):
        await race(after(1, 1), failing_when_cancelled(Unavailable("last words")))


async def test_together_returns_all_in_order() -> None:
    assert await together(after(3, 1), after(1, 2)) == [1, 2]
    assert await together() == []
    with pytest.raises(Unavailable, match="it"):
        await together(after(9, 1), failing(1, Unavailable("it")))


async def test_a_failure_leaves_no_cancellation_behind() -> None:
    me = asyncio.current_task()
    assert me is not None
    for _ in range(3):
        with pytest.raises(Unavailable):
            await race(never(), failing(1, Unavailable("it")))
        with pytest.raises(Unavailable):
            await together(after(5, 1), failing(1, Unavailable("it")))
    assert me.cancelling() == 0


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancellation_in_the_moment_of_a_failure_is_not_lost(turns: int) -> None:
    async def run() -> None:
        error = Unavailable("now")
        while True:
            with pytest.raises(Unavailable):
                await race(never(), failing_when_cancelled(error), failing(3, error))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await after(turns, 0)
        task.cancel()
    assert task.cancelled()
