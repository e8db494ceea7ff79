"""A bounded buffer for events, none of which may be skipped."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Batch(Generic[T]):
    """Events on their way from writers to one reader, who takes all that wait at once.

    A full batch holds `put` back; `offer` instead refuses, for writers that must not wait and
    rather end a reader that is too slow. `limit` is a number of events.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            msg = f"a batch holds at least one event, not {limit}"
            raise ValueError(msg)
        self._limit = limit
        self._events: list[T] = []
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._events)

    def offer(self, event: T) -> bool:
        """Add the event if there is room; say whether it was added."""
        if self._closed:
            msg = "an event after the end of its batch"
            raise RuntimeError(msg)
        if len(self._events) >= self._limit:
            self._room.clear()
            return False
        self._events.append(event)
        self._some.set()
        return True

    async def put(self, event: T) -> None:
        """Add the event, waiting for room."""
        while not self.offer(event):
            await self._room.wait()

    async def take(self) -> tuple[T, ...]:
        """All events that wait, oldest first; waits for one. Empty only at the end."""
        while not self._events and not self._closed:
            self._some.clear()
            await self._some.wait()
        events, self._events = tuple(self._events), []
        self._room.set()
        return events

    def close(self) -> None:
        """Say that no more events come: the reader takes the rest, then an empty tuple."""
        self._closed = True
        self._some.set()
