"""Failures on request: slowness, errors, errors that stick, and a limit on the rate. No I/O.

Fractions are per cent and mean what they say: 30 fails 30 of 100 requests, 100 all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from random import Random
from typing import Final, NamedTuple

STUCK: Final = 30.0
"""Seconds without a request after which a latched process recovers."""
_SECONDS: Final = 10
"""Buckets of one second over which the rate is measured."""
_LEAST_RATE: Final = 0.1


class Plan(NamedTuple):
    """What is asked for. `delays` are in seconds, of which each request waits one."""

    delays: tuple[float, ...] = ()
    errors: int = 0
    latches: int = 0
    most_rate: float = 0.0


def plan(env: Mapping[str, str]) -> Plan:
    """From DELAY_BUCKETS (ms), ERROR_FRACTION, LATCH_FRACTION and MAX_RATE; junk counts as none."""
    rate = _number(env.get("MAX_RATE", "")) or 0.0
    return Plan(
        delays=tuple(_delays(env.get("DELAY_BUCKETS", "").split(","))),
        errors=_fraction(env.get("ERROR_FRACTION", "")),
        latches=_fraction(env.get("LATCH_FRACTION", "")),
        most_rate=rate if rate >= _LEAST_RATE else 0.0,
    )


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 1e9 else None


def _delays(texts: Iterable[str]) -> Iterable[float]:
    for text in texts:
        found = _number(text)
        if found is not None:
            yield max(0.0, found) / 1000


def _fraction(text: str) -> int:
    return int(min(100.0, max(0.0, _number(text) or 0.0)))


class Fate(Enum):
    """What becomes of a request."""

    SERVED = "served"
    FAILED = "failed"
    STUCK = "stuck"
    LIMITED = "limited"


class Turn(NamedTuple):
    """The fate of one request: wait `delay` seconds first, whatever it is. `why` is for people."""

    fate: Fate
    delay: float
    why: str


class Trouble:
    """Decides request by request. `now` is in seconds, of any clock that does not go back."""

    def __init__(self, asked: Plan, random: Random) -> None:
        self._plan = asked
        self._random = random
        self._latched = False
        self._last = 0.0
        self._served: dict[int, int] = {}

    def turn(self, now: float) -> Turn:
        """The next request's fate."""
        if self._latched and now - self._last > STUCK:
            self._latched = False
        self._last = now
        fate, why = self._fate(now)
        if fate is not Fate.LIMITED:
            self._count(now)
        delays = self._plan.delays
        return Turn(fate, self._random.choice(delays) if delays else 0.0, why)

    def _fate(self, now: float) -> tuple[Fate, str]:
        limit, rate = self._plan.most_rate, self.rate(now)
        if limit and rate >= limit:
            return Fate.LIMITED, f"Rate limited ({rate:.1f} RPS > max {limit:.1f} RPS)"
        if self._latched:
            return Fate.STUCK, "Latched into error state"
        if self._random.randrange(100) >= self._plan.errors:
            return Fate.SERVED, ""
        why = f"error fraction {self._plan.errors}%"
        if self._random.randrange(100) < self._plan.latches:
            self._latched = True
            return Fate.STUCK, f"{why}, and latched"
        return Fate.FAILED, why

    def _count(self, now: float) -> None:
        second = int(now)
        self._served[second] = self._served.get(second, 0) + 1
        for old in [each for each in self._served if each <= second - _SECONDS]:
            del self._served[old]

    def rate(self, now: float) -> float:
        """Requests a second that got through, over ten seconds."""
        first = int(now) - _SECONDS
        return sum(count for second, count in self._served.items() if second > first) / _SECONDS

    def rate_text(self, now: float) -> str:
        """The rate for people; `N/A` where none is limited."""
        return f"{self.rate(now):.1f} RPS" if self._plan.most_rate else "N/A"
