"""What would be."""

from __future__ import annotations

import pytest

from isthmus.engine import (
    BadCommit,
    Database,
    Delete,
    Index,
    InsideQuery,
    Put,
    StaleFork,
    View,
    query,
)
from tests.unit.engine.world import (
    NUMBERS,
    evaluated,
    ignore,
    inverse,
    label,
    number,
    odd,
    put,
    ran,
    selected,
    twice,
)

BY_PARITY: Index[str, int, int] = Index("by_parity", NUMBERS, lambda _name, row: (row % 2,))


@query
def with_parity(db: View, parity: int) -> tuple[str, ...]:
    return BY_PARITY.get(db, parity)


def test_cut_off_reaches_into_a_fork() -> None:
    db = Database()
    db.commit(put(a=1))
    before = db.read(label, "a")
    fork = db.fork(put(a=3))
    assert evaluated(lambda: fork.read(label, "a")) == ["number a", "odd a"]
    assert fork.read(label, "a") is before
    assert evaluated(lambda: fork.read(label, "a")) == []


def test_reads_are_verified_in_order_in_a_fork_too() -> None:
    db = Database()
    db.commit(put(which=0, a=5, b=7))
    db.read(selected)
    fork = db.fork(put(which=1, a=0))
    assert evaluated(lambda: fork.read(selected)) == ["number which", "selected", "number b"]


def test_what_the_parent_has_not_settled_is_settled_in_the_fork_only() -> None:
    db = Database()
    db.read(label, "a")
    db.commit(put(a=1))
    fork = db.fork(put(b=1))
    assert fork.read(label, "a") == "odd"
    assert evaluated(lambda: db.read(label, "a")) == ["number a", "odd a", "label a"]


def test_what_the_parent_reads_after_the_fork_is_not_mistaken_for_the_forks() -> None:
    db = Database()
    db.commit(put(a=1))
    fork = db.fork([*put(a=2), Delete(NUMBERS, "b")])
    assert db.read(label, "a") == "odd"
    assert db.read(with_parity, 1) == ("a",)
    assert fork.read(label, "a") == "even"
    assert fork.read(with_parity, 1) == ()
    assert fork.read(with_parity, 0) == ("a",)


def test_an_index_in_a_fork() -> None:
    db = Database()
    db.commit(put(a=1, b=2))
    db.read(with_parity, 1)
    fork = db.fork([*put(b=3), Delete(NUMBERS, "a")])
    assert (fork.read(with_parity, 1), fork.read(with_parity, 0)) == (("b",), ())
    assert db.read(with_parity, 1) == ("a",)
    assert NUMBERS.rows(fork) == {"b": 3}
    assert NUMBERS.rows(db) == {"a": 1, "b": 2}


def test_an_index_that_nobody_opened_in_the_parent() -> None:
    db = Database()
    db.commit(put(a=1))
    assert db.fork(put(b=1)).read(with_parity, 1) == ("a", "b")
    assert db.fork([]).read(with_parity, 1) == ("a",)
    assert BY_PARITY not in db.sources


def test_a_fork_of_an_empty_database() -> None:
    db = Database()
    fork = db.fork(put(a=1))
    assert fork.read(label, "a") == "odd"
    assert db.sources == {}
    assert db.stats.cells == 0


def test_a_fork_is_stale_once_the_parent_commits() -> None:
    db = Database()
    fork = db.fork(put(a=1))
    db.commit(put(b=1))
    with pytest.raises(StaleFork, match="forked at revision 0, and the parent is at 1"):
        fork.read(label, "a")
    with pytest.raises(StaleFork):
        fork.differences()


def test_differences_of_the_watched_cells() -> None:
    db = Database()
    db.commit(put(a=1, b=1, c=5, d=5))
    watch = db.watch(ignore)
    for name in "ab":
        watch.add(label, name)
    for name in "cde":
        watch.add(twice, name)
    watch.take()
    db.read(odd, "b")
    fork = db.fork(put(a=2, b=3, c=0, e=0))
    found = fork.differences()
    assert set(found) == {(label, "a"), (twice, "c")}
    assert found[label, "a"] == ("odd", "even")
    before, after = found[twice, "c"]
    assert before == 40
    assert isinstance(after, ZeroDivisionError)


def test_differences_of_what_is_watched_but_not_settled() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    assert db.fork(put(a=1)).differences() == {(label, "a"): ("even", "odd")}
    watch.take()
    db.commit(put(b=1))
    assert db.fork(put(a=1)).differences() == {(label, "a"): ("even", "odd")}


def test_a_fork_raises_what_its_queries_raise() -> None:
    db = Database()
    db.commit(put(a=5))
    db.read(twice, "a")
    fork = db.fork(put(a=0))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fork.read(twice, "a")
    assert isinstance(fork.outcome(inverse, "a"), ZeroDivisionError)
    assert db.stats.failures == 0
    assert fork.failures == 1


def test_a_fork_is_traced() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    told = db.fork(put(a=2)).trace(label, "a")
    assert told.value == "even"
    assert told.inputs() == [("numbers", "a")]
    assert str(told).splitlines()[-1] == "      numbers('a') = 2 @0"


def test_a_fork_refuses_what_a_commit_refuses() -> None:
    with pytest.raises(BadCommit):
        Database().fork(["a"])  # type: ignore[list-item]


def test_many_reads_follow_readers_once() -> None:
    db = Database()
    db.commit(put(a=1))
    for name in "abc":
        db.read(label, name)
    fork = db.fork(put(a=2, b=1))
    with ran() as names:
        values = [fork.read(label, name) for name in "abc"]
        assert "label c" not in names
    assert values == ["even", "odd", "even"]


@query
def forks(db: View) -> int:
    assert isinstance(db, Database)
    return FORKS[0].read(number, "a")


FORKS = [Database().fork([])]


def test_a_fork_is_not_read_inside_a_query_of_its_parent() -> None:
    db = Database()
    FORKS[0] = db.fork(put(a=1))
    with pytest.raises(InsideQuery, match=r"read of a fork inside forks\(\)"):
        db.read(forks)


@query
def breaks(db: View) -> int:
    if number(db, "stop"):
        raise KeyboardInterrupt
    return 1


def test_an_evaluation_that_is_broken_off_in_a_fork_is_done_again() -> None:
    db = Database()
    db.read(breaks)
    fork = db.fork([Put(NUMBERS, "stop", 1)])
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fork.read(breaks)
    assert db.read(breaks) == 1


def test_a_fork_links_nothing_in_its_parent() -> None:
    db = Database()
    db.commit(put(a=1, b=2))
    db.read(number, "a")
    shared = db.memo[number]["a"]
    fork = db.fork(put(b=3))
    assert fork.read(odd, "a") is True
    assert shared.readers is None
    assert fork.memo[number]["a"] is shared


def test_what_the_parent_evaluates_after_the_first_read_of_a_fork_is_followed_too() -> None:
    db = Database()
    fork = db.fork(put(a=1))
    assert fork.read(number, "b") == 0
    assert db.read(label, "a") == "even"
    assert fork.read(label, "a") == "odd"
