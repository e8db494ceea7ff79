"""Cells that read themselves: told, recovered from, and released."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.engine import Cycle, Database, View, query
from tests.unit.engine.world import NUMBERS, ignore, put


@query
def left(db: View) -> int:
    return right(db) if NUMBERS.get(db, "closed") else 1


@query
def right(db: View) -> int:
    return left(db) + 1


@query
def careless(db: View) -> int:
    """Swallows the alarm."""
    try:
        return right(db)
    except Cycle:
        return -1


@query
def itself(db: View) -> int:
    return itself(db)


def test_a_query_that_reads_itself() -> None:
    with pytest.raises(Cycle, match=r"itself\(\) -> itself\(\)"):
        Database().read(itself)


@pytest.mark.parametrize("first", [left, right])
def test_a_cycle_is_left_when_the_data_changes(first: object) -> None:
    db = Database()
    db.commit(put(closed=1))
    with pytest.raises(Cycle):
        db.read(left if first is left else right)
    db.commit(put(closed=0))
    assert (db.read(left), db.read(right)) == (1, 2)


def test_watches_see_a_cycle_come_and_go() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(left)
    watch.add(right)
    watch.add(careless)
    assert watch.take() == {(left,): 1, (right,): 2, (careless,): 2}
    db.commit(put(closed=1))
    assert watch.take() == {(careless,): -1}
    assert set(watch.failed()) == {(left,), (right,)}
    db.commit(put(closed=0, a=1))
    assert watch.take() == {(careless,): 2}


def test_cells_that_read_each_other_are_released() -> None:
    db = Database()
    db.commit(put(closed=1))
    watch = db.watch(ignore)
    watch.add(careless)
    watch.add(left)
    watch.take()
    watch.drop(left)
    assert db.stats.cells == 3, "careless still needs them"
    watch.close()
    assert (db.stats.cells, db.stats.inputs) == (0, 0)


def test_a_cycle_in_a_fork_stays_there() -> None:
    db = Database()
    assert db.read(right) == 2
    fork = db.fork(put(closed=1))
    with pytest.raises(Cycle):
        fork.read(right)
    assert db.read(right) == 2


@query
def impatient(db: View) -> int:
    """Is broken off once the cycle has been met."""
    if NUMBERS.get(db, "open"):
        return 7
    try:
        return inner(db)
    finally:
        if NUMBERS.get(db, "stop"):
            raise KeyboardInterrupt


@query
def inner(db: View) -> int:
    return impatient(db)


@pytest.mark.parametrize("first", [inner, impatient], ids=["inner", "impatient"])
def test_an_evaluation_broken_off_in_a_cycle_leaves_nothing_stale(first: Any) -> None:  # noqa: ANN401
    db = Database()
    watch = db.watch(ignore)
    watch.add(inner)
    watch.add(impatient)
    watch.take()
    assert set(watch.failed()) == {(inner,), (impatient,)}
    db.commit(put(stop=1))
    with pytest.raises(KeyboardInterrupt):
        db.read(first)
    db.commit(put(stop=0, open=1))
    assert watch.take() == {(inner,): 7, (impatient,): 7}


def test_the_alarm_is_logged_even_if_it_is_swallowed(caplog: pytest.LogCaptureFixture) -> None:
    db = Database()
    db.commit(put(closed=1))
    assert db.read(careless) == -1
    assert caplog.text.count("a cell reads itself: careless() -> right() -> left() -> right()")
