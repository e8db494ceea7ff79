"""A clock that stands still until somebody turns it: for tests and replays.

clock = ManualClock()
...start a task that does `await clock.sleep(30)`...
await clock.until_waiting(1)     # the task has come to its sleep
await clock.turn(30)             # it wakes now
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from isthmus.aio.clock import breathe

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 50
"""Turns that woken tasks get before the clock moves on: chains of wakes longer than this, and
whatever real sockets or threads bring, must be awaited by the test itself."""


class _Alarm:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class ManualClock:
    """A `Clock` turned by hand: `turn` for tasks, `advance` where no loop runs."""

    def __init__(self, *, start: datetime = NEW_YEAR) -> None:
        self._now = 0.0
        self._start = start
        self._order = 0  # alarms for the same moment ring in the order they were set
        self._alarms: list[tuple[float, int, _Alarm]] = []

    def now(self) -> float:
        return self._now

    def time(self) -> float:
        return self.utc().timestamp()

    def utc(self) -> datetime:
        return self._start + timedelta(seconds=self._now)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await breathe()
            return
        woken = asyncio.Event()
        alarm = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            alarm.cancel()

    def call_later(self, seconds: float, call: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(call)
        self._order += 1
        heapq.heappush(self._alarms, (self._now + max(0.0, seconds), self._order, alarm))
        return alarm

    @property
    def waiting(self) -> int:
        """How many alarms and sleeps are not over yet."""
        return sum(alarm.call is not None for _, _, alarm in self._alarms)

    async def until_waiting(self, count: int) -> None:
        """Let tasks run until at least `count` alarms and sleeps wait for this clock."""
        while self.waiting < count:
            await breathe()

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`, making every call that falls due, in order; runs no task."""
        end = self._now + seconds
        while self._ring_next(end):
            pass
        self._now = end

    async def turn(self, seconds: float) -> None:
        """Move on by `seconds`; after each alarm let woken tasks run, and set new alarms."""
        end = self._now + seconds
        await self._settle()
        while self._ring_next(end):
            await self._settle()
        self._now = end

    def set_date(self, date: datetime) -> None:
        """Let the wall clock jump to `date`, as an administrator's would; `now` goes on."""
        self._start = date - timedelta(seconds=self._now)

    def _ring_next(self, end: float) -> bool:
        while self._alarms and self._alarms[0][0] <= end:
            due, _, alarm = heapq.heappop(self._alarms)
            call, alarm.call = alarm.call, None
            if call is not None:
                self._now = max(self._now, due)
                call()
                return True
        return False

    async def _settle(self) -> None:
        for _ in range(ROUNDS):
            await breathe()
