"""Traces."""

from __future__ import annotations

import pytest

from isthmus.engine import Database, View, query
from tests.unit.engine.world import inverse, number, put, selected


@query
def diamond(db: View) -> int:
    return number(db, "a") + number(db, "a") + wide(db)


@query
def wide(db: View) -> int:
    return number(db, "a") + number(db, "b")


def test_a_shared_node_is_shown_once() -> None:
    db = Database()
    db.commit(put(a=1))
    told = db.trace(diamond)
    assert str(told).splitlines() == [
        "diamond() = 3 @1",
        "  number('a') = 1 @1",
        "    numbers('a') = 1 @0",
        "  wide() = 1 @1",
        "    number('a') (above)",
        "    number('b') = 0 @1",
        "      numbers('b') = None @0",
    ]
    assert told.reads[0] is told.reads[1].reads[0]


def test_inputs_are_listed_once_in_the_order_of_reading_absent_ones_too() -> None:
    db = Database()
    db.commit(put(a=1))
    assert db.trace(diamond).inputs() == [("numbers", "a"), ("numbers", "b")]


def test_a_trace_shows_an_exception_and_when_inputs_changed() -> None:
    db = Database()
    db.commit(put(a=5))
    db.read(selected)
    db.commit(put(a=0))
    with pytest.raises(ZeroDivisionError):
        db.read(selected)
    told = db.trace(inverse, "a")
    assert isinstance(told.value, ZeroDivisionError)
    [a] = told.reads
    [row] = a.reads
    assert (row.is_input, row.label, row.key, row.value, row.changed_at) == (
        True,
        "numbers",
        ("a",),
        0,
        2,
    )
    assert not a.is_input
