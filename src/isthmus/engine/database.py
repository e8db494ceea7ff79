"""The database: committing, marking, one-off reads, releasing."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from isthmus.engine.cell import (
    CHECK,
    CLEAN,
    DIRTY,
    Cell,
    Input,
    readers_of,
    unlink,
    watches_of,
)
from isthmus.engine.commit import absorb, edits, gather
from isthmus.engine.faults import BadCommit
from isthmus.engine.fork import Fork
from isthmus.engine.source import Change
from isthmus.engine.trace import Trace, trace
from isthmus.engine.view import View
from isthmus.engine.watch import Watch

if TYPE_CHECKING:
    from isthmus.engine.query import Query

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("isthmus.engine")

IDLE = 1024


class Stats(NamedTuple):
    """Figures of one database. `evaluations` and `failures` only grow."""

    revision: int
    cells: int
    inputs: int
    idle: int
    evaluations: int
    failures: int


class Database(View):
    """Tables of facts, memoised queries over them, and those who watch.

    Not thread-safe: one task writes, and everything happens on its thread. `idle` bounds how many
    one-off reads stay memoised when nobody holds them.
    """

    def __init__(self, *, idle: int = IDLE) -> None:
        super().__init__(revision=0)
        self._limit = idle
        self._idle: OrderedDict[Cell, None] = OrderedDict()
        self._committing = False
        self.watches: dict[Watch, None] = {}

    # Writing.

    def commit(self, changes: Iterable[Change]) -> int:
        """Apply all changes as one revision and return it; evaluates nothing.

        Of several changes to one row the last counts. If nothing differs from what is there, there
        is no new revision. Refused inside a query (InsideQuery), and for anything that is not a
        change of a row (BadCommit, BadKey), before anything is touched. An exception in a wake is
        logged: it must not keep others from being woken.
        """
        self.outside("commit")
        if self._committing:
            raise BadCommit("commit inside a commit: an extractor or a row's comparison called it")
        self._committing = True
        try:
            batch = edits(self, gather(changes))
            if not batch:
                return self.revision
            touched = absorb(self, batch)
            self.revision += 1
            woken = self._mark(
                cell for source, key in touched if (cell := source.cells.get(key)) is not None
            )
        finally:
            self._committing = False
        for watch in woken:
            watch.alert()
        return self.revision

    def _mark(self, touched: Iterable[Input]) -> list[Watch]:
        """Direct readers dirty, further ones check; a watched value is remembered right now."""
        fresh: list[Cell] = []
        for node in touched:
            node.changed_at = self.revision
            for cell in readers_of(node):
                if cell.state == CLEAN:
                    fresh.append(cell)
                cell.state = DIRTY
        return self._mark_above(fresh)

    def _mark_above(self, fresh: list[Cell]) -> list[Watch]:
        woken: dict[Watch, None] = {}
        while fresh:
            cell = fresh.pop()
            for watch in watches_of(cell):
                watch.remember(cell)
                woken[watch] = None
            for reader in readers_of(cell):
                if reader.state == CLEAN:
                    reader.state = CHECK
                    fresh.append(reader)
        return list(woken)

    # Reading.

    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        """The value at the current revision, once. Re-raises what the query raised.

        Stays memoised until enough other one-off reads push it out. Refused inside a query.
        """
        self.outside("read")
        cell = self._brought(query, key)
        if cell.error is not None:
            raise cell.error.with_traceback(None)
        value: T = cell.value
        return value

    def trace(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> Trace:
        """What the value was made from: the recorded reads, down to the rows."""
        self.outside("trace")
        return trace(self._brought(query, key))

    def _brought(self, query: Query[..., Any], key: tuple[Any, ...]) -> Cell:
        cell = self.cell(query, key)
        self._idle[cell] = None
        self._idle.move_to_end(cell)
        try:
            self.bring(cell)
        finally:
            self._shrink(self._limit)
        return cell

    def forget(self) -> None:
        """Empty the cache of one-off reads."""
        self._shrink(0)

    def _shrink(self, limit: int) -> None:
        while len(self._idle) > limit:
            self._doubtful.append(self._idle.popitem(last=False)[0])
        self._sweep()

    def watch(self, wake: Callable[[], None]) -> Watch:
        """A new watch. `wake` is called, after a commit or an `add`, when there may be news."""
        made = Watch(self, wake)
        self.watches[made] = None
        return made

    def fork(self, changes: Iterable[Change]) -> Fork:
        """What would be, if `changes` were committed; nothing is written here."""
        self.outside("fork")
        return Fork(self, changes)

    @property
    def stats(self) -> Stats:
        """Figures for tests and metrics."""
        return Stats(
            revision=self.revision,
            cells=sum(map(len, self.memo.values())),
            inputs=sum(len(source.cells) for source in self.sources.values()),
            idle=len(self._idle),
            evaluations=self.evaluations,
            failures=self.failures,
        )

    # Cells and their ends.

    def cell(self, query: Query[..., Any], key: tuple[Any, ...]) -> Cell:
        """The cell of `(query, *key)`, made if need be; for watches."""
        folded = query.fold(key)
        return self.memo[query].get(folded) or self._make(query, folded)

    def release(self, cell: Cell) -> None:
        """A watch let go of `cell`; call `sweep` when done."""
        self._doubtful.append(cell)

    def sweep(self) -> None:
        """Release what nobody holds. Not inside a query, whose reads are not complete."""
        if not self.stack:
            self._sweep()

    def _sweep(self) -> None:
        """A loop, not a recursion: chains of cells may be long."""
        if self._loops:
            self._sweep_loops()
        doubtful, idle = self._doubtful, self._idle
        while doubtful:
            node = doubtful.pop()
            if node.readers is not None or node.watches is not None or node in idle:
                continue
            home = self.memo[node.query] if isinstance(node, Cell) else node.source.cells
            if home.get(node.key) is not node:
                continue
            del home[node.key]
            if isinstance(node, Cell):
                self._let_go(node)

    def _let_go(self, cell: Cell) -> None:
        self._loops.discard(cell)
        reads, cell.reads = cell.reads, ()
        for read in reads:
            if unlink(read, cell):
                self._doubtful.append(read)

    def _sweep_loops(self) -> None:
        """Cells that read each other keep each other; release them when nobody else does."""
        for cell in list(self._loops):
            circle: dict[Cell, None] = {cell: None}
            fresh = [cell]
            while fresh:
                for reader in readers_of(fresh.pop()):
                    if reader not in circle:
                        circle[reader] = None
                        fresh.append(reader)
            if not any(c.watches is not None or c in self._idle for c in circle):
                for member in circle:
                    member.readers = None
                self._doubtful.extend(circle)

    def _spread(self, cell: Cell) -> None:
        if self._loops:
            readers = [r for r in readers_of(cell) if r.state == CLEAN]
            for reader in readers:
                reader.state = CHECK
            self._mark_above(readers)
