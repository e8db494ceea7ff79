"""What queries read: tables and the indexes over them.

A declaration (`Table`, `Index`, `Join`) is a module-level name with no rows in it. Each database
opens a `Source` for it when it is first read, and keeps it up to date at every commit from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from isthmus.engine.buckets import Buckets, Content
from isthmus.engine.cell import Input
from isthmus.engine.faults import InsideQuery, NotListed
from isthmus.engine.keys import check_key

if TYPE_CHECKING:
    from isthmus.engine.view import View

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
I = TypeVar("I", bound=Hashable)  # noqa: E741 - the index key

_log = logging.getLogger("isthmus.engine")


class Put(msgspec.Struct, Generic[K, R], frozen=True):
    """Set the row at `key`. An equal row is no change."""

    table: Table[K, R]
    key: K
    row: R


class Delete(msgspec.Struct, Generic[K], frozen=True):
    """Remove the row at `key`; no change if there is none."""

    table: Table[K, Any]
    key: K


Change: TypeAlias = Put[Any, Any] | Delete[Any]


class Edit(NamedTuple):
    """One row that a commit really changes; None stands for absent."""

    key: Any
    old: Any
    new: Any


Batch: TypeAlias = Mapping["Table[Any, Any]", Sequence[Edit]]
Noted: TypeAlias = "dict[tuple[Source, Any], object]"


class Source:
    """One readable mapping in one view, and the input cells of the keys that are read.

    `origin` is the parent's source, if this one belongs to a fork.
    """

    __slots__ = ("cells", "content", "label", "origin")

    def __init__(self, label: str, content: Content, origin: Source | None = None) -> None:
        self.label = label
        self.content = content
        self.origin = origin
        self.cells: dict[Any, Input] = {}

    def note(self, key: object, noted: Noted) -> None:
        """Before `key` changes: remember what readers see, to tell later if it truly changed.

        Without a reader there is nobody to tell; but a fork notes all, for readers in its parent.
        """
        if (key in self.cells or self.origin is not None) and (self, key) not in noted:
            noted[self, key] = self.content.get(key)


class Declared(Protocol):
    """A Table, an Index or a side of a Join."""

    @property
    def tables(self) -> tuple[Table[Any, Any], ...]:
        """The tables it is derived from."""

    def open(self, db: View, /) -> Source:
        """Its source in `db`, filled from the rows that are there."""


class Keeper(Protocol):
    """Keeps derived sources true to the rows, at every commit."""

    def apply(self, batch: Batch, noted: Noted) -> None:
        """Absorb the edits; call `note` before changing what may be read."""

    def fork(self, view: View) -> Keeper:
        """A keeper over overlays of the same sources, opened in `view`."""


class Table(Generic[K, R]):
    """Facts by key. With `scope`, also the sorted keys of each scope.

    Example: `SERVICES: Table[Key, Service] = Table("services", scope=lambda key: key.namespace)`.
    """

    def __init__(self, name: str, *, scope: Callable[[K], Hashable] | None = None) -> None:
        self.name = name
        self.listed: Index[K, R, Hashable] | None = None
        if scope is not None:
            self.listed = Index(f"{name}.names", self, lambda key, _row: (scope(key),))

    def get(self, db: View, key: K) -> R | None:
        """The row at `key`, or None: absence is a read like any other."""
        return db.input(db.sources.get(self) or db.open(self), key)  # type: ignore[no-any-return]

    def names(self, db: View, scope: Hashable) -> tuple[K, ...]:
        """The keys of one scope, sorted; NotListed if the table was declared without one."""
        if self.listed is None:
            raise NotListed(
                f"table {self.name} was declared without a scope, so its names cannot be listed"
            )
        return self.listed.get(db, scope)

    def rows(self, db: View) -> dict[K, R]:
        """A copy of all rows, for owners of the database; InsideQuery inside one: no scans."""
        if db.stack:
            raise InsideQuery(f"rows of {self.name} inside a query; use get, an Index or names")
        return dict(self.content(db).items())

    def content(self, db: View) -> Any:  # noqa: ANN401 - a dict or an overlay of rows
        """The rows themselves, for keepers."""
        return (db.sources.get(self) or db.open(self)).content

    @property
    def tables(self) -> tuple[Table[Any, Any], ...]:
        """What it is derived from: itself."""
        return (self,)

    def open(self, _db: View) -> Source:
        """A source without rows."""
        return Source(self.name, {})

    def __repr__(self) -> str:
        return f"<table {self.name}>"


class Index(Generic[K, R, I]):
    """The keys of a table's rows, filed under what `extract(key, row)` returns for each.

    If `extract` raises or returns something that cannot be a key, the row is filed nowhere and the
    bug is logged: one bad row must not stop a commit.
    """

    def __init__(
        self, name: str, table: Table[K, R], extract: Callable[[K, R], Iterable[I]]
    ) -> None:
        self.name = name
        self.table = table
        self.tables: tuple[Table[Any, Any], ...] = (table,)
        self._extract = extract

    def get(self, db: View, key: I) -> tuple[K, ...]:
        """The table keys filed under `key`, sorted; empty if none."""
        return db.input(db.sources.get(self) or db.open(self), key)  # type: ignore[no-any-return]

    def open(self, db: View) -> Source:
        """File all rows that are there."""
        content: Buckets[I, K] = Buckets()
        source = Source(self.name, content)
        for key, row in self.table.content(db).items():
            for place in self.places(key, row):
                content.add(place, key)
        db.keep(IndexKeeper(self, source, content), self.table)
        return source

    def unmoved(self, key: K, old: R, new: R) -> bool:
        """Whether two rows are surely filed alike: what most edits are, told without more ado."""
        try:
            return tuple(self._extract(key, old)) == tuple(self._extract(key, new))
        except Exception:  # noqa: BLE001 - `places` tells of it
            return False

    def places(self, key: K, row: R, *, log: bool = True) -> tuple[I, ...]:
        """Where the row is filed: distinct keys, in the order of `extract`."""
        try:
            places = tuple(dict.fromkeys(self._extract(key, row)))
            for place in places:
                check_key(place, self.name)
        except Exception as fault:  # noqa: BLE001 - a bug in user code, told once, kept to one row
            if log:
                report(fault, self.name, key)
            return ()
        return places

    def __repr__(self) -> str:
        return f"<index {self.name}>"


class IndexKeeper:
    """Refiles rows as they change."""

    def __init__(
        self, index: Index[Any, Any, Any], source: Source, content: Buckets[Any, Any]
    ) -> None:
        self._index = index
        self._source = source
        self._content = content

    def apply(self, batch: Batch, noted: Noted) -> None:
        """Refile each edited row."""
        places, unmoved = self._index.places, self._index.unmoved
        for key, old, new in batch.get(self._index.table, ()):
            if old is not None and new is not None and unmoved(key, old, new):
                continue
            before = () if old is None else places(key, old, log=False)
            after = () if new is None else places(key, new)
            if before == after:
                continue
            for place in before:
                if place not in after:
                    self._source.note(place, noted)
                    self._content.remove(place, key)
            for place in after:
                if place not in before:
                    self._source.note(place, noted)
                    self._content.add(place, key)

    def fork(self, view: View) -> IndexKeeper:
        """The same over an overlay."""
        content = Buckets(self._content)
        source = Source(self._index.name, content, self._source)
        view.sources[self._index] = source
        return IndexKeeper(self._index, source, content)


def report(fault: Exception, where: str, key: object) -> None:
    """Log a bug in user code that was kept to one row or cell."""
    _log.error(
        "%s failed at %r", where, key, exc_info=fault, extra={"where": where, "key": repr(key)}
    )
