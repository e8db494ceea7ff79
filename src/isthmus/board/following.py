"""One watched cell whose news are told by a call, without a task that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from isthmus.aio import Clock
from isthmus.board.subscription import SLICE
from isthmus.engine import Database, Query


class Following:
    """Calls `told(value)` from the event loop whenever a cell's value has changed, newest only.

    It begins with the value of now. The cell is brought up to date in slices, other callbacks of
    the loop in between; a query that fails tells nothing. Nobody is told after `close`.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        told: Callable[[Any], None],
        query: Query[..., Any],
        *key: Any,  # noqa: ANN401  # any key
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._told = told
        self._look: asyncio.Handle | None = None
        self._watch = database.watch(self._wake)
        self._watch.add(query, *key)

    def close(self) -> None:
        """Tell nothing any more, and let the cell go."""
        if self._look is not None:
            self._look.cancel()
        self._watch.close()

    def catch_up(self) -> None:
        """Tell now what a pending call would tell a little later."""
        if self._look is not None:
            self._look.cancel()
            self._tell()

    def _wake(self) -> None:
        self._look = self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        end = self._clock.now() + SLICE
        if self._watch.settle(lambda: self._clock.now() < end):
            self._tell()
        else:
            self._wake()

    def _tell(self) -> None:
        self._look = None
        for value in self._watch.take().values():
            self._told(value)
