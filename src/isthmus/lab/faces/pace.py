"""Time, for programs that must stay small: `isthmus.aio` would add half to their memory."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Pace(Protocol):
    """The part of `isthmus.aio.Clock` that is needed here."""

    def now(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""


class RealPace:
    """The machine's own time."""

    def now(self) -> float:
        return time.monotonic()  # noqa: TID251  # see above

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251  # see above


def within(seconds: float) -> asyncio.Timeout:
    """`async with` it around what must end; TimeoutError if it does not."""
    return asyncio.timeout(seconds)  # noqa: TID251  # see above
