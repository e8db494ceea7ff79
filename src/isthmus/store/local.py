"""What the stores of this process share: reading a Timeline, watching it, forgetting in time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from isthmus.aio import Clock
from isthmus.errors import Unavailable
from isthmus.model.key import Key
from isthmus.store.contract import Batch, Committed, Compare, Event, Op, Page, Record, Refused
from isthmus.store.history import History, Keeper
from isthmus.store.timeline import Timeline


class Local(ABC):
    """A store whose records all fit in this process's memory; sub-classes say how writes last."""

    def __init__(self, timeline: Timeline, history: History, clock: Clock) -> None:
        self._timeline = timeline
        self._keeper = Keeper(history, clock)
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def revision(self) -> int:
        return self._timeline.revision

    @property
    def floor(self) -> int:
        """The oldest revision that can still be read."""
        return self._timeline.floor

    @property
    def superseded(self) -> int:
        """Bytes that are kept for history alone, about."""
        return self._timeline.superseded

    async def get(self, key: Key) -> Record | None:
        self._require_open()
        return self._timeline.live.get(key)

    async def list(
        self,
        resource: str = "",
        namespace: str = "",
        *,
        revision: int = 0,
        after: Key | None = None,
        limit: int = 0,
    ) -> Page:
        self._require_open()
        return self._timeline.page(resource, namespace, revision=revision, after=after, limit=limit)

    @abstractmethod
    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Committed | Refused: ...

    @asynccontextmanager
    async def watch(self, since: int) -> AsyncIterator[Cursor]:
        self._require_open()
        self._timeline.check(since)
        yield Cursor(self, since)

    @abstractmethod
    async def compact(self, revision: int) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    # ---------------------------------------------------------------- for sub-classes and cursors

    def _land(self, events: Sequence[Event]) -> None:
        """Show durable transactions to readers and watchers."""
        if events:
            self._timeline.apply(events)
            self._timeline.compact(self._keeper.floor(self._timeline))
            self._wake()

    def _wake(self) -> None:
        # Each waiter holds the event that was current when it began to wait; nobody resets it.
        self._changed.set()
        self._changed = asyncio.Event()

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    async def _after(self, revision: int) -> Batch:
        """The changes after `revision`, waiting for one."""
        while True:
            self._require_open()
            changed = self._changed
            batch = self._timeline.since(revision)
            if batch.events:
                return batch
            await changed.wait()


class Cursor:
    """A `Watch`: a place in the log. Nothing is queued for it, however slow it is."""

    def __init__(self, store: Local, since: int) -> None:
        self._store = store
        self._at = since

    async def next(self) -> Batch:
        """See `contract.Watch.next`."""
        batch = await self._store._after(self._at)  # noqa: SLF001  # a cursor is part of its store
        self._at = batch.revision
        return batch
