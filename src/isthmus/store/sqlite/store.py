"""The face of the SQLite store in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from isthmus.aio import Clock, deadline
from isthmus.store.contract import Compare, Op, examine
from isthmus.store.history import HISTORY, SYSTEM_CLOCK, History
from isthmus.store.local import Local
from isthmus.store.sqlite.writer import Answer, Job, Landing, Trim, Writer
from isthmus.store.timeline import Timeline

WAITING: Final = 1_024
"""Transactions that may be on their way at once; the next ones wait outside."""

PATIENCE: Final = 30.0
"""Seconds after which a write that the disk does not confirm is given up on."""


class SQLite(Local):
    """See `contract.Store`. Made by `SQLite.open`, ended by `close`."""

    def __init__(self, path: Path, *, history: History, clock: Clock) -> None:
        super().__init__(Timeline(), history, clock)
        self._clock = clock
        self._writer = Writer(path, asyncio.get_running_loop(), self._landed)
        self._slots = asyncio.Semaphore(WAITING)
        self._trimmed = 0

    @classmethod
    async def open(
        cls, path: Path, *, history: History = HISTORY, clock: Clock = SYSTEM_CLOCK
    ) -> SQLite:
        """Open the file, or make it; its directory must exist. Needs a running loop.

        Unavailable, saying what to do, if the file is in use, damaged, of another program, of a
        later version, or cannot be written.
        """
        store = cls(path, history=history, clock=clock)
        loaded = await store._writer.start()
        store._timeline = Timeline.restore(
            loaded.records.values(), loaded.log, loaded.revision, loaded.floor
        )
        store._trimmed = loaded.floor
        return store

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Answer:
        self._require_open()
        examine(compares, ops)
        async with deadline(self._clock, PATIENCE, "writing to the store"):
            await self._slots.acquire()
            if self._closed:
                self._slots.release()  # for the next that waits
                self._require_open()
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._writer.put(Job(compares, ops, future))
            return await future

    async def compact(self, revision: int) -> None:
        self._require_open()
        self._timeline.compact(revision)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._trim(future)
        async with deadline(self._clock, PATIENCE, "compacting the store"):
            await future

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wake()
            await self._writer.stop()

    def _landed(self, landing: Landing) -> None:
        self._land(landing.events)
        for job, outcome in landing.outcomes:
            self._slots.release()
            if job.future.done():
                continue  # its writer was cancelled
            if isinstance(outcome, Exception):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)
        if self._timeline.floor > self._trimmed and not self._closed:
            self._trim(None)

    def _trim(self, future: asyncio.Future[None] | None) -> None:
        self._trimmed = self._timeline.floor
        self._writer.put(Trim(self._trimmed, future))
