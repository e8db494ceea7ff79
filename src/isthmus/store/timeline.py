"""All records at all revisions that are kept, in memory: what readers of a local store read.

Two structures, no copies: the live records, and the log of changes since the `floor`. An older
state is the live one with the changes since then undone. A watcher is a place in the log, so a slow
one costs nothing and blocks nobody.

No asyncio here, no threads: the owner calls `apply` from one place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import islice
from typing import Final

from isthmus.errors import BadRequest, Compacted
from isthmus.model.key import Key
from isthmus.store.contract import Batch, Event, Page, Record

BATCH: Final = 1_000
"""Events handed to a watcher at once; more only to finish a transaction."""

EVENT: Final = 300
"""Bytes that an event costs besides the value it superseded, about."""


class Timeline:
    """The records of a store, now and at every revision since `floor`.

    `revision` is the newest. `superseded` estimates the bytes that are kept for history alone.
    """

    def __init__(self, *, revision: int = 0, floor: int = 0) -> None:
        self.revision = revision
        self.floor = floor
        self.superseded = 0
        self._live: dict[Key, Record] = {}
        self._keys: list[Key] = []
        self._log: list[Event] = []

    @classmethod
    def restore(
        cls, records: Iterable[Record], log: list[Event], revision: int, floor: int
    ) -> Timeline:
        """A timeline that goes on where an earlier one ended."""
        timeline = cls(revision=revision, floor=floor)
        timeline._live = {record.key: record for record in records}
        timeline._keys = sorted(timeline._live)
        timeline._log = log
        timeline.superseded = sum(map(_superseded, log))
        return timeline

    @property
    def kept(self) -> int:
        """How many changes the log holds."""
        return len(self._log)

    @property
    def live(self) -> dict[Key, Record]:
        """The newest records; not to be changed."""
        return self._live

    # ---------------------------------------------------------------- writing

    def apply(self, events: Sequence[Event]) -> None:
        """Take in whole transactions, in order of revision."""
        for event in events:
            if event.record is None:
                del self._live[event.key]
                del self._keys[bisect_left(self._keys, event.key)]
            else:
                if event.previous is None:
                    insort(self._keys, event.key)
                self._live[event.key] = event.record
            self.superseded += _superseded(event)
        if events:
            self._log.extend(events)
            self.revision = events[-1].revision

    def compact(self, revision: int) -> None:
        """Forget changes up to `revision`; BadRequest if it is of the future."""
        self._refuse_future(revision)
        if revision <= self.floor:
            return
        end = self._place(revision)
        self.superseded -= sum(map(_superseded, self._log[:end]))
        del self._log[:end]
        self.floor = revision

    # ---------------------------------------------------------------- reading

    def check(self, revision: int) -> None:
        """Compacted or BadRequest unless `revision` can be read, and watched from."""
        self._refuse_future(revision)
        if revision < self.floor:
            # The wording that clients of Kubernetes know.
            raise Compacted(f"too old resource version: {revision} ({self.floor})")

    def since(self, revision: int) -> Batch:
        """The next changes after `revision`; no events when there are none yet."""
        self.check(revision)
        start = self._place(revision)
        end = start + BATCH
        if end >= len(self._log):
            return Batch(tuple(self._log[start:]), self.revision)
        covered = self._log[end - 1].revision
        return Batch(tuple(self._log[start : self._place(covered)]), covered)

    def page(
        self, resource: str, namespace: str, *, revision: int, after: Key | None, limit: int
    ) -> Page:
        """Part of the list at `revision` (0: now); see `Store.list`."""
        at = revision or self.revision
        self.check(at)
        keys = self._keys[self._reach(resource, namespace, after)]
        if namespace and not resource:
            keys = [key for key in keys if key.namespace == namespace]
        undone = self._undone(at, resource, namespace, after)
        later = {key for key, record in undone.items() if record is None and key in self._live}
        gone = sorted(key for key, record in undone.items() if record and key not in self._live)
        count = len(keys) - len(later) + len(gone)
        then = (key for key in merge(keys, gone) if key not in later) if undone else keys
        shown = islice(then, limit or None)
        records = tuple(undone.get(key) or self._live[key] for key in shown)
        left = count - len(records)
        return Page(records, at, left > 0, left)

    def _reach(self, resource: str, namespace: str, after: Key | None) -> slice:
        """The part of the sorted keys that holds the list, and little else."""
        keys = self._keys
        low, high = 0, len(keys)
        if resource:
            low = bisect_left(keys, Key(resource, namespace, ""))
            end = Key(resource, _next(namespace), "") if namespace else Key(_next(resource), "", "")
            high = bisect_left(keys, end)
        if after is not None:
            low = max(low, bisect_right(keys, after))
        return slice(low, max(low, high))

    def _undone(
        self, revision: int, resource: str, namespace: str, after: Key | None
    ) -> dict[Key, Record | None]:
        """What stood at `revision` under every key of the list that changed later."""
        undone: dict[Key, Record | None] = {}
        if revision == self.revision:
            return undone
        for event in self._log[self._place(revision) :]:
            key = event.key
            listed = resource in ("", key.resource) and namespace in ("", key.namespace)
            if listed and (after is None or key > after):
                undone.setdefault(key, event.previous)
        return undone

    def _place(self, revision: int) -> int:
        """Where the changes after `revision` begin in the log."""
        return bisect_right(self._log, revision, key=_revision)

    def _refuse_future(self, revision: int) -> None:
        if not 0 <= revision <= self.revision:
            raise BadRequest(f"revision {revision} is of the future; the newest is {self.revision}")


def _revision(event: Event) -> int:
    return event.revision


def _superseded(event: Event) -> int:
    return EVENT + (len(event.previous.value) if event.previous is not None else 0)


def _next(text: str) -> str:
    """The string that sorts right behind `text`."""
    return text + "\0"
