from __future__ import annotations

from datetime import timedelta

from isthmus.aio import ManualClock
from isthmus.controllers.time import DUE, KEPT, Timekeeper, due, seconds
from isthmus.engine import Database


def keeper() -> tuple[Database, ManualClock, Timekeeper]:
    db, clock = Database(), ManualClock()
    return db, clock, Timekeeper(db.commit, clock)


def test_a_moment_is_due_when_it_has_passed() -> None:
    db, clock, time = keeper()
    time.start()
    moment = int(clock.time()) + 10
    time.expect(moment)
    assert not db.read(due, moment)
    clock.advance(9)
    assert not db.read(due, moment)
    clock.advance(1)
    assert db.read(due, moment)
    assert not db.read(due, moment + 1)


def test_what_passed_before_the_start_is_due_at_once() -> None:
    db, clock, time = keeper()
    moment = int(clock.time()) - 1
    assert not db.read(due, moment)
    time.start()
    assert db.read(due, moment)


def test_asking_twice_is_asking_once() -> None:
    _db, clock, time = keeper()
    moment = int(clock.time()) + 10
    time.expect(moment)
    time.expect(moment)
    assert clock.waiting == 1
    time.stop()
    assert clock.waiting == 0


def test_a_clock_that_was_set_back_is_waited_for() -> None:
    db, clock, time = keeper()
    moment = int(clock.time()) + 10
    time.expect(moment)
    clock.set_date(clock.utc() - timedelta(seconds=60))
    clock.advance(10)
    assert not db.read(due, moment)
    clock.advance(60)
    assert db.read(due, moment)


def test_old_moments_leave_no_rows_behind_and_stay_due() -> None:
    db, clock, time = keeper()
    first = int(clock.time()) + 1
    for offset in range(KEPT + 1):
        time.expect(first + offset)
    clock.advance(KEPT + 5)
    assert DUE.rows(db) == {}
    assert db.read(due, first)
    assert db.read(due, first + KEPT)
    assert not db.read(due, first + KEPT + 60)


def test_a_time_that_cannot_be_read_is_long_past() -> None:
    assert seconds("2026-01-01T00:00:01Z") - seconds("2026-01-01T00:00:00Z") == 1
    assert seconds("tomorrow") == 0


def test_what_lies_years_ahead_is_not_waited_for() -> None:
    _db, clock, time = keeper()
    time.expect(int(clock.time()) + 2**31)
    assert clock.waiting == 0


def test_what_all_have_forgotten_is_not_waited_for() -> None:
    db, clock, time = keeper()
    moment = int(clock.time()) + 10
    time.expect(moment)
    time.expect(moment)
    time.forget(moment)
    assert clock.waiting == 1
    time.forget(moment)
    assert clock.waiting == 0
    time.forget(moment)
    time.expect(moment)
    clock.advance(10)
    assert db.read(due, moment)
    time.forget(moment)
    assert clock.waiting == 0
