"""Any history of commits, watches, releases and forks equals computing from scratch.

The machine drives one database and keeps plain dicts of rows beside it. `Scratch` is the second
opinion: a view that memoises nothing and finds index and join members by looking at every row.
Depth: HYPOTHESIS_PROFILE=thorough.
"""

# ruff: noqa: ANN401, SLF001
from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from isthmus.engine import (
    UNSET,
    Change,
    Database,
    Delete,
    Index,
    Join,
    Labelled,
    Put,
    Query,
    Selector,
    Table,
    View,
    Watch,
    query,
)
from isthmus.engine.cell import CLEAN, Cell, readers_of
from isthmus.engine.source import Declared, Source

# ---------------------------------------------------------------- a small world


class Name(NamedTuple):
    scope: str
    name: str


class Row(NamedTuple):
    value: int
    next: str
    tags: tuple[str, ...]
    flag: bool


class Wants(NamedTuple):
    pairs: tuple[tuple[str, str], ...]
    expressions: tuple[Any, ...]


class Unlucky(Exception):
    """What a query raises at a row of value 13."""


def tags_of(_key: Name, row: Row) -> tuple[str, ...]:
    if row.value == 12:
        raise Unlucky
    return row.tags


def labels_of(key: Name, row: Row) -> Labelled | None:
    labels = {tag: str(row.value % 2) for tag in row.tags}
    return Labelled(key.scope, labels) if row.next != "c" else None


def selector_of(key: Name, row: Wants) -> Selector:
    return Selector(key.scope, row.pairs, row.expressions)


ROWS: Table[Name, Row] = Table("rows", scope=lambda key: key.scope)
WANTS: Table[Name, Wants] = Table("wants")
TAGGED: Index[Name, Row, str] = Index("tagged", ROWS, tags_of)
SELECTED: Join[Name, Wants, Name, Row] = Join("selected", WANTS, selector_of, ROWS, labels_of)


@query
def value(db: View, key: Name) -> int | None:
    row = ROWS.get(db, key)
    if row is None:
        return None
    if row.value == 13:
        raise Unlucky(key)
    return row.value


@query
def parity(db: View, key: Name) -> int:
    return (value(db, key) or 0) % 2


@query
def guarded(db: View, key: Name) -> int:
    try:
        return (value(db, key) or 0) // 4
    except Unlucky:
        return -1


@query
def either(db: View, key: Name) -> object:
    """What it reads depends on what it has read."""
    row = ROWS.get(db, key)
    if row is None:
        return len(ROWS.names(db, key.scope))
    if row.flag:
        return parity(db, Name(key.scope, row.next))
    return TAGGED.get(db, row.next)


@query
def tagged(db: View, tag: str, parities: int) -> tuple[Name, ...]:
    return tuple(key for key in TAGGED.get(db, tag) if parity(db, key) == parities)


@query
def members(db: View, key: Name) -> tuple[tuple[Name, int], ...]:
    return tuple((member, guarded(db, member)) for member in SELECTED.members(db, key))


@query
def selectors(db: View, key: Name) -> tuple[Name, ...]:
    return SELECTED.selectors(db, key)


@query
def chain(db: View, key: Name, steps: int) -> int:
    row = ROWS.get(db, key)
    if row is None or steps == 0:
        return guarded(db, key)
    return chain(db, Name(key.scope, row.next), steps - 1)


@query
def total(db: View) -> tuple[int, ...]:
    return tuple(sum(guarded(db, key) for key in ROWS.names(db, scope)) for scope in SCOPES)


@query
def top(db: View, scope: str) -> tuple[object, ...]:
    a, b = Name(scope, "a"), Name(scope, "b")
    if sum(total(db)) % 2:
        return (either(db, a), members(db, b))
    return (either(db, b), tagged(db, "b", 1), chain(db, a, 3))


SCOPES = ("s", "t")
NAMES = ("a", "b", "c")
KEYS = [Name(scope, name) for scope in SCOPES for name in NAMES]
CELLS: list[tuple[Any, ...]] = [
    *((one, key) for one in (value, parity, guarded, either, members, selectors) for key in KEYS),
    *((chain, key, steps) for key in KEYS for steps in (1, 3)),
    *((tagged, tag, odd) for tag in NAMES for odd in (0, 1)),
    *((top, scope) for scope in SCOPES),
    (total,),
]

# ---------------------------------------------------------------- the second opinion


