"""One store, absorbed into the database.

First sync, and every list after that, is ONE revision, as a difference. Events are gathered until
a quiet moment follows, so that a burst costs one evaluation, but never longer than MOST, and never
cut within a transaction (the store's batches never are). A feed that fails is started again where
it was: its place is the revision last committed, so nothing is lost and nothing told twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random

from isthmus.aio import Backoff, Batch, Clock, Latest, Log, breathe, deadline, supervise
from isthmus.aio.supervise import describe
from isthmus.board.rows import Draft, Rows
from isthmus.board.tables import MEMBERS, Intakes, Member
from isthmus.engine import Change, Delete, Put
from isthmus.errors import BadRequest, Compacted
from isthmus.model.key import Key
from isthmus.store import contract

QUIET = 0.010
"""Seconds without an event after which what was gathered is committed."""
MOST = 0.100
"""Seconds for which an event may be held back by others that follow it."""
PAGE = 500
"""Objects listed at once."""
SLICE = 100
"""Objects made rows of between two turns of the loop: 1 or 2 ms."""
WAITING = 256
"""Batches read ahead; a reader that is further behind waits in the store's own history."""

BACKOFF = Backoff(first=0.1, most=5.0, settled=10.0)

Commit = Callable[[Sequence[Change]], object]


class Feed:
    """Keeps the tables equal to one cluster's store."""

    def __init__(
        self,
        cluster: str,
        store: contract.Store,
        intakes: Intakes,
        commit: Commit,
        *,
        clock: Clock,
        random: Random,
        log: Log,
    ) -> None:
        self.cluster = cluster
        self._store = store
        self._commit = commit
        self._clock = clock
        self._random = random
        self._log = log
        self._rows = Rows(cluster, intakes, log)
        self._absorbed = Latest(-1)
        self._placed = False
        self.trouble = ""
        """Why the feed stands still now, or ""."""

    @property
    def synced(self) -> bool:
        """The first sync is committed."""
        return self._absorbed.value >= 0

    @property
    def revision(self) -> int:
        """The store revision up to which the tables are right; -1 before the first sync."""
        return self._absorbed.value

    @property
    def unreadable(self) -> int:
        """How many objects make no row now."""
        return self._rows.unreadable

    async def at(self, revision: int, *, seconds: float) -> None:
        """Return when the tables hold everything up to the store's `revision`.

        Raises:
            DeadlineExceeded: not within `seconds`.
        """
        if self._absorbed.value >= max(revision, 0):
            return
        what = f"cluster {self.cluster}: absorbing revision {revision}"
        async with deadline(self._clock, seconds, what):
            with self._absorbed.watch() as watch:
                while await watch.next() < max(revision, 0):
                    pass

    async def run(self) -> None:
        """Absorb until cancelled."""
        await supervise(
            f"feed {self.cluster}",
            self._attempt,
            clock=self._clock,
            random=self._random,
            log=self._log,
            backoff=BACKOFF,
        )

    def leave(self) -> None:
        """Take the cluster out of the tables: no member, no row left. Call it after `run` ended."""
        self._absorbed.set(-1)
        self._placed = False
        draft = Draft()
        for key in self._rows.gone(()):
            self._rows.note(draft, key, None)
        self._finish(draft, Delete(MEMBERS, self.cluster))

    async def _attempt(self) -> None:
        try:
            if not self._placed:
                await self._sync()
            await self._follow()
        except* (Compacted, BadRequest):
            # Our place is not in the store's history: forgotten, or the store was put back to an
            # earlier state. Listing again mends both.
            self._placed = False
            raise
        except* Exception as fault:
            self.trouble = describe(fault)
            raise

    async def _sync(self) -> None:
        """Bring the tables to one revision of the store, in one revision of ours."""
        records, revision = await self._list()
        found: dict[Key, contract.Record | None] = {record.key: record for record in records}
        draft = await self._draft({**dict.fromkeys(self._rows.gone(found)), **found})
        self._finish(draft, Put(MEMBERS, self.cluster, Member(self.cluster)))
        self._absorbed.set(revision)
        self._placed = True

    async def _list(self) -> tuple[list[contract.Record], int]:
        """Everything in the store at one revision, in pages."""
        page = await self._store.list(limit=PAGE)
        records, revision = list(page.records), page.revision
        while page.more and page.records:
            after = page.records[-1].key
            page = await self._store.list(revision=revision, after=after, limit=PAGE)
            records += page.records
        return records, revision

    async def _follow(self) -> None:
        async with self._store.watch(self.revision) as watch, asyncio.TaskGroup() as group:
            self.trouble = ""
            waiting: Batch[contract.Batch] = Batch(WAITING)
            group.create_task(self._read(watch, waiting))
            group.create_task(self._absorb(waiting))

    async def _read(self, watch: contract.Watch, waiting: Batch[contract.Batch]) -> None:
        while True:
            await waiting.put(await watch.next())

    async def _absorb(self, waiting: Batch[contract.Batch]) -> None:
        while True:
            gathered = await self._gather(waiting)
            # Of several events of one object the last counts.
            last = {event.key: event.record for batch in gathered for event in batch.events}
            self._finish(await self._draft(last))
            self._absorbed.set(gathered[-1].revision)

    async def _draft(self, objects: Mapping[Key, contract.Record | None]) -> Draft:
        """The changes that these objects (None: gone) mean; made in slices, committed in one."""
        draft = Draft()
        for count, (key, record) in enumerate(objects.items(), 1):
            self._rows.note(draft, key, record)
            if count % SLICE == 0:
                await breathe()
        return draft

    def _finish(self, draft: Draft, *more: Change) -> None:
        self._commit([*draft.changes, *more])
        self._rows.accept(draft)

    async def _gather(self, waiting: Batch[contract.Batch]) -> list[contract.Batch]:
        """Batches until a quiet moment follows, or the first has waited long enough."""
        gathered = list(await waiting.take())
        patience = self._clock.now() + MOST
        while (left := patience - self._clock.now()) > 0:
            await self._clock.sleep(min(QUIET, left))
            if not len(waiting):
                break
            gathered += await waiting.take()
        return gathered
