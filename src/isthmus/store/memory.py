"""The store that lasts as long as its process: tests, labs, caches of other clusters."""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.aio import Clock
from isthmus.store.contract import Committed, Compare, Op, Refused, examine
from isthmus.store.decide import decide
from isthmus.store.history import HISTORY, SYSTEM_CLOCK, History
from isthmus.store.local import Local
from isthmus.store.timeline import Timeline


class Memory(Local):
    """See `contract.Store`. Nothing is durable; everything else holds."""

    def __init__(self, *, history: History = HISTORY, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(Timeline(), history, clock)

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Committed | Refused:
        self._require_open()
        examine(compares, ops)
        done = decide(self._timeline.live, compares, ops, self.revision + 1)
        if isinstance(done, Refused):
            return done
        self._land(done)
        return Committed(self.revision)

    async def compact(self, revision: int) -> None:
        self._require_open()
        self._timeline.compact(revision)

    async def close(self) -> None:
        self._closed = True
        self._wake()
