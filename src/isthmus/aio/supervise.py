"""What may fail and start again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Protocol

import msgspec

from isthmus.aio.clock import Clock
from isthmus.errors import IsthmusError


class Log(Protocol):
    """The part of a structlog logger that this room uses."""

    def info(self, event: str, /, **fields: object) -> object:
        """An event with fields."""

    def warning(self, event: str, /, **fields: object) -> object:
        """An event with fields."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before trying again. Times are in seconds."""

    first: float = 0.2
    factor: float = 2.0
    most: float = 30.0
    jitter: float = 0.2
    """Share by which a pause varies to either side, so that many do not return at once."""
    settled: float = 60.0
    """A run that lasted this long was healthy: the next pause is the first one again."""

    def pause(self, failures: int, random: Random) -> float:
        """The pause after so many failures in a row, one or more."""
        # The exponent is bounded: 2.0 ** 5000 is an OverflowError.
        grown = self.first * self.factor ** min(failures - 1, 64)
        return min(self.most, grown) * random.uniform(1 - self.jitter, 1 + self.jitter)


DEFAULT_BACKOFF = Backoff()


async def supervise(
    name: str,
    run: Callable[[], Awaitable[None]],
    *,
    clock: Clock,
    random: Random,
    log: Log,
    backoff: Backoff = DEFAULT_BACKOFF,
) -> None:
    """Run `run` until it returns, or this is cancelled; after a failure run it again.

    Each failure is logged once, with its traceback unless it is of a kind that was foreseen
    (`IsthmusError`, `OSError`), and followed by a pause.
    """
    failures = 0
    while True:
        started = clock.now()
        try:
            await run()
        except Exception as error:  # this is the place that failures end at
            lasted = clock.now() - started
            failures = 1 if lasted >= backoff.settled else failures + 1
            pause = backoff.pause(failures, random)
            log.warning(
                "restarting",
                task=name,
                error=describe(error),
                failures=failures,
                pause=round(pause, 3),
                exc_info=None if foreseen(error) else error,
            )
            await clock.sleep(pause)
        else:
            return


def foreseen(error: BaseException) -> bool:
    """Whether the error, or everything in the group, says by its type that it is no bug."""
    if isinstance(error, BaseExceptionGroup):
        return all(foreseen(inner) for inner in error.exceptions)
    return isinstance(error, (IsthmusError, OSError))


def describe(error: BaseException) -> str:
    """One line for a log: the type and what it says; of a group, its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
