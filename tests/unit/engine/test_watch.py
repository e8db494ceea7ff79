"""Adding, dropping, waking, settling, taking, closing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from isthmus.engine import BadKey, ClosedWatch, Database, Watch
from tests.unit.engine.world import evaluated, ignore, label, never, number, put, twice


class Owner:
    def __init__(self, db: Database) -> None:
        self.wakes = 0
        self.watch = db.watch(self.wake)

    def wake(self) -> None:
        self.wakes += 1


def test_one_wake_until_the_next_take() -> None:
    db = Database()
    owner = Owner(db)
    owner.watch.add(number, "a")
    owner.watch.add(number, "b")
    assert owner.wakes == 1, "there is something new to take"
    owner.watch.take()
    for at in range(1, 4):
        db.commit(put(a=at))
    assert owner.wakes == 2
    assert owner.watch.take() == {(number, "a"): 3}, "the newest; what was between is skipped"
    db.commit(put(b=1))
    assert owner.wakes == 3


def test_a_change_of_something_else_does_not_wake() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(number, "a")
    watch.take()
    quiet = db.watch(never)
    db.commit(put(b=1))
    quiet.close()


def test_a_wake_may_act_at_once() -> None:
    db = Database()
    taken: list[object] = []

    def act() -> None:
        taken.append(watch.take())
        if db.revision == 1:
            db.commit(put(a=2))

    watch = db.watch(act)
    watch.add(number, "a")
    db.commit(put(a=1))
    assert taken == [{(number, "a"): 0}, {(number, "a"): 1}, {(number, "a"): 2}]


def test_a_wake_that_fails_is_logged_and_keeps_nobody_asleep(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise RuntimeError("no")

    db = Database()
    bad, good = db.watch(fail), Owner(db)
    for watch in (bad, good.watch):
        watch.add(number, "a")
        watch.take()
    assert db.commit(put(a=1)) == 1
    assert good.wakes == 2
    assert caplog.text.count("a wake failed") == 2


def test_adding_twice_is_adding_once_and_dropping_forgets() -> None:
    db = Database(idle=0)
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.add(label, "a")
    assert (len(watch), (label, "a") in watch, (label, "b") in watch) == (1, True, False)
    assert watch.take() == {(label, "a"): "even"}
    watch.add(label, "a")
    assert watch.take() == {}
    watch.drop(label, "a")
    watch.drop(label, "a")
    watch.drop(label, "never added")
    assert (len(watch), db.stats.cells) == (0, 0)
    assert bool(watch)
    watch.add(label, "a")
    assert watch.take() == {(label, "a"): "even"}, "told anew"


def test_dropping_what_was_not_settled() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.drop(label, "a")
    assert watch.take() == {}
    watch.add(label, "b")
    watch.take()
    db.commit(put(b=1))
    watch.drop(label, "b")
    assert evaluated(watch.take) == []


def test_two_owners_share_a_cell_and_each_is_told() -> None:
    db = Database(idle=0)
    one, two = db.watch(ignore), db.watch(ignore)
    one.add(label, "a")
    assert evaluated(one.take) == ["label a", "odd a", "number a"]
    two.add(label, "a")
    assert evaluated(two.take) == []
    db.commit(put(a=1))
    assert one.take() == {(label, "a"): "odd"}
    one.close()
    assert two.take() == {(label, "a"): "odd"}
    db.commit(put(a=2))
    assert two.take() == {(label, "a"): "even"}
    two.close()
    assert db.stats.cells == 0


def test_a_cell_first_read_by_another_is_still_told() -> None:
    db = Database()
    assert db.read(label, "a") == "even"
    watch = db.watch(ignore)
    watch.add(label, "a")
    assert watch.take() == {(label, "a"): "even"}


def test_a_cell_added_while_it_is_out_of_date() -> None:
    db = Database()
    db.read(label, "a")
    db.commit(put(a=1))
    watch = db.watch(ignore)
    watch.add(label, "a")
    assert watch.take() == {(label, "a"): "odd"}


def test_failed_lists_only_what_is_settled_and_raises() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(twice, "a")
    watch.add(number, "a")
    assert watch.failed() == {}
    watch.take()
    assert [(key, type(fault)) for key, fault in watch.failed().items()] == [
        ((twice, "a"), ZeroDivisionError)
    ]
    db.commit(put(a=1))
    assert watch.failed() == {}
    assert watch.take() == {(twice, "a"): 200, (number, "a"): 1}


def test_settle_without_a_budget_settles_all() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.add(label, "b")
    assert watch.settle()
    assert evaluated(watch.take) == []


def test_a_closed_watch_is_silent_and_refuses() -> None:
    db = Database(idle=0)
    owner = Owner(db)
    with owner.watch as watch:
        watch.add(label, "a")
        watch.take()
        db.commit(put(a=1))
    watch.close()
    assert db.stats.cells == db.stats.inputs == 0
    assert owner.wakes == 2
    acts: list[Callable[[Watch], object]] = [
        lambda w: w.add(label, "a"),
        lambda w: w.drop(label, "a"),
        lambda w: w.settle(),
        lambda w: w.take(),
    ]
    for act in acts:
        with pytest.raises(ClosedWatch):
            act(watch)


def test_closing_one_watch_inside_the_wake_of_another() -> None:
    db = Database(idle=0)
    second = Owner(db)
    second.watch.add(number, "a")
    first = db.watch(ignore)
    first.add(number, "b")
    first.take()
    first.close()
    closer = db.watch(second.watch.close)
    second.watch.take()
    closer.add(number, "a")
    assert second.wakes == 1
    assert db.commit(put(a=1)) == 1


def test_a_refused_key_leaves_nothing() -> None:
    db = Database()
    watch = db.watch(never)
    with pytest.raises(BadKey):
        watch.add(number, 1.5)  # type: ignore[arg-type]
    assert (len(watch), db.stats.cells) == (0, 0)
