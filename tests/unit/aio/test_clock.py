from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from isthmus.aio import Clock, ManualClock, SystemClock, breathe


@pytest.mark.parametrize("make", [SystemClock, ManualClock])
def test_every_clock_tells_the_same_date_in_both_forms(make: Callable[[], Clock]) -> None:
    clock = make()
    before, date, after = clock.time(), clock.utc(), clock.time()
    assert date.tzinfo is UTC
    assert before <= date.timestamp() <= after


@pytest.mark.parametrize("make", [SystemClock, ManualClock])
async def test_a_sleep_of_nothing_returns_after_others_had_a_turn(
    make: Callable[[], Clock],
) -> None:
    clock, ran = make(), []
    asyncio.get_running_loop().call_soon(lambda: ran.append("other"))
    await clock.sleep(0)
    assert ran == ["other"]


async def test_the_system_clock_wakes_sleepers_and_rings_alarms_that_were_not_cancelled() -> None:
    clock, rung = SystemClock(), asyncio.Event()
    clock.call_later(0, lambda: pytest.fail("cancelled alarms do not ring")).cancel()
    started = clock.now()
    clock.call_later(0.001, rung.set)
    await rung.wait()
    await clock.sleep(0.001)
    assert clock.now() >= started + 0.002


def test_advance_rings_what_is_due_in_order_at_its_own_moment() -> None:
    clock, rung = ManualClock(), []

    def note(name: str) -> Callable[[], None]:
        return lambda: rung.append((name, clock.now()))

    clock.call_later(5, note("late"))
    clock.call_later(2, note("early"))
    clock.call_later(2, note("early, set second"))
    clock.call_later(3, note("cancelled")).cancel()
    clock.call_later(-1, note("already due"))
    clock.advance(4.5)
    assert rung == [("already due", 0.0), ("early", 2.0), ("early, set second", 2.0)]
    assert clock.now() == 4.5
    assert clock.waiting == 1
    clock.advance(0.5)
    assert rung[-1] == ("late", 5.0)


def test_an_alarm_set_by_an_alarm_rings_in_the_same_advance() -> None:
    clock, rung = ManualClock(), []

    def set_another() -> None:
        clock.call_later(1, lambda: rung.append(clock.now()))

    clock.call_later(1, set_another)
    clock.advance(10)
    assert rung == [2.0]


async def test_turn_lets_a_ticking_task_have_every_tick() -> None:
    clock, ticks = ManualClock(), []

    async def tick() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.now())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(tick())
        await clock.until_waiting(1)
        await clock.turn(35)
        task.cancel()
    assert ticks == [10, 20, 30]
    assert clock.now() == 35


async def test_a_cancelled_sleep_leaves_no_alarm() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clock.sleep(10))
        await clock.until_waiting(1)
        task.cancel()
    assert clock.waiting == 0


def test_the_date_moves_with_the_clock_and_jumps_without_it() -> None:
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    clock = ManualClock(start=start)
    clock.advance(90)
    assert clock.utc() == start + timedelta(seconds=90)
    clock.set_date(datetime(2020, 1, 1, tzinfo=UTC))
    assert clock.utc() == datetime(2020, 1, 1, tzinfo=UTC)
    assert clock.now() == 90


async def test_breathe_lets_others_run() -> None:
    ran = []
    asyncio.get_running_loop().call_soon(lambda: ran.append("other"))
    await breathe()
    assert ran == ["other"]
