"""Time as a parameter. Only this module reads the machine's clocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Alarm(Protocol):
    """A call that was arranged for later."""

    def cancel(self) -> None:
        """Do not make the call; harmless when it was made already."""


class Clock(Protocol):
    """Where everything that waits or dates things gets its time from.

    Intervals are measured with `now`, which never goes back; dates are written with `utc` or
    `time`, which jump when the machine's clock is set. All units are seconds.
    """

    def now(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    def time(self) -> float:
        """Seconds since 1970-01-01 UTC."""

    def utc(self) -> datetime:
        """The date and time, aware, in UTC."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; at once, but after other tasks had a turn, if not positive."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Have the running loop make `call` after `seconds`."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    def utc(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def call_later(self, seconds: float, call: Callable[[], None]) -> Alarm:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), call)


async def breathe() -> None:
    """Let the loop's other tasks run once: for long work that is cut into slices."""
    await asyncio.sleep(0)
