from __future__ import annotations

import asyncio
from random import Random

import pytest

from isthmus.aio import Backoff, ManualClock, supervise
from isthmus.aio.supervise import describe, foreseen
from isthmus.errors import Unavailable
from tests.support.log import ListLog

STEADY = Backoff(first=1, factor=2, most=8, jitter=0, settled=100)


class Flaky:
    """Fails as it is told, then waits until cancelled; notes when it was started."""

    def __init__(self, clock: ManualClock, *errors: Exception, lasts: float = 0) -> None:
        self.clock = clock
        self.errors = list(errors)
        self.lasts = lasts
        self.starts: list[float] = []

    async def run(self) -> None:
        self.starts.append(self.clock.now())
        if not self.errors:
            await asyncio.Event().wait()
        await self.clock.sleep(self.lasts)
        raise self.errors.pop(0)


async def starts_of(
    flaky: Flaky, log: ListLog, *, turn: float, backoff: Backoff = STEADY
) -> list[float]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            supervise("flaky", flaky.run, clock=flaky.clock, random=Random(1), log=log,
                      backoff=backoff)
        )  # fmt: skip
        await flaky.clock.turn(turn)
        task.cancel()
    return flaky.starts


async def test_pauses_double_up_to_the_most() -> None:
    flaky = Flaky(ManualClock(), *(Unavailable("no") for _ in range(6)))
    assert await starts_of(flaky, ListLog(), turn=100) == [0, 1, 3, 7, 15, 23, 31]


async def test_a_run_that_lasted_starts_the_pauses_anew() -> None:
    flaky = Flaky(ManualClock(), *(OSError("gone") for _ in range(3)), lasts=100)
    assert await starts_of(flaky, ListLog(), turn=1000) == [0, 101, 202, 303]


async def test_each_failure_is_logged_with_a_traceback_only_if_it_is_a_bug() -> None:
    bug, log = ZeroDivisionError("oops"), ListLog()
    await starts_of(Flaky(ManualClock(), Unavailable("no"), bug), log, turn=10)
    first, second = log.lines
    assert (first.level, first.event) == ("warning", "restarting")
    assert first.fields == {
        "task": "flaky", "error": "Unavailable: no", "failures": 1, "pause": 1, "exc_info": None,
    }  # fmt: skip
    assert second.fields["exc_info"] is bug
    assert second.fields["failures"] == 2


async def test_a_return_ends_it() -> None:
    clock = ManualClock()

    async def run() -> None:
        await clock.sleep(0)

    await supervise("once", run, clock=clock, random=Random(1), log=ListLog())


async def test_what_is_no_exception_passes_through() -> None:
    clock = ManualClock()

    async def run() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await supervise("once", run, clock=clock, random=Random(1), log=ListLog())


@pytest.mark.parametrize("failures", [1, 3, 50, 100_000])
def test_a_pause_varies_within_its_jitter(failures: int) -> None:
    backoff, random = Backoff(first=1, factor=2, most=30, jitter=0.25), Random(7)
    middle = min(30.0, 2.0 ** min(failures - 1, 64))
    pauses = [backoff.pause(failures, random) for _ in range(100)]
    assert all(0.75 * middle <= pause <= 1.25 * middle for pause in pauses)
    assert len(set(pauses)) == 100


def test_a_group_is_foreseen_if_all_its_members_are_and_is_told_in_one_line() -> None:
    group = ExceptionGroup("two", [Unavailable("no"), ExceptionGroup("one", [OSError("gone")])])
    assert foreseen(group)
    assert not foreseen(ExceptionGroup("two", [Unavailable("no"), KeyError("x")]))
    assert describe(group) == "Unavailable: no; OSError: gone"
    assert describe(KeyError()) == "KeyError"
