"""A fork: the database as it would be after changes that are never committed.

Cells that the changes cannot reach are shared with the parent; cells that they may reach, found by
following readers from the overlaid inputs, are copied when asked for and verified like any others,
so that only what really differs is evaluated. Nothing is written to the parent, links included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from isthmus.engine.buckets import Overlay
from isthmus.engine.cell import CHECK, CLEAN, DIRTY, Cell, Input, Node, readers_of, same, same_fault
from isthmus.engine.commit import absorb, edits, gather
from isthmus.engine.faults import StaleFork
from isthmus.engine.source import Change, Declared, Source
from isthmus.engine.trace import Trace, trace
from isthmus.engine.view import View

if TYPE_CHECKING:
    from isthmus.engine.database import Database
    from isthmus.engine.query import Query

P = ParamSpec("P")
T = TypeVar("T")


class Fork(View):
    """Made by `Database.fork`. Good until the parent commits; then reads raise StaleFork."""

    def __init__(self, parent: Database, changes: Iterable[Change]) -> None:
        super().__init__(parent.revision + 1)
        self._parent = parent
        self._base = parent.revision
        self._link = _no_link
        self._known = set(parent.sources)
        final = gather(changes)
        self._changed = tuple(final)
        for table in self._changed:
            origin = parent.sources.get(table)
            content: Any = {} if origin is None else Overlay(origin.content)
            self.sources[table] = Source(table.name, content, origin)
        for keeper in dict.fromkeys(k for t in self._changed for k in parent.keepers.get(t, ())):
            self.keep(keeper.fork(self), *self._changed)
        self._touched = absorb(self, edits(self, final))
        self._seen = -1
        self._inputs: set[Input] = set()
        self._tainted: dict[Cell, None] = {}

    # Reading.

    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        """The value as it would be. Re-raises what the query raised."""
        cell = self._brought(query, key)
        if cell.error is not None:
            raise cell.error.with_traceback(None)
        return cell.value  # type: ignore[no-any-return]  # as the query says

    def trace(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> Trace:
        """What the value would be made from."""
        return trace(self._brought(query, key))

    def differences(self) -> dict[tuple[Any, ...], tuple[Any, Any]]:
        """`{(query, *key): (before, after)}` of the watched cells that would change.

        A query that raises counts with its exception as the value.
        """
        self._check()
        before = Fork(self._parent, ())
        found: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        live = {cell: None for cell in self._tainted if cell.watches is not None}
        for watch in self._parent.watches:  # what a cell that is not clean would read is not known
            live.update((cell, None) for cell in watch.unsettled if cell.state != CLEAN)
        for cell in live:
            address = cell.query.address(cell.key)
            old, new = before.outcome(*address), self.outcome(*address)
            if not (same(old, new) or same_fault(old, new)):
                found[address] = (old, new)
        return found

    def outcome(self, query: Query[..., Any], *key: Any) -> Any:  # noqa: ANN401
        """The value, or the exception that the query raises."""
        cell = self._brought(query, key)
        return cell.value if cell.error is None else cell.error

    def _brought(self, query: Query[..., Any], key: tuple[Any, ...]) -> Cell:
        self._check()
        folded = query.fold(key)
        cell = self.memo[query].get(folded) or self._make(query, folded)
        self.bring(cell)
        return cell

    def _check(self) -> None:
        self._parent.outside("read of a fork")
        if self._parent.revision != self._base:
            raise StaleFork(
                f"forked at revision {self._base}, and the parent is at {self._parent.revision}"
            )
        if self._parent.evaluations != self._seen:
            self._taint()

    # What may be shared.

    def _taint(self) -> None:
        """Follow readers from the overlaid inputs, those that appeared since included."""
        inputs = {
            cell
            for source, key in self._touched
            if source.origin is not None and (cell := source.origin.cells.get(key)) is not None
        }
        for declared, source in self._parent.sources.items():
            if declared not in self._known and self._reaches(declared):
                inputs.update(source.cells.values())
        tainted: dict[Cell, None] = {}
        fresh: list[Node] = list(inputs)
        while fresh:
            for reader in readers_of(fresh.pop()):
                if reader not in tainted:
                    tainted[reader] = None
                    fresh.append(reader)
        self._inputs, self._tainted = inputs, tainted
        self._seen = self._parent.evaluations

    def _reaches(self, declared: Declared) -> bool:
        return any(table in self._changed for table in declared.tables)

    def open(self, declared: Declared) -> Source:
        """Share the parent's content where no change can have reached it."""
        origin = self._parent.sources.get(declared)
        if origin is None or self._reaches(declared):
            return super().open(declared)
        source = self.sources[declared] = Source(origin.label, origin.content, origin)
        return source

    def _make(self, query: Query[..., Any], key: Any) -> Cell:  # noqa: ANN401
        theirs = self._parent.memo.get(query, {}).get(key)
        if theirs is None:
            return super()._make(query, key)
        if self._shared(theirs):
            self.memo[query][key] = theirs
            return theirs
        self._adopt(theirs)
        return self.memo[query][key]

    def _shared(self, cell: Cell) -> bool:
        return cell.state == CLEAN and cell not in self._tainted

    def _adopt(self, root: Cell) -> None:
        """Copy a cell that may differ, and those below it that may."""
        copies: list[tuple[Cell, Cell]] = []
        fresh = [root]
        while fresh:
            theirs = fresh.pop()
            mine = self.memo[theirs.query]
            if theirs.key in mine:
                continue
            mine[theirs.key] = copy = _copy(theirs)
            if not self._inputs.isdisjoint(theirs.reads):
                copy.state = DIRTY
            copies.append((copy, theirs))
            fresh.extend(r for r in theirs.reads if isinstance(r, Cell) and not self._shared(r))
        for copy, theirs in copies:
            copy.reads = tuple(map(self._mine, theirs.reads))

    def _mine(self, read: Node) -> Node:
        return self.memo[read.query].get(read.key, read) if isinstance(read, Cell) else read

    def _relink(self, cell: Cell, reads: dict[Node, None]) -> None:
        cell.reads = tuple(reads)

    def _abandon(self, cell: Cell, reads: dict[Node, None]) -> None:
        cell.state = DIRTY


def _copy(theirs: Cell) -> Cell:
    copy = Cell(theirs.query, theirs.key)
    copy.value, copy.error = theirs.value, theirs.error
    copy.changed_at, copy.verified_at = theirs.changed_at, theirs.verified_at
    copy.state = DIRTY if theirs.state == DIRTY else CHECK
    return copy


def _no_link(_node: Node, _reader: Cell) -> None:
    """Nobody will mark a fork's cells, so nobody needs to know who reads them."""
