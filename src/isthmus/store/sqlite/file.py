"""The log of a store in an SQLite file. Blocking; it belongs to the thread that opened it.

One row per change of a key. Its id holds the revision and the place within the transaction, so
that a range of revisions is a range of ids. `previous` is the id of the row it supersedes: when the
floor passes a row, the row before it is no longer part of any state that can be read, and goes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sys import intern
from typing import Any, Final, NamedTuple

from isthmus.errors import Unavailable
from isthmus.model.key import Key
from isthmus.store.contract import Event, Record
from isthmus.store.sqlite import faults

SCHEMA: Final = 1
APPLICATION: Final = 0x1574_6D75
"""PRAGMA application_id of our files."""

PLACE_BITS: Final = 10
"""Of a row's id; 2**10 is above contract.MAX_OPS."""

CHUNKS: Final = (64, 16, 4, 1)
"""Rows per INSERT. A few fixed sizes: each is prepared once and then found in the cache."""

TRIM: Final = 1_000
"""Revisions forgotten per SQLite transaction, so that no write waits long behind it."""

BUSY: Final = 0.2
"""Seconds to wait for another opener to go."""

_SETUP: Final = """
CREATE TABLE log (
  id INTEGER PRIMARY KEY,
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  created INTEGER NOT NULL, previous INTEGER NOT NULL, value BLOB
);
CREATE TABLE state (revision INTEGER NOT NULL, floor INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
"""

# EXCLUSIVE before the first access keeps the write-ahead log's index in memory, and others out.
_PRAGMAS: Final = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "journal_size_limit = 67108864",
    "cell_size_check = ON",
    "trusted_schema = OFF",
)


class Loaded(NamedTuple):
    """What a file holds: the newest records, the changes since the floor, and how far it is."""

    records: dict[Key, Record]
    log: list[Event]
    revision: int
    floor: int


