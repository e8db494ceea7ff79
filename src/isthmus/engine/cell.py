"""Cells: the nodes of the graph, and the links between them.

    CLEAN   the value holds at the current revision
    CHECK   something further down was touched: verify the reads before believing the value
    DIRTY   a direct read was touched, or never evaluated: evaluate
    BUSY    being evaluated or verified right now; meeting such a cell again is a cycle

Two invariants carry everything else: the readers of a cell that is not clean are not clean, and a
clean cell's reads are clean. So marking may stop at the first cell that is not clean.

Most cells have no reader or one, and no watch or one. `readers` and `watches` are therefore None,
the one itself, or a dict of several (a set that keeps order): dicts would double a cell's size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from isthmus.engine.query import Query
    from isthmus.engine.source import Source
    from isthmus.engine.watch import Watch

CLEAN, CHECK, DIRTY, BUSY = range(4)


class Unset:
    """The value of a cell before its first evaluation, and of a watch before it told anything."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


class Input:
    """One key of one source (rows, an index, a join side) that some cell reads.

    It holds no value: the source does. It lives as long as it has readers, so that reading a
    name that does not exist leaves nothing behind.
    """

    __slots__ = ("changed_at", "key", "readers", "source")

    # What makes an input look like a cell that is always clean, has no reads and no watches.
    state = CLEAN
    reads: tuple[Node, ...] = ()
    watches = None

    def __init__(self, source: Source, key: Any) -> None:  # noqa: ANN401 - a key of any table
        self.source = source
        self.key = key
        self.readers: Readers = None
        self.changed_at = 0


class Cell:
    """One query at one key: its value, what it read in which order, and who reads it."""

    __slots__ = (
        "changed_at",
        "error",
        "key",
        "query",
        "readers",
        "reads",
        "state",
        "value",
        "verified_at",
        "watches",
    )

    def __init__(self, query: Query[..., Any], key: Any) -> None:  # noqa: ANN401 - as above
        self.query = query
        self.key = key
        self.value: Any = UNSET
        self.error: Exception | None = None
        self.reads: tuple[Node, ...] = ()
        self.readers: Readers = None
        self.changed_at = 0
        self.verified_at = 0
        self.state = DIRTY
        self.watches: Watch | dict[Watch, None] | None = None

    def __repr__(self) -> str:
        return self.query.describe(self.key)


Node: TypeAlias = Cell | Input
Readers: TypeAlias = "Cell | dict[Cell, None] | None"


def same(old: object, new: object) -> bool:
    """Whether `new` says nothing that `old` did not. Of the same type, so that 1 is not True."""
    return old is new or (old.__class__ is new.__class__ and bool(old == new))


def same_fault(old: object, new: object) -> bool:
    """Whether two exceptions tell the same; exceptions themselves compare by identity."""
    return (
        isinstance(old, Exception)
        and isinstance(new, Exception)
        and same((old.__class__, old.args), (new.__class__, new.args))
    )


def readers_of(node: Node) -> Iterable[Cell]:
    """The cells that read `node`, in the order in which they first did."""
    readers = node.readers
    if readers is None:
        return ()
    if isinstance(readers, dict):
        return readers
    return (readers,)


def link(node: Node, reader: Cell) -> None:
    """Record that `reader` reads `node`. Idempotent."""
    readers = node.readers
    if readers is None:
        node.readers = reader
    elif isinstance(readers, dict):
        readers[reader] = None
    elif readers is not reader:
        node.readers = {readers: None, reader: None}


def unlink(node: Node, reader: Cell) -> bool:
    """Forget that `reader` reads `node`; True if that was the last reader."""
    readers = node.readers
    if readers is reader:
        node.readers = None
        return True
    if isinstance(readers, dict):
        readers.pop(reader, None)
        if not readers:
            node.readers = None
            return True
    return False


def watches_of(cell: Cell) -> Iterable[Watch]:
    """The watches on `cell`, in the order in which they came."""
    watches = cell.watches
    if watches is None:
        return ()
    return watches if isinstance(watches, dict) else (watches,)


def hold(cell: Cell, watch: Watch) -> None:
    """Put a watch on `cell`."""
    watches = cell.watches
    if watches is None:
        cell.watches = watch
    elif isinstance(watches, dict):
        watches[watch] = None
    else:
        cell.watches = {watches: None, watch: None}


def let_go(cell: Cell, watch: Watch) -> bool:
    """Take a watch off `cell`; True if that was the last."""
    watches = cell.watches
    if isinstance(watches, dict):
        watches.pop(watch, None)
        if watches:
            return False
    cell.watches = None
    return True
