"""How much of the past a local store keeps by itself."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from isthmus.aio import Clock, SystemClock
from isthmus.store.timeline import Timeline

SYSTEM_CLOCK: Final = SystemClock()


class History(NamedTuple):
    """What a watcher that was away, or a list in pages, may rely on.

    Kept are at least `revisions` revisions, and everything younger than `seconds`; but never more
    than `bytes` that only history needs.
    """

    revisions: int = 10_000
    seconds: float = 300.0
    bytes: int = 64 * 1024 * 1024


HISTORY: Final = History()


class Keeper:
    """Says up to where a timeline may forget.

    It moves in steps, because each is a pass over the log.
    """

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        # (when, the newest revision then): about eleven marks over `seconds`.
        self._marks: deque[tuple[float, int]] = deque()

    @property
    def marks(self) -> int:
        """How many moments are remembered."""
        return len(self._marks)

    def floor(self, timeline: Timeline) -> int:
        """The floor to compact to; the present one if there is nothing worth forgetting."""
        self._mark(timeline.revision)
        kept = timeline.revision - timeline.floor
        if timeline.superseded > self._history.bytes:
            return timeline.revision - kept // 2
        if kept <= self._history.revisions + self._history.revisions // 10:
            return timeline.floor
        old = self._marks[0][1] if self._aged() else 0
        return max(timeline.floor, min(old, timeline.revision - self._history.revisions))

    def _mark(self, revision: int) -> None:
        now = self._clock.now()
        if not self._marks or now - self._marks[-1][0] >= self._history.seconds / 10:
            self._marks.append((now, revision))
        while len(self._marks) > 1 and now - self._marks[1][0] >= self._history.seconds:
            self._marks.popleft()

    def _aged(self) -> bool:
        return self._clock.now() - self._marks[0][0] >= self._history.seconds