class File:
    """An open log. All methods may raise sqlite3.Error; `faults` says what it means.

    `revision` is the newest that is durable, `floor` the oldest whose state can be read.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file; Unavailable if it cannot be used, saying why and what to do."""
        self.path = path
        self.revision = 0
        self.floor = 0
        self._rows: dict[Key, int] = {}
        _make(path)
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise faults.fault(error, path) from error

    def load(self) -> Loaded:
        """Read everything; Unavailable if it breaks the rules of a log."""
        try:
            return self._replay()
        except sqlite3.Error as error:
            raise faults.fault(error, self.path) from error
        except (ValueError, TypeError, KeyError) as error:
            raise faults.damaged(self.path, str(error)) from error

    def append(self, events: Sequence[Event]) -> None:
        """Write whole transactions, in order of revision; durable when it returns."""
        rows, moved = self._as_rows(events)
        with self._transaction():
            self._insert(rows)
            self._connection.execute("UPDATE state SET revision = ?", (events[-1].revision,))
        self.revision = events[-1].revision
        for key, row in moved.items():
            if row is None:
                del self._rows[key]
            else:
                self._rows[key] = row

    def trim(self, floor: int) -> None:
        """Forget what only revisions before `floor` need."""
        while self.floor < floor:
            step = min(floor, self.floor + TRIM)
            span = (_row(self.floor + 1, 0), _row(step + 1, 0))
            with self._transaction():
                self._connection.execute(
                    "DELETE FROM log WHERE id IN "
                    "(SELECT previous FROM log WHERE id >= ? AND id < ?)",
                    span,
                )
                self._connection.execute(
                    "DELETE FROM log WHERE id >= ? AND id < ? AND value IS NULL", span
                )
                self._connection.execute("UPDATE state SET floor = ?", (step,))
            self.floor = step

    def close(self) -> None:
        """Fold the write-ahead log into the file, and let others in."""
        with suppress(
            sqlite3.Error
        ):  # what is durable stays so; it is folded in at the next opening
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    # ---------------------------------------------------------------- opening

    def _prepare(self) -> None:
        self._connection.execute(f"PRAGMA {_PRAGMAS[0]}")
        new = self._is_new()
        for pragma in _PRAGMAS[1:]:
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        if new:
            marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SETUP} {marks} COMMIT;")
        else:
            with self._transaction():  # takes the lock even if nothing is ever written
                found = self._scalar("PRAGMA quick_check(1)")
            if found != "ok":
                raise faults.damaged(self.path, str(found))

    def _is_new(self) -> bool:
        """Whether the file is still empty; Unavailable if it is not one of ours."""
        application = self._scalar("PRAGMA application_id")
        schema = self._scalar("PRAGMA user_version")
        tables = self._scalar("SELECT count(*) FROM sqlite_master")
        if (application, schema, tables) == (0, 0, 0):
            return True
        if application != APPLICATION:
            raise faults.foreign(self.path)
        if schema != SCHEMA:
            raise faults.other_schema(self.path, schema, SCHEMA)
        return False

    def _replay(self) -> Loaded:
        (state,) = self._connection.execute("SELECT revision, floor FROM state").fetchall()
        self.revision, self.floor = state
        if not 0 <= self.floor <= self.revision:
            raise ValueError(f"its floor {self.floor} is above its revision {self.revision}")
        records: dict[Key, Record] = {}
        log: list[Event] = []
        for row, event in self._events(records):
            if event.record is None:
                self._rows.pop(event.key)
                records.pop(event.key)
            else:
                self._rows[event.key] = row
                records[event.key] = event.record
            if event.revision > self.floor:
                log.append(event)
        return Loaded(records, log, self.revision, self.floor)

    def _events(self, records: dict[Key, Record]) -> Iterator[tuple[int, Event]]:
        rows = self._connection.execute(
            "SELECT id, resource, namespace, name, created, value FROM log ORDER BY id"
        )
        for row, resource, namespace, name, created, value in rows:
            revision = row >> PLACE_BITS
            if not 0 < created <= revision <= self.revision:
                raise ValueError(f"row {row} is of revision {revision}, created in {created}")
            key = Key(intern(resource), intern(namespace), name)
            record = None if value is None else Record(key, _bytes(value), revision, created)
            yield row, Event(revision, key, record, records.get(key))

    # ---------------------------------------------------------------- statements

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._roll_back()  # once more, if the last time failed too
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # SQLite may have done it by itself
            self._connection.execute("ROLLBACK")

    def _as_rows(
        self, events: Sequence[Event]
    ) -> tuple[list[tuple[object, ...]], dict[Key, int | None]]:
        rows: list[tuple[object, ...]] = []
        moved: dict[Key, int | None] = {}
        revision = place = 0
        for event in events:
            place = place + 1 if event.revision == revision else 0
            revision, key, record = event.revision, event.key, event.record
            row = _row(revision, place)
            before = moved[key] if key in moved else self._rows.get(key)
            value = record.value if record is not None else None
            created = record.created if record is not None else revision
            rows.append((row, *key, created, before or 0, value))
            moved[key] = row if record is not None else None
        return rows, {key: row for key, row in moved.items() if row or key in self._rows}

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        start = 0
        for size in CHUNKS:
            statement = f"INSERT INTO log VALUES {','.join(['(?,?,?,?,?,?,?)'] * size)}"  # noqa: S608
            while len(rows) - start >= size:
                chunk = rows[start : start + size]
                self._connection.execute(statement, _flat(chunk))
                start += size

    def _scalar(self, statement: str) -> Any:  # noqa: ANN401 - whatever SQLite holds
        return self._connection.execute(statement).fetchone()[0]


def _row(revision: int, place: int) -> int:
    return revision << PLACE_BITS | place


def _flat(rows: Iterable[tuple[object, ...]]) -> list[object]:
    return [value for row in rows for value in row]


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"a value is {type(value).__name__}, not bytes")
    return value


def _make(path: Path) -> None:
    """Make the file if it is not there, for its owner's eyes only: Secrets are in it.

    An existing file is not opened: closing it again would drop the locks that this process holds.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be made ({error.strerror}); its directory must exist, "
            "and this user must be able to write in it"
        ) from error
