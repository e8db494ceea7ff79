"""Stored objects to changes of tables: no waiting, no store, one source's memory of what it put.

A source remembers which keys it holds in the tables, so that a new list becomes a difference, and
which objects it could not read, so that each is told once. Work on a commit goes into a Draft, and
the memory changes only when the draft is accepted: whoever is interrupted in between has done
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.aio import Log
from isthmus.board.tables import UNREADABLE, Intake, Intakes, Unreadable, census_key, object_key
from isthmus.engine import Change, Delete, Put
from isthmus.model.key import Key
from isthmus.store.contract import Record


class Draft:
    """The changes of one commit to be, and what the source will remember of it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.present: dict[Key, bool] = {}
        self.unreadable: dict[Key, str] = {}


class Rows:
    """What one cluster has in the tables, and how objects change that."""

    def __init__(self, cluster: str, intakes: Intakes, log: Log) -> None:
        self.cluster = cluster
        self._intakes = intakes
        self._log = log
        self._held: set[Key] = set()
        self._unreadable: dict[Key, str] = {}

    @property
    def unreadable(self) -> int:
        """How many objects make no row now."""
        return len(self._unreadable)

    def note(self, draft: Draft, key: Key, record: Record | None) -> None:
        """Add what it means for the tables that `key` holds `record` now; once per key."""
        intakes, every = self._intakes.of(key.resource), self._intakes.every
        if not intakes and every is None:
            return
        draft.present[key] = record is not None
        for intake in intakes:
            self._put(draft, key, intake, object_key(self.cluster, key), record)
        if every is not None:
            self._put(draft, key, every, census_key(self.cluster, key), record)
        if key in self._unreadable and key not in draft.unreadable:
            draft.changes.append(Delete(UNREADABLE, census_key(self.cluster, key)))

    def _put(
        self, draft: Draft, key: Key, intake: Intake, at: object, record: Record | None
    ) -> None:
        """The row or its absence. No "last good": what an object was before it broke is history."""
        table, make = intake
        try:
            row = make(record.value) if record is not None else None
        except Exception as error:  # noqa: BLE001  # one bad object never stops the others
            why = draft.unreadable.setdefault(key, f"{type(error).__name__}: {error}")
            draft.changes.append(Put(UNREADABLE, census_key(self.cluster, key), Unreadable(why)))
            row = None
        draft.changes.append(Put(table, at, row) if row is not None else Delete(table, at))

    def gone(self, listed: Iterable[Key]) -> list[Key]:
        """What is held and not in a new list."""
        return sorted(self._held.difference(listed))

    def accept(self, draft: Draft) -> None:
        """The draft is committed."""
        for key, present in draft.present.items():
            if present:
                self._held.add(key)
            else:
                self._held.discard(key)
            why = draft.unreadable.get(key)
            if why is None:
                self._unreadable.pop(key, None)
            elif self._unreadable.get(key) != why:
                self._unreadable[key] = why
                self._tell(key, why)

    def _tell(self, key: Key, why: str) -> None:
        self._log.warning("unreadable object", cluster=self.cluster, **key._asdict(), why=why)
