"""The machine: reading, evaluating and verifying cells at one revision.

`View` is what a query is given. A `Database` is a view whose revision moves; a `Fork` is a view of
changes that were never committed.

Depth. Queries call queries, so evaluation nests. It never nests deeper than DEPTH: the innermost
evaluation gives up with `_Suspend`, everything unwinds, the innermost cell is brought up to date
first, and the interrupted cell is evaluated again. Queries are pure, so nobody can tell. Verifying
and marking are loops. So no chain of cells, however long, overflows the stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from isthmus.engine.cell import (
    BUSY,
    CHECK,
    CLEAN,
    DIRTY,
    Cell,
    Input,
    Node,
    link,
    same,
    same_fault,
    unlink,
)
from isthmus.engine.faults import BadQuery, Cycle, InsideQuery, OutsideQuery
from isthmus.engine.keys import check_key
from isthmus.engine.source import Declared, Keeper, Source, Table, report

if TYPE_CHECKING:
    from isthmus.engine.query import Query

DEPTH = 50  # nested evaluations; each costs about five Python frames of the 1,000 allowed

_WALK = 16  # verifying a read costs about a sixteenth of an evaluation

_MUTABLE: frozenset[type] = frozenset(
    {list, dict, set, bytearray, GeneratorType, CoroutineType, AsyncGeneratorType, map, filter}
)

Budget = Callable[[], bool]


class _Suspend(BaseException):
    """Evaluate `cell` from an empty stack first, then start over. Queries must not catch it."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell


