"""From two pages of metrics to what happened between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from isthmus.agent.metrics import Sample, read
from isthmus.errors import UserFault

AGE: Final = "# AGE "
_SHORTEST: Final = 1.0
"""Seconds that a window has at least, for rates."""

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST: Final = 600.0
"""Seconds that proxies look back at most."""


class Change(NamedTuple):
    """A series: how much it grew, and by how much a second."""

    name: str
    labels: Mapping[str, str]
    grown: float
    rate: float


def changes(now: str, before: str) -> Iterator[Change]:
    """What grew between two pages of one proxy, the older of which says how old it is.

    A counter that fell began anew: the proxy was started again.
    """
    seconds = max(_age(before), _SHORTEST)
    old = {(one.name, one.labels): one.value for one in read(before)}
    for one in read(now):
        grown = _grown(one, old.get((one.name, one.labels), 0.0))
        if grown > 0:
            yield Change(one.name, dict(one.labels), grown, grown / seconds)


def _grown(one: Sample, old: float) -> float:
    return one.value - old if one.value >= old else one.value


def _age(page: str) -> float:
    first, _, _ = page.partition("\n")
    if not first.startswith(AGE):
        return 0.0
    try:
        return float(first.removeprefix(AGE))
    except ValueError:
        return 0.0


def duration(text: str) -> float:
    """`30s`, `1m` in seconds.

    Raises:
        UserFault: it is no such thing, or too long.
    """
    for unit, size in UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.replace(".", "", 1).isdecimal():
            seconds = float(number) * size
            if not 0 < seconds <= LONGEST:
                raise UserFault(f"a window of {text} is not between 0 and {LONGEST / 60:.0f}m")
            return seconds
    raise UserFault(f"{text!r} is no duration; write 30s or 1m")


class Histogram:
    """Buckets of one or more series, in seconds."""

    def __init__(self) -> None:
        self._buckets: dict[float, float] = {}

    def add(self, bound: str, value: float) -> None:
        """Add to a bucket, which counts all below its bound."""
        at = float(bound)
        self._buckets[at] = self._buckets.get(at, 0.0) + value

    def quantile(self, portion: float) -> float:
        """In milliseconds, as Prometheus estimates it; NaN where nothing was counted."""
        bounds = sorted(self._buckets)
        total = self._buckets[bounds[-1]] if bounds else 0.0
        if not total:
            return math.nan
        rank, low, below = portion * total, 0.0, 0.0
        for bound in bounds:
            count = self._buckets[bound]
            if count >= rank:
                if math.isinf(bound):
                    return low * 1000
                part = (rank - below) / (count - below) if count > below else 1.0
                return (low + (bound - low) * part) * 1000
            low, below = bound, count
        return low * 1000


def share(part: float, whole: float) -> float:
    """NaN where there is no whole."""
    return part / whole if whole else math.nan


def rounded(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return None if math.isnan(value) else value
