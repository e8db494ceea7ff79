"""An engine Watch that can be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ParamSpec, Self

from isthmus.aio import Clock, breathe
from isthmus.engine import Database, Query

P = ParamSpec("P")

SLICE = 0.003
"""Seconds of evaluation before other tasks get a turn."""


class Subscription:
    """Many cells, one owner, newest values: `async with board.subscribe() as sub`.

    `add` and `drop` name cells at any time; `next` waits until some of them differ from what was
    told last and returns those alone, all of one revision. A slow owner skips what was in between.
    Leaving the block releases every cell.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._clock = clock
        self._woken = asyncio.Event()
        self._watch = database.watch(self._woken.set)
        self._busy = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.close()

    def add(self, query: Query[P, object], /, *key: P.args, **named: P.kwargs) -> None:
        """Watch `query(db, *key)` from now on; its value is told by the next `next`."""
        self._watch.add(query, *key, **named)

    def drop(self, query: Query[P, object], /, *key: P.args, **named: P.kwargs) -> None:
        """Stop watching; the cell goes when nobody else reads it."""
        self._watch.drop(query, *key, **named)

    @property
    def woken(self) -> bool:
        """Whether a cell may differ from what was told, or was added and not told yet."""
        return self._woken.is_set()

    async def next(self) -> Mapping[tuple[Any, ...], Any]:
        """What changed since the last call: (query, *key) -> value. Never empty."""
        if self._busy:
            msg = "a subscription has one owner: two tasks await next()"
            raise RuntimeError(msg)
        self._busy = True
        try:
            while not (changes := await self._take()):
                pass
        finally:
            self._busy = False
        return changes

    async def settled(self) -> Mapping[tuple[Any, ...], Any]:
        """As `next`, but may be empty: cells were added or changed, and told nothing new.

        So the owner learns that all it has added is up to date; a cell not told of so far fails.
        """
        if self._busy:
            msg = "a subscription has one owner: two tasks await settled()"
            raise RuntimeError(msg)
        self._busy = True
        try:
            return await self._take()
        finally:
            self._busy = False

    async def _take(self) -> Mapping[tuple[Any, ...], Any]:
        await self._woken.wait()
        while not self._settle():
            await breathe()
        # Only now, without a pause before `take`: an owner cancelled in between stays woken.
        self._woken.clear()
        return self._watch.take()

    def _settle(self) -> bool:
        end = self._clock.now() + SLICE
        return self._watch.settle(lambda: self._clock.now() < end)
