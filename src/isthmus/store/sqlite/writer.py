"""The thread that writes: takes what waits, decides it, makes it durable, tells the loop.

The thread has the newest records for itself, so that it decides without reading. It and the loop
share no mutable value: jobs go in through a queue, landings come out by `call_soon_threadsafe`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import ChainMap
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

from isthmus.errors import Unavailable
from isthmus.model.key import Key
from isthmus.store.contract import Committed, Compare, Event, Op, Put, Record, Refused
from isthmus.store.decide import decide
from isthmus.store.sqlite import faults
from isthmus.store.sqlite.file import File, Loaded

GROUP: Final = 512
"""Jobs in one SQLite transaction."""

GROUP_BYTES: Final = 8 * 1024 * 1024
"""Bytes after which a group takes no further job."""

Answer = Committed | Refused
Outcome = Answer | Exception


class Job(NamedTuple):
    """A transaction and who waits for it. The future belongs to the loop."""

    compares: Sequence[Compare]
    ops: Sequence[Op]
    future: asyncio.Future[Answer]


class Trim(NamedTuple):
    """Forget up to `floor`; `future` is answered when that is durable."""

    floor: int
    future: asyncio.Future[None] | None


class Landing(NamedTuple):
    """Durable events, to be shown first; then an outcome for each job."""

    events: Sequence[Event]
    outcomes: Sequence[tuple[Job, Outcome]]


class Writer:
    """Owns the file and its thread. Start it once; `stop` ends it after what was put in before."""

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        land: Callable[[Landing], None],
    ) -> None:
        self._path = path
        self._loop = loop
        self._land = land
        # Bounded by the store: it lets in so many jobs before they have landed.
        self._queue: SimpleQueue[Job | Trim | None] = SimpleQueue()
        self._heads: dict[Key, Record] = {}
        self._broken = ""
        self._opened: asyncio.Future[Loaded] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        # A daemon: a process that dies does not wait for it. What is not answered is not promised.
        self._thread = Thread(target=self._run, name=f"store {path.name}", daemon=True)

    async def start(self) -> Loaded:
        """Open the file and return what is in it; Unavailable."""
        self._thread.start()
        try:
            return await self._opened
        except BaseException:
            self._queue.put(None)
            raise

    def put(self, job: Job | Trim) -> None:
        """Hand over a job."""
        self._queue.put(job)

    async def stop(self) -> None:
        """Do what was put in, close the file, end the thread."""
        self._queue.put(None)
        await self._ended
        self._thread.join()

    # ---------------------------------------------------------------- in the thread

    def _run(self) -> None:
        try:
            file = File(self._path)
            try:
                loaded = file.load()
                self._heads = dict(loaded.records)
                self._post(_answer, self._opened, loaded)
                self._work(file)
            finally:
                file.close()
        except Exception as error:  # noqa: BLE001  # whoever opens must not hang; a bug reaches him
            self._post(_answer, self._opened, error)
        finally:
            self._post(_answer, self._ended, None)

    def _work(self, file: File) -> None:
        while True:
            group, follower = self._take()
            if group:
                self._finish(file, group)
            if isinstance(follower, Trim):
                self._trim(file, follower)
            elif follower is None:
                return

    def _take(self) -> tuple[list[Job], Job | Trim | None]:
        """The jobs that wait, and what ended the group: a Trim, None to stop, else the last job."""
        group: list[Job] = []
        size = 0
        item = self._queue.get()
        while isinstance(item, Job):
            group.append(item)
            size += sum(len(op.value) for op in item.ops if isinstance(op, Put))
            if len(group) == GROUP or size >= GROUP_BYTES:
                break
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
        return group, item

    def _finish(self, file: File, group: Sequence[Job]) -> None:
        """Answer every job of the group; one that fails does not fail its neighbours."""
        if self._broken:
            self._post(self._land, Landing((), [(job, self._refusal()) for job in group]))
            return
        try:
            landing = self._commit(file, group)
        except sqlite3.Error as error:
            if faults.fatal(error):
                self._broken = faults.fault(error, self._path).message
            elif len(group) > 1:
                for job in group:
                    self._finish(file, [job])
                return
            landing = Landing((), [(job, faults.fault(error, self._path)) for job in group])
        except Exception as bug:  # noqa: BLE001  # the waiters must not hang; the bug reaches them
            self._broken = f"the writer of {self._path} failed: {bug!r}"
            landing = Landing((), [(job, bug) for job in group])
        self._post(self._land, landing)

    def _commit(self, file: File, group: Sequence[Job]) -> Landing:
        draft: dict[Key, Record | None] = {}
        state: ChainMap[Key, Record | None] = ChainMap(draft, self._heads)  # type: ignore[arg-type]
        revision = file.revision
        events: list[Event] = []
        outcomes: list[tuple[Job, Outcome]] = []
        for job in group:
            done = decide(state, job.compares, job.ops, revision + 1)
            if isinstance(done, Refused):
                outcomes.append((job, done))
                continue
            if done:
                revision += 1
                events += done
                draft.update((event.key, event.record) for event in done)
            outcomes.append((job, Committed(revision)))
        if events:
            file.append(events)
        for key, record in draft.items():
            if record is None:
                self._heads.pop(key, None)
            else:
                self._heads[key] = record
        return Landing(events, outcomes)

    def _trim(self, file: File, trim: Trim) -> None:
        outcome: Exception | None = None
        try:
            file.trim(trim.floor)
        except sqlite3.Error as error:
            # Put off, not lost: the next one begins where this one stopped.
            outcome = faults.fault(error, self._path)
        if trim.future is not None:
            self._post(_answer, trim.future, outcome)

    def _refusal(self) -> Unavailable:
        return Unavailable(f"{self._broken}; restart the server when that is mended")

    def _post(self, call: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)


def _answer(future: asyncio.Future[object], outcome: object) -> None:
    if future.done():
        return  # whoever waited was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
