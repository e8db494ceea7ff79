"""Time as table cells: a plan asks `due(db, moment)` and is made again when the moment passes.

The timekeeper writes one row per moment that some plan waits for. Moments below the FLOOR have all
passed, so rows can be forgotten, and after a restart nothing that passed meanwhile is waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from isthmus.aio import Alarm, Clock
from isthmus.engine import Change, Put, Table, View, query
from isthmus.engine import Delete as Drop
from isthmus.model.times import parse_seconds

DUE: Table[int, int] = Table("due")
FLOOR: Table[str, int] = Table("due_floor")

NEVER = 366 * 86_400.0
"""Seconds ahead of which nothing is expected; what would outlast us is not waited for."""

KEPT = 1000
"""Rows of DUE before they are folded into the floor."""


@query
def due(db: View, moment: int) -> bool:
    """Whether `moment` (seconds since the epoch) has passed."""
    if DUE.get(db, moment) is not None:
        return True
    floor = FLOOR.get(db, "")
    return floor is not None and moment <= floor


def seconds(timestamp: str) -> int:
    """The second of an RFC 3339 time; 0, long past, for text that is none."""
    return int(parse_seconds(timestamp) or 0)


Commit = Callable[[Iterable[Change]], object]
"""The database's commit."""


class Timekeeper:
    """Writes moments into the tables as they pass."""

    def __init__(self, commit: Commit, clock: Clock) -> None:
        self._commit = commit
        self._clock = clock
        self._alarms: dict[int, Alarm] = {}
        self._asked: Counter[int] = Counter()
        self._passed: list[int] = []

    def start(self) -> None:
        """Everything up to now has passed."""
        self._commit([Put(FLOOR, "", int(self._clock.time()))])

    def expect(self, moment: int) -> None:
        """Write the row when `moment` has passed; asked twice is rung once, and forgotten twice."""
        left = moment - self._clock.time()
        if left < NEVER:
            self._asked[moment] += 1
            if moment not in self._alarms:
                self._set(moment, left)

    def forget(self, moment: int) -> None:
        """Somebody who expected `moment` does not any more; no harm if it has passed."""
        if moment not in self._alarms:
            return
        self._asked[moment] -= 1
        if self._asked[moment] <= 0:
            self._take(moment).cancel()

    def stop(self) -> None:
        """Ring no more."""
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        self._asked.clear()

    def _set(self, moment: int, left: float) -> None:
        # A far moment is looked at again in a day: clocks are set, timers are bounded.
        wait = min(max(left, 0.0), 86_400.0)
        self._alarms[moment] = self._clock.call_later(wait, lambda: self._ring(moment))

    def _take(self, moment: int) -> Alarm:
        del self._asked[moment]
        return self._alarms.pop(moment)

    def _ring(self, moment: int) -> None:
        left = moment - self._clock.time()
        if left > 0:
            self._set(moment, left)
            return
        self._take(moment)
        self._passed.append(moment)
        if len(self._passed) <= KEPT:
            self._commit([Put(DUE, moment, moment)])
            return
        gone = [Drop(DUE, passed) for passed in self._passed]
        self._passed.clear()
        self._commit([Put(FLOOR, "", int(self._clock.time())), *gone])
