"""One-off reads and the figures of a database."""

from __future__ import annotations

from isthmus.engine import Database
from tests.unit.engine.world import evaluated, ignore, label, number, odd, put


def test_one_off_reads_stay_memoised_up_to_a_bound_the_last_used_longest() -> None:
    db = Database(idle=2)
    for name in "abab":
        db.read(number, name)
    assert db.evaluations == 2
    db.read(number, "a")
    db.read(number, "c")
    assert evaluated(lambda: db.read(number, "a")) == []
    assert evaluated(lambda: db.read(number, "b")) == ["number b"]
    assert (db.stats.cells, db.stats.idle) == (2, 2)


def test_a_one_off_read_stays_memoised_when_its_readers_go() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.take()
    db.read(odd, "a")
    watch.close()
    assert db.stats.cells == 2
    assert evaluated(lambda: db.read(odd, "a")) == []


def test_a_watched_cell_outlives_the_cache() -> None:
    db = Database()
    db.read(label, "a")
    watch = db.watch(ignore)
    watch.add(odd, "a")
    db.forget()
    assert db.stats.cells == 2
    assert evaluated(watch.take) == []


def test_figures() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    assert db.stats == (1, 3, 1, 1, 3, 0)
    assert db.stats._fields == ("revision", "cells", "inputs", "idle", "evaluations", "failures")
