"""Counters that outlive what counted.

An Envoy forgets what a listener counted when it replaces it. People would see figures vanish, and
rates would miss what came last. So what was seen last is kept for a while, and added to what is
counted anew under the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

OURS: Final = "envoy_isthmus_"
KEPT: Final = 600.0
"""Seconds for which a counter that is gone is still told; the Envoy forgets idle ones as fast."""

MOST: Final = 200_000
"""Series of one proxy that are remembered."""


class _Total(msgspec.Struct):
    """`before` was counted by those that are gone, `last` is what was read last, and when."""

    before: float
    last: float
    seen: float


class Totals:
    """Those of one Envoy."""

    def __init__(self) -> None:
        self._known: dict[str, _Total] = {}

    def begin(self) -> None:
        """It starts anew: nothing was counted."""
        self._known.clear()

    def absorb(self, now: float, page: str) -> str:
        """The page with totals in the place of counts, also of what is gone."""
        lines = [self._told(now, line) for line in page.splitlines()]
        lines += self._gone(now)
        return "\n".join(lines)

    def _told(self, now: float, line: str) -> str:
        if not line.startswith(OURS):
            return line
        series, _, text = line.rpartition(" ")
        try:
            value = float(text)
        except ValueError:
            return line
        total = self._known.get(series)
        if total is None:
            if len(self._known) >= MOST:
                return line
            total = self._known[series] = _Total(0.0, 0.0, now)
        if value < total.last:
            total.before += total.last
        total.last, total.seen = value, now
        return f"{series} {total.before + value}"

    def _gone(self, now: float) -> Iterator[str]:
        for series, total in list(self._known.items()):
            if total.seen == now:
                continue
            if now - total.seen > KEPT:
                del self._known[series]
            else:
                # Whatever counts under this name from now on begins at nothing.
                total.before, total.last = total.before + total.last, 0.0
                yield f"{series} {total.before}"
