"""What a proxy counted a while ago: so that rates can be told without anybody who collects them."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final, NamedTuple

EVERY: Final = 10.0
"""Seconds between two pages that are kept."""

LONGEST: Final = 600.0
"""Seconds after which a page is forgotten."""

LARGEST: Final = 4 * 2**20
"""Bytes of all that is kept, compressed; of more, the oldest go."""


class Past(NamedTuple):
    """A page and its age in seconds."""

    age: float
    page: str


class History:
    """Pages of one proxy. Counters begin at nothing when it starts: that is the first of them."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, bytes]] = deque()
        self._bytes = 0

    def begin(self, now: float) -> None:
        """The proxy starts: what was counted before counts no more."""
        self._kept.clear()
        self._bytes = 0
        self._add(now, b"")

    def keep(self, now: float, page: str) -> None:
        """Keep a page."""
        self._add(now, zlib.compress(page.encode(), 1))
        while len(self._kept) > 1 and (
            self._bytes > LARGEST or now - self._kept[0][0] > LONGEST + EVERY
        ):
            _, gone = self._kept.popleft()
            self._bytes -= len(gone)

    def _add(self, now: float, page: bytes) -> None:
        self._kept.append((now, page))
        self._bytes += len(page)

    def before(self, now: float, seconds: float) -> Past:
        """The newest page of at least that age, else the oldest there is."""
        for at, page in reversed(self._kept):
            if now - at >= seconds:
                return self._past(now, at, page)
        at, page = self._kept[0] if self._kept else (now, b"")
        return self._past(now, at, page)

    @staticmethod
    def _past(now: float, at: float, page: bytes) -> Past:
        return Past(now - at, zlib.decompress(page).decode() if page else "")
