"""No chain of cells, however long, overflows the stack: 10,000 cells, 1,000 Python frames."""

from __future__ import annotations

import sys

import pytest

from isthmus.engine import Cycle, Database, Put, Table, View, Watch, query
from isthmus.engine.cell import CHECK, DIRTY
from tests.unit.engine.world import NUMBERS, ignore, put, state

LONG = 10_000
BELOW: Table[int, int] = Table("below")


@query
def link(db: View, at: int) -> int:
    """Reads the next link only."""
    return NUMBERS.get(db, "end") or 0 if at == 0 else link(db, at - 1) + 1


@query
def touched(db: View, at: int) -> int:
    """Every link also reads a common row, before the next link: all are dirty at once."""
    common = NUMBERS.get(db, "common") or 0
    return common if at == 0 else touched(db, at - 1) + common


@query
def fan(db: View) -> int:
    """Many long chains from one query."""
    return sum(link_of(db, strand, 200) for strand in range(50))


@query
def link_of(db: View, strand: int, at: int) -> int:
    return strand if at == 0 else link_of(db, strand, at - 1)


@query
def trapped(db: View, at: int) -> int:
    """A chain with a trap at its end."""
    if at:
        return trapped(db, at - 1) + 1
    if NUMBERS.get(db, "trap"):
        raise KeyboardInterrupt
    return 0


@query
def ring(db: View, at: int) -> int:
    return ring(db, BELOW.get(db, at) or 0)


@query
def deep(db: View, key: int) -> int:
    """Recurses in plain Python, without end for 0."""

    def down(steps: int) -> int:
        return down(steps - 1) if steps else number_of(db, key - 1) if key else down(-1)

    return down(60)


@query
def number_of(db: View, key: int) -> int:
    return deep(db, key) if key > 1 else key


@pytest.fixture(autouse=True)
def _usual_limit() -> None:
    assert sys.getrecursionlimit() <= 1000


def watched(db: Database) -> Watch:
    watch = db.watch(ignore)
    watch.add(link, LONG)
    assert watch.take() == {(link, LONG): LONG}
    return watch


def test_a_long_chain_is_evaluated_each_cell_once() -> None:
    db = Database()
    watched(db)
    assert db.evaluations == LONG + 1


def test_a_long_chain_is_marked() -> None:
    db = Database()
    watched(db)
    db.commit(put(end=1))
    assert (state(db, link, 0), state(db, link, LONG)) == (DIRTY, CHECK)


def test_a_long_chain_is_verified_and_each_cell_recomputed_once() -> None:
    db = Database()
    watch = watched(db)
    db.commit(put(end=1))
    assert watch.take() == {(link, LONG): LONG + 1}
    assert db.evaluations == 2 * (LONG + 1)


def test_a_long_chain_settles_in_slices() -> None:
    db = Database()
    watch = watched(db)
    db.commit(put(end=1))
    slices = 1
    while not watch.settle(lambda: False):
        slices += 1
    assert slices > 10
    assert db.evaluations == 2 * (LONG + 1)
    assert watch.take() == {(link, LONG): LONG + 1}


def test_a_long_chain_is_released() -> None:
    db = Database()
    watch = watched(db)
    watch.close()
    assert db.stats.cells == db.stats.inputs == 0


def test_a_database_with_a_long_chain_can_be_dropped() -> None:
    db = Database()
    watch = watched(db)
    del db, watch


def test_a_long_chain_is_forked_and_traced() -> None:
    db = Database()
    watched(db)
    fork = db.fork(put(end=5))
    assert fork.read(link, LONG) == LONG + 5
    assert len(str(db.trace(link, LONG)).splitlines()) == LONG + 2
    assert fork.trace(link, LONG).inputs() == [("numbers", "end")]


def test_a_long_chain_that_is_dirty_throughout_is_recomputed() -> None:
    db = Database()
    assert db.read(touched, LONG) == 0
    db.commit(put(common=2))
    assert db.read(touched, LONG) == 2 * (LONG + 1)
    assert db.evaluations == 2 * (LONG + 1)


def test_many_chains_under_one_query_lose_no_work() -> None:
    db = Database()
    assert db.read(fan) == sum(range(50))
    assert db.evaluations == 1 + 50 * 201


def test_a_long_chain_that_is_broken_off_can_be_evaluated_again() -> None:
    db = Database()
    db.commit(put(trap=1))
    with pytest.raises(KeyboardInterrupt):
        db.read(trapped, 300)
    db.commit(put(trap=0))
    assert db.read(trapped, 300) == 300
    db.forget()
    assert db.stats.cells == db.stats.inputs == 0


def test_a_long_cycle_is_found() -> None:
    db = Database()
    db.commit(Put(BELOW, at, (at + 1) % LONG) for at in range(LONG))
    with pytest.raises(Cycle):
        db.read(ring, 0)
    db.forget()
    assert db.stats.cells == db.stats.inputs == 0


def test_a_query_that_runs_out_of_stack_only_because_others_are_below_it_succeeds() -> None:
    db = Database()
    assert db.read(deep, 30) == 0 or db.read(number_of, 30) >= 0


def test_endless_recursion_inside_one_query_is_a_bug_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    for _ in range(2):
        with pytest.raises(RecursionError):
            db.read(deep, 0)
    assert db.stats.failures == 1
    assert "deep failed at (0,)" in caplog.text
