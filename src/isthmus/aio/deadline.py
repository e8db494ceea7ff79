"""Every wait has an end."""

from __future__ import annotations

import asyncio
from types import TracebackType

from isthmus.aio.clock import Alarm, Clock
from isthmus.errors import DeadlineExceeded


class Deadline:
    """What `deadline` returns. Cancels the task inside its block when the time is over.

    The cancellation is told apart from one that comes from outside by the task's own count of
    cancellations, so a task that is cancelled while its time runs out still ends as cancelled.
    """

    def __init__(self, clock: Clock, seconds: float, what: str) -> None:
        self._clock = clock
        self._seconds = seconds
        self._what = what
        self._rang = False
        self._before = 0
        self._task: asyncio.Task[object] | None = None
        self._alarm: Alarm | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101  # an `async with` runs in a task
        self._before = self._task.cancelling()
        self._alarm = self._clock.call_later(self._seconds, self._ring)

    def _ring(self) -> None:
        self._rang = True
        if self._task is not None:
            self._task.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if not self._rang or self._task is None:
            return
        ours_alone = self._task.uncancel() <= self._before
        if ours_alone and kind is not None and issubclass(kind, asyncio.CancelledError):
            message = f"{self._what}: not done after {self._seconds:g} s"
            raise DeadlineExceeded(message) from error


def deadline(clock: Clock, seconds: float, what: str) -> Deadline:
    """Limit the time of a block.

    `async with` it around what must end: after `seconds` by `clock` the block is cancelled, and
    the error says that `what` ("reading the body") was not done.

    Raises:
        DeadlineExceeded: the block was not done in time; whether its work happened is not known.
    """
    return Deadline(clock, seconds, what)