class View:
    """One consistent state, as queries see it. Pass it on; it has nothing to call."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.evaluations = 0
        self.failures = 0
        self.sources: dict[Declared, Source] = {}
        self.memo: defaultdict[Query[..., Any], dict[Any, Cell]] = defaultdict(dict)
        self.stack: list[Cell] = []
        self.keepers: dict[Table[Any, Any], list[Keeper]] = {}
        self._reads: dict[Node, None] | None = None
        self._link: Callable[[Node, Cell], None] = link
        self._doubtful: list[Node] = []
        self._loops: set[Cell] = set()

    # What tables and queries call.

    def call(self, query: Query[..., Any], key: Any) -> Any:  # noqa: ANN401
        """The value of a query inside another, noted as a read."""
        reads = self._reads
        if reads is None:
            raise OutsideQuery(f"{query.describe(key)} called outside queries; use read or a watch")
        cell = self.memo[query].get(key)
        if cell is None:
            cell = self._make(query, key)
        if cell not in reads:
            reads[cell] = None
            if cell.readers is not (reader := self.stack[-1]):  # as it is for most, from before
                self._link(cell, reader)
        if cell.state:
            self._refresh(cell)
        if cell.error is not None:
            raise cell.error.with_traceback(None)
        return cell.value

    def input(self, source: Source, key: Hashable) -> Any:  # noqa: ANN401
        """What a source holds at `key`, noted as a read if a query is running."""
        reads = self._reads
        if reads is not None:
            cell = source.cells.get(key)
            if cell is None:
                check_key(key, source.label)
                cell = source.cells[key] = Input(source, key)
            if cell not in reads:
                reads[cell] = None
                if cell.readers is not (reader := self.stack[-1]):
                    self._link(cell, reader)
        return source.content.get(key)

    def open(self, declared: Declared) -> Source:
        """Open a declared source on its first read."""
        source = self.sources[declared] = declared.open(self)
        return source

    def keep(self, keeper: Keeper, *tables: Table[Any, Any]) -> None:
        """Have `keeper` hear of every later edit of `tables`."""
        for table in dict.fromkeys(tables):
            self.keepers.setdefault(table, []).append(keeper)

    # Bringing cells up to date.

    def bring(self, root: Cell, budget: Budget | None = None) -> bool:
        """Bring `root` to the current revision; False if the budget ran out first."""
        self.outside("read")
        waiting: list[tuple[Cell, int]] = []
        cell = root
        try:
            while True:
                try:
                    done = not cell.state or self._refresh(cell, None if waiting else budget)
                except _Suspend as suspended:
                    waiting.append((cell, cell.state))
                    cell.state = BUSY
                    cell = suspended.cell
                    continue
                if not waiting:
                    return done
                cell, state = waiting.pop()
                cell.state = state
        finally:
            for interrupted, state in waiting:
                interrupted.state = state
            self._sweep()

    def outside(self, what: str) -> None:
        """Refuse `what` inside a query."""
        if self.stack:
            raise InsideQuery(f"{what} inside {self.stack[-1]}")

    def _make(self, query: Query[..., Any], key: Any) -> Cell:  # noqa: ANN401
        query.check(key)
        cell = self.memo[query][key] = Cell(query, key)
        return cell

    def _refresh(self, root: Cell, budget: Budget | None = None) -> bool:
        """Evaluate a dirty cell; verify the reads of a check cell, in recorded order, in a loop.

        False if the budget ran out; it is asked once as much was evaluated as was walked, because
        the next call walks down again.
        """
        if root.state == DIRTY:
            self._evaluate(root)
            return True
        if root.state == BUSY:
            self._raise_cycle(root)
        above: list[tuple[Cell, int]] = []  # what waits for `cell`, and at which of its reads
        cell, at, evaluated = root, 0, 0
        cell.state = BUSY
        try:
            while True:
                child, at = self._next_stale(cell, at)
                if child is not None and child.state == CHECK:
                    above.append((cell, at))
                    cell, at = child, 0
                    cell.state = BUSY
                    continue
                if child is not None and child.state == DIRTY:
                    self._evaluate(child)
                    evaluated += 1
                else:
                    evaluated += self._conclude(cell, holds=child is None)
                    if not above:
                        return True
                    cell, at = above.pop()
                walked = (len(above) + at) // _WALK
                if budget is not None and evaluated > walked and not budget():
                    self._recheck(cell, above)
                    return False
        except BaseException:
            self._recheck(cell, above)
            raise

    def _conclude(self, cell: Cell, *, holds: bool) -> int:
        """All reads were verified, or one has changed; the number of evaluations it took."""
        if not holds:
            self._evaluate(cell)
            return 1
        cell.verified_at = self.revision
        cell.state = CLEAN
        return 0

    def _next_stale(self, cell: Cell, at: int) -> tuple[Any, int]:
        """The first read from `at` on that is not clean or has changed since; None if all hold."""
        reads, verified_at = cell.reads, cell.verified_at
        while at < len(reads):
            read = reads[at]
            if read.state or read.changed_at > verified_at:
                return read, at
            at += 1
        return None, at

    def _recheck(self, cell: Cell, above: list[tuple[Cell, int]]) -> None:
        """Put cells whose verification was broken off back to be verified."""
        for broken in (cell, *(waiting for waiting, _ in above)):
            if broken.state == BUSY:
                broken.state = CHECK
                self._spread(broken)

    def _spread(self, cell: Cell) -> None:
        """Restore "the readers of an unclean cell are unclean"; only a cycle can have broken it."""

    def _raise_cycle(self, cell: Cell) -> None:
        self._loops.add(cell)
        path = " -> ".join(map(repr, [*self.stack[-8:], cell]))
        error = Cycle(f"a cell reads itself: {path}")
        self.failures += 1
        report(error, cell.query.name, cell.query.address(cell.key)[1:])  # even if it is swallowed
        raise error

    def _evaluate(self, cell: Cell) -> None:
        stack = self.stack
        if len(stack) >= DEPTH:
            raise _Suspend(cell)
        outer = self._reads
        reads: dict[Node, None] = {}
        self._reads = reads
        stack.append(cell)
        cell.state = BUSY
        try:
            error = self._run(cell)
        except BaseException:
            self._abandon(cell, reads)
            raise
        finally:
            stack.pop()
            self._reads = outer
        self.evaluations += 1
        if error is not None:
            self._fail(cell, error, reads)
        self._relink(cell, reads)
        cell.verified_at = self.revision
        cell.state = CLEAN

    def _run(self, cell: Cell) -> Exception | None:
        """Run the query; set a value that differs from the old, or return what it raised."""
        try:
            value = cell.query.run(self, cell.key)
            if value.__class__ in _MUTABLE:
                return BadQuery(f"{cell} returned a {type(value).__name__}; it must be frozen")
            changed = not same(cell.value, value)
        except RecursionError as fault:
            if len(self.stack) > 1:  # perhaps only for want of stack: try from an empty one
                raise _Suspend(cell) from None
            return fault
        except MemoryError:  # says nothing about the query
            raise
        except Exception as fault:  # noqa: BLE001 - a bug in the query, memoised with its reads
            return fault
        if changed:
            cell.value = value
        if changed or cell.error is not None:
            cell.error = None
            cell.changed_at = self.revision
        return None

    def _fail(self, cell: Cell, error: Exception, reads: dict[Node, None]) -> None:
        if same_fault(cell.error, error):
            return
        told = isinstance(error, Cycle) or any(
            isinstance(read, Cell) and read.error is error for read in reads
        )
        if not told:
            self.failures += 1
            report(error, cell.query.name, cell.query.address(cell.key)[1:])
        cell.error = error.with_traceback(None)
        cell.changed_at = self.revision

    def _relink(self, cell: Cell, reads: dict[Node, None]) -> None:
        """Take `reads` as the cell's reads. They are linked already: new before old."""
        old = cell.reads
        new = tuple(reads)
        if new == old:
            return
        for read in old:
            if read not in reads and unlink(read, cell):
                self._doubtful.append(read)
        cell.reads = new

    def _abandon(self, cell: Cell, reads: dict[Node, None]) -> None:
        """Undo a broken-off evaluation."""
        kept = set(cell.reads)
        for read in reads:
            if read not in kept and unlink(read, cell):
                self._doubtful.append(read)
        cell.state = DIRTY
        self._spread(cell)

    def _sweep(self) -> None:
        """Release cells that nobody needs any more."""
