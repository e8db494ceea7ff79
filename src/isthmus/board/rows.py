"""Stored objects to changes of tables: no waiting, no store, one source's memory of what it put.

A source remembers which keys it holds in the tables, so that a new list becomes a difference, and
which objects it could not read, so that each is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from isthmus.aio import Log
from isthmus.board.tables import UNREADABLE, Intake, Intakes, Unreadable, census_key, object_key
from isthmus.engine import Change, Delete, Put
from isthmus.model.key import Key
from isthmus.store.contract import Event, Record


class Rows:
    """What one cluster has in the tables, and how its next events change that."""

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

    def absorb(self, events: Iterable[Event]) -> list[Change]:
        """The changes that the events mean, the last one per key deciding."""
        last = {event.key: event.record for event in events}
        return [change for key, record in last.items() for change in self._change(key, record)]

    def replace(self, records: Iterable[Record]) -> list[Change]:
        """The changes from what is held to exactly these records."""
        changes: list[Change] = []
        listed: set[Key] = set()
        for record in records:
            listed.add(record.key)
            changes += self._change(record.key, record)
        for key in sorted(self._held - listed):
            changes += self._change(key, None)
        return changes

    def _change(self, key: Key, record: Record | None) -> Iterator[Change]:
        intake, every = self._intakes.by_resource.get(key.resource), self._intakes.every
        if intake is None and every is None:
            return
        faults: list[str] = []
        if intake is not None:
            yield self._row(intake, object_key(self.cluster, key), record, faults.append)
        if every is not None:
            yield self._row(every, census_key(self.cluster, key), record, faults.append)
        if record is None:
            self._held.discard(key)
        else:
            self._held.add(key)
        yield from self._judge(key, faults)

    def _row(
        self,
        intake: Intake,
        key: object,
        record: Record | None,
        fault: Callable[[str], None],
    ) -> Change:
        """The row or its absence. No "last good": what an object was before it broke is history."""
        table, make = intake
        try:
            row = make(record.value) if record is not None else None
        except Exception as error:  # noqa: BLE001  # one bad object never stops the others
            fault(f"{type(error).__name__}: {error}")
            row = None
        return Put(table, key, row) if row is not None else Delete(table, key)

    def _judge(self, key: Key, faults: list[str]) -> Iterator[Change]:
        """Note an object that became unreadable, or readable again."""
        if not faults:
            if self._unreadable.pop(key, None) is not None:
                yield Delete(UNREADABLE, census_key(self.cluster, key))
            return
        why = faults[0]
        if self._unreadable.get(key) != why:
            self._unreadable[key] = why
            self._log.warning("unreadable object", cluster=self.cluster, **key._asdict(), why=why)
            yield Put(UNREADABLE, census_key(self.cluster, key), Unreadable(why))