class Scratch:
    """Evaluates queries on plain dicts of rows, from scratch, by scanning."""

    def __init__(self, rows: dict[Any, dict[Any, Any]]) -> None:
        self._rows = rows
        self.sources: dict[object, object] = {}

    def open(self, declared: object) -> object:
        return declared

    def call(self, one: Query[..., Any], key: Any) -> Any:
        return one.run(self, key)  # type: ignore[arg-type]

    def input(self, declared: Any, key: Any) -> Any:
        if isinstance(declared, Table):
            return self._rows[declared].get(key)
        if isinstance(declared, Index):
            rows = self._rows[declared.table].items()
            return tuple(sorted(k for k, r in rows if key in declared.places(k, r, log=False)))
        if declared is SELECTED.to_objects:
            wants = self._rows[WANTS].get(key)
            return tuple(sorted(k for k in self._rows[ROWS] if self._selects(key, wants, k)))
        assert declared is SELECTED.to_selectors
        return tuple(sorted(k for k, w in self._rows[WANTS].items() if self._selects(k, w, key)))

    def _selects(self, key: Name, wants: Wants | None, member: Name) -> bool:
        row = self._rows[ROWS].get(member)
        if wants is None or row is None or key.scope != member.scope:
            return False
        labelled = labels_of(member, row)
        return labelled is not None and selector_of(key, wants).matches(labelled.by_name)

    def outcome(self, one: Query[..., Any], *key: Any) -> object:
        return outcome(lambda: self.call(one, one.fold(key)))


def outcome(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except Unlucky as raised:
        return ("raised", raised.args)


# ---------------------------------------------------------------- the database, with its rules held


class Strict(Database):
    """Holds, at each evaluation: not without need."""

    def _run(self, cell: Cell) -> Exception | None:
        evaluated = cell.value is not UNSET or cell.error is not None
        changed = any(read.changed_at > cell.verified_at for read in cell.reads)
        assert changed or not evaluated, f"{cell} is recomputed, though none of its reads changed"
        return super()._run(cell)


names = st.sampled_from(NAMES)
keys = st.sampled_from(KEYS)
rows = st.builds(
    Row,
    value=st.integers(0, 7) | st.sampled_from([12, 13]),
    next=names,
    tags=st.lists(names, max_size=2).map(tuple),
    flag=st.booleans(),
)
expressions = st.tuples(
    names,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["0", "1"]), max_size=2).map(tuple),
)
wants = st.builds(
    Wants,
    pairs=st.lists(st.tuples(names, st.sampled_from(["0", "1"])), max_size=2).map(tuple),
    expressions=st.lists(expressions, max_size=1).map(tuple),
)
puts: st.SearchStrategy[Change] = st.builds(Put, st.just(ROWS), keys, rows) | st.builds(
    Put, st.just(WANTS), keys, wants
)
deletes: st.SearchStrategy[Change] = st.builds(Delete, st.sampled_from([ROWS, WANTS]), keys)
changes = st.lists(puts | puts | deletes, min_size=1, max_size=4)
cells = st.sampled_from(CELLS)


def applied(held: dict[Any, dict[Any, Any]], some: Iterable[Change]) -> dict[Any, dict[Any, Any]]:
    new = {table: dict(content) for table, content in held.items()}
    for change in some:
        if isinstance(change, Put):
            new[change.table][change.key] = change.row
        else:
            new[change.table].pop(change.key, None)
    return new


class Owner:
    """A watch, and what its owner should have been told."""

    def __init__(self, db: Database) -> None:
        self.wakes = 0
        self.told: dict[tuple[Any, ...], object] = {}
        self.watch: Watch = db.watch(self._wake)

    def _wake(self) -> None:
        self.wakes += 1


class Histories(RuleBasedStateMachine):
    """One database, two owners, any order of events."""

    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("isthmus.engine").disabled = True
        self.db = Strict(idle=3)
        self.rows: dict[Any, dict[Any, Any]] = {ROWS: {}, WANTS: {}}
        self.owners = [Owner(self.db), Owner(self.db)]

    def teardown(self) -> None:
        logging.getLogger("isthmus.engine").disabled = False

    def scratch(self) -> Scratch:
        return Scratch(self.rows)

    @rule(some=changes)
    def commit(self, some: list[Change]) -> None:
        before, after = self.scratch(), applied(self.rows, some)
        slept = [owner for owner in self.owners if owner.wakes == 0]
        revision = self.db.revision
        changed = after != self.rows
        evaluations = self.db.evaluations
        self.rows = after
        assert self.db.commit(some) == revision + changed
        assert self.db.evaluations == evaluations, "a commit evaluates nothing"
        now = self.scratch()
        for owner in slept:
            differs = any(before.outcome(*one) != now.outcome(*one) for one in owner.told)
            assert owner.wakes <= changed, "a wake without a change"
            assert owner.wakes or not differs, "a change without a wake"

    @rule(at=st.integers(0, 1), cell=cells)
    def add(self, at: int, cell: tuple[Any, ...]) -> None:
        owner = self.owners[at]
        owner.watch.add(*cell)
        owner.told.setdefault(cell, UNSET)
        assert cell in owner.watch

    @rule(at=st.integers(0, 1), cell=cells)
    def drop(self, at: int, cell: tuple[Any, ...]) -> None:
        self.owners[at].watch.drop(*cell)
        self.owners[at].told.pop(cell, None)

    @rule(at=st.integers(0, 1), slices=st.integers(0, 4))
    def settle_a_little(self, at: int, slices: int) -> None:
        left = iter(range(slices))
        self.owners[at].watch.settle(lambda: next(left, None) is not None)

    @rule(at=st.integers(0, 1))
    def take(self, at: int) -> None:
        owner, now = self.owners[at], self.scratch()
        expected = {
            cell: new
            for cell, told in owner.told.items()
            if (new := now.outcome(*cell)) != told and not _raised(new)
        }
        assert owner.watch.take() == expected
        owner.told |= expected
        owner.wakes = 0
        assert set(owner.watch.failed()) == {
            cell for cell in owner.told if _raised(now.outcome(*cell))
        }
        evaluations = self.db.evaluations
        assert owner.watch.take() == {}
        assert self.db.evaluations == evaluations

    @rule(cell=cells)
    def read(self, cell: tuple[Any, ...]) -> None:
        expected = self.scratch().outcome(*cell)
        assert outcome(lambda: self.db.read(*cell)) == expected
        evaluations = self.db.evaluations
        assert outcome(lambda: self.db.read(*cell)) == expected
        assert self.db.evaluations == evaluations, "read again at the same revision"

    @rule(some=changes, asked=st.lists(cells, min_size=1, max_size=4), between=cells)
    def fork(
        self, some: list[Change], asked: list[tuple[Any, ...]], between: tuple[Any, ...]
    ) -> None:
        proposed, now = Scratch(applied(self.rows, some)), self.scratch()
        graph = self.graph()
        fork = self.db.fork(some)
        for cell in asked:
            assert outcome(lambda cell=cell: fork.read(*cell)) == proposed.outcome(*cell)  # type: ignore[misc]
        differing = {cell: tuple(map(_plain, two)) for cell, two in fork.differences().items()}
        watched = {cell for owner in self.owners for cell in owner.told}
        assert differing == {
            cell: (old, new)
            for cell in watched
            if (old := now.outcome(*cell)) != (new := proposed.outcome(*cell))
        }
        assert self.graph() == graph, "a fork writes nothing to its parent"
        outcome(lambda: self.db.read(*between))
        for cell in (*asked, between):
            assert outcome(lambda cell=cell: fork.read(*cell)) == proposed.outcome(*cell)  # type: ignore[misc]

    @rule(cell=cells)
    def trace(self, cell: tuple[Any, ...]) -> None:
        told = self.db.trace(*cell)
        assert _plain(told.value) == self.scratch().outcome(*cell)
        assert told.inputs() or not told.reads

    @rule()
    def forget(self) -> None:
        self.db.forget()

    @rule(at=st.integers(0, 1))
    def leave(self, at: int) -> None:
        self.owners[at].watch.close()
        self.owners[at] = Owner(self.db)

    @precondition(lambda self: not any(owner.told for owner in self.owners))
    @rule()
    def nobody_asks(self) -> None:
        self.db.forget()
        assert self.db.stats.cells == 0
        assert self.db.stats.inputs == 0

    def graph(self) -> list[object]:
        found: list[object] = [self.db.stats]
        for cell in self.every_cell():
            shape = (cell, cell.state, cell.value, cell.reads, cell.verified_at, cell.changed_at)
            found.append((*shape, list(readers_of(cell))))
        found.extend(
            [(key, list(readers_of(node)), node.changed_at) for key, node in source.cells.items()]
            for source in self.sources()
        )
        return found

    def every_cell(self) -> list[Cell]:
        return [cell for memo in self.db.memo.values() for cell in memo.values()]

    def sources(self) -> list[Source]:
        opened: dict[Declared, Source] = self.db.sources
        return list(opened.values())

    @invariant()
    def the_graph_is_sound(self) -> None:
        held = set(self.every_cell())
        now = self.scratch()
        for cell in held:
            assert cell.readers is not None or cell.watches is not None or cell in self.db._idle
            for read in cell.reads:
                assert cell in list(readers_of(read)), "each read is linked"
                assert cell.state != CLEAN or read.state == CLEAN, "a clean cell's reads are clean"
            if cell.state == CLEAN:
                address = cell.query.address(cell.key)
                found = cell.value if cell.error is None else cell.error
                assert _plain(found) == now.outcome(*address)
        for source in self.sources():
            for node in source.cells.values():
                assert node.readers is not None, "an input lives as long as it is read"
                assert held.issuperset(readers_of(node))


def _raised(found: object) -> bool:
    return isinstance(found, tuple) and found[:1] == ("raised",)


def _plain(found: object) -> object:
    return ("raised", found.args) if isinstance(found, Unlucky) else found


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=3 * settings().max_examples)
