"""The engine contract of the architecture, line by line: test_NN_… holds line NN."""

from __future__ import annotations

import gc
import subprocess
import sys
from enum import Enum
from typing import Any, NamedTuple

import msgspec
import pytest

from isthmus.engine import (
    BadKey,
    BadQuery,
    ByIdentity,
    Cycle,
    Database,
    Delete,
    InsideQuery,
    Put,
    Table,
    View,
    query,
)
from isthmus.engine.cell import CHECK, CLEAN, DIRTY, Cell, Input
from tests.unit.engine.world import (
    NUMBERS,
    evaluated,
    ignore,
    inverse,
    label,
    never,
    number,
    odd,
    put,
    ran,
    selected,
    state,
    twice,
)

# ---------------------------------------------------------------- 1


def test_01_commit_marks_direct_readers_dirty_and_further_ones_check() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    assert [state(db, one, "a") for one in (number, odd, label)] == [CLEAN, CLEAN, CLEAN]
    db.commit(put(a=2))
    assert [state(db, one, "a") for one in (number, odd, label)] == [DIRTY, CHECK, CHECK]


def test_01_commit_evaluates_nothing() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.take()
    assert evaluated(lambda: db.commit(put(a=1))) == []
    assert evaluated(watch.take) == ["number a", "odd a", "label a"]


def test_01_commit_makes_one_revision_of_all_its_changes() -> None:
    db = Database()
    assert db.commit(put(a=1, b=2, c=3)) == 1
    assert db.commit([*put(a=4), Delete(NUMBERS, "b")]) == 2
    assert db.revision == 2
    assert NUMBERS.rows(db) == {"a": 4, "c": 3}


@query
def committing(db: View) -> int:
    assert isinstance(db, Database)
    return db.commit(put(a=1))


def test_01_commit_refuses_to_run_inside_a_query() -> None:
    db = Database()
    with pytest.raises(InsideQuery, match=r"commit inside committing\(\)"):
        db.read(committing)
    assert db.revision == 0


def test_01_a_cell_knows_when_it_changed_and_when_it_was_verified() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    db.commit(put(a=3))
    db.read(label, "a")
    cells = [db.memo[one]["a"] for one in (number, odd, label)]
    assert [cell.changed_at for cell in cells] == [2, 1, 1]
    assert [cell.verified_at for cell in cells] == [2, 2, 2]
    assert cells[1].reads == (cells[0],)
    assert cells[0].readers is cells[1]


# ---------------------------------------------------------------- 2


def test_02_reads_are_verified_in_recorded_order_and_the_rest_not_evaluated() -> None:
    """`selected` divides by `a` only while `which` is 0; both change at once."""
    db = Database()
    db.commit(put(which=0, a=5, b=7))
    assert db.read(selected) == 20
    db.commit(put(which=1, a=0))
    assert evaluated(lambda: db.read(selected)) == ["number which", "selected", "number b"]
    assert db.read(selected) == 7


def test_02_a_check_cell_is_cut_off_when_its_reads_held() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    db.commit(put(a=3))
    assert evaluated(lambda: db.read(label, "a")) == ["number a", "odd a"]


# ---------------------------------------------------------------- 3


class Endpoint:
    """Counts how often one is compared."""

    compared = 0

    def __init__(self, address: int) -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        Endpoint.compared += 1
        return isinstance(other, Endpoint) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)


PODS: Table[int, int] = Table("pods")


@query
def endpoint(db: View, key: int) -> Endpoint:
    return Endpoint(PODS.get(db, key) or 0)


@query
def thousand(db: View) -> tuple[Endpoint, ...]:
    return tuple(endpoint(db, key) for key in range(1000))


def test_03_an_equal_result_keeps_the_old_object() -> None:
    db = Database()
    db.commit([Put(PODS, 1, 500)])
    before = db.read(endpoint, 1)
    db.commit([Put(PODS, 1, 501)])
    db.commit([Put(PODS, 1, 500)])
    assert db.read(endpoint, 1) is before


def test_03_a_value_of_shared_members_is_compared_by_identity() -> None:
    db = Database()
    before = db.read(thousand)
    db.commit([Put(PODS, 999, 1)])
    Endpoint.compared = 0
    after = db.read(thousand)
    assert after != before
    assert all(new is old for new, old in zip(after[:999], before[:999], strict=True))
    assert Endpoint.compared <= 4, "only the member that changed is compared by value"


# ---------------------------------------------------------------- 4


def test_04_another_reader_that_refreshes_first_does_not_lose_the_wake() -> None:
    db = Database()
    woken: list[int] = []
    watch = db.watch(lambda: woken.append(db.revision))
    watch.add(label, "a")
    watch.take()
    woken.clear()
    db.commit(put(a=1))
    assert db.read(label, "a") == "odd"
    assert woken == [1]
    assert watch.take() == {(label, "a"): "odd"}


def test_04_there_and_back_tells_nothing() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(label, "a")
    assert watch.take() == {(label, "a"): "even"}
    db.commit(put(a=1))
    assert db.read(label, "a") == "odd"
    db.commit(put(a=2))
    assert watch.take() == {}


# ---------------------------------------------------------------- 5


def test_05_one_watch_over_many_cells_takes_only_what_changed() -> None:
    db = Database()
    db.commit(put(which=1))
    watch = db.watch(ignore)
    for name in "abcdef":
        watch.add(label, name)
    watch.add(selected)
    watch.drop(label, "f")
    assert len(watch) == 6
    first = watch.take()
    assert first.pop((selected,)) == 0
    assert first == {(label, name): "even" for name in "abcde"}
    db.commit(put(a=1, c=2, f=1))
    assert watch.take() == {(label, "a"): "odd"}


# ---------------------------------------------------------------- 6


def test_06_all_values_of_one_take_come_from_one_revision() -> None:
    """A commit lands between two slices, and touches what the first slice had settled."""
    db = Database()
    watch = db.watch(ignore)
    for name in "abc":
        watch.add(number, name)
    assert not watch.settle(lambda: False)
    db.commit(put(a=1, b=1, c=1))
    assert watch.settle(lambda: True)
    db.commit(put(a=2, c=2))
    assert watch.take() == {(number, "a"): 2, (number, "b"): 1, (number, "c"): 2}


def test_06_settling_is_sliced_and_every_slice_makes_progress() -> None:
    db = Database()
    watch = db.watch(ignore)
    for name in "abcde":
        watch.add(number, name)
    slices = 1
    while not watch.settle(lambda: False):
        slices += 1
    assert slices == 5


def test_06_a_slice_ends_inside_a_cell_that_waits_for_many() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(thousand)
    watch.take()
    db.commit(Put(PODS, key, 0) for key in range(1000))
    before = db.evaluations
    assert not watch.settle(lambda: False)
    assert db.evaluations == before + 1
    assert watch.settle(lambda: True)
    assert db.evaluations == before + 1000, "each once, and their reader not at all"
    assert watch.take() == {}


# ---------------------------------------------------------------- 7


def test_07_absence_is_a_read() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(number, "new")
    assert watch.take() == {(number, "new"): 0}
    db.commit(put(new=3))
    assert watch.take() == {(number, "new"): 3}


def test_07_unknown_names_leave_no_cells_behind() -> None:
    db = Database(idle=10)
    for at in range(100_000):
        db.read(number, f"unknown-{at}")
    assert db.stats.cells == db.stats.inputs == db.stats.idle == 10
    db.forget()
    assert (db.stats.cells, db.stats.inputs, db.stats.idle) == (0, 0, 0)


def test_07_new_reads_are_attached_before_old_ones_are_released() -> None:
    """`which` moves from `inverse a` (over `number a`) to `number b` and back: nothing is lost."""
    db = Database(idle=0)
    db.commit(put(which=0, a=5, b=7))
    watch = db.watch(ignore)
    watch.add(selected)
    assert watch.take() == {(selected,): 20}
    db.commit(put(which=1))
    assert watch.take() == {(selected,): 7}
    assert "a" not in db.memo[inverse]
    assert "a" not in db.memo[number]
    db.commit(put(b=8))
    assert watch.take() == {(selected,): 8}


def test_07_released_cells_are_freed_by_reference_counting() -> None:
    def alive() -> int:
        return sum(type(one) in (Cell, Input) for one in gc.get_objects())

    db = Database(idle=0)
    watch = db.watch(ignore)
    gc.collect()
    before = alive()
    for name in map(str, range(50)):
        watch.add(label, name)
    watch.take()
    assert alive() == before + 200
    gc.disable()
    try:
        watch.close()
        assert alive() == before
    finally:
        gc.enable()


# ---------------------------------------------------------------- 8


def test_08_an_exception_is_memoised_with_its_reads_and_raised_in_readers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            db.read(twice, "a")
    assert db.stats.failures == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"], "logged once"
    assert "inverse failed at ('a',)" in caplog.text
    with ran() as again, pytest.raises(ZeroDivisionError):
        db.read(twice, "a")
    assert again == []
    db.commit(put(a=5))
    assert db.read(twice, "a") == 40


def test_08_owners_keep_what_they_were_last_told() -> None:
    db = Database()
    db.commit(put(a=5))
    watch = db.watch(ignore)
    watch.add(twice, "a")
    assert watch.take() == {(twice, "a"): 40}
    db.commit(put(a=0))
    assert watch.take() == {}
    assert list(watch.failed()) == [(twice, "a")]
    db.commit(put(a=5))
    assert watch.take() == {}, "it holds 40 already"
    assert watch.failed() == {}
    db.commit(put(a=0))
    watch.take()
    db.commit(put(a=10))
    assert watch.take() == {(twice, "a"): 20}


def test_08_what_was_never_told_is_not_taken_for_told_when_it_recovers() -> None:
    """Told 40; then 20 is seen by another reader only; then a failure; then 20 again."""
    db = Database()
    db.commit(put(a=5))
    watch = db.watch(ignore)
    watch.add(twice, "a")
    watch.take()
    db.commit(put(a=10))
    assert db.read(twice, "a") == 20
    db.commit(put(a=0))
    assert watch.take() == {}
    db.commit(put(a=10))
    assert watch.take() == {(twice, "a"): 20}


# ---------------------------------------------------------------- 9

NEXT: Table[str, str] = Table("next")


@query
def reachable(db: View, start: str) -> tuple[str, ...]:
    """How recursion over user data is written: a loop with a visited set in one query."""
    seen, at = [], start
    while at not in seen:
        seen.append(at)
        at = NEXT.get(db, at) or at
    return tuple(seen)


@query
def endless(db: View, at: str) -> int:
    """How it is not written."""
    return 1 + endless(db, NEXT.get(db, at) or "end") if at != "end" else 0


def test_09_user_data_that_loops_is_walked_inside_one_query() -> None:
    db = Database()
    db.commit([Put(NEXT, "a", "b"), Put(NEXT, "b", "a")])
    assert db.read(reachable, "a") == ("a", "b")


def test_09_a_cycle_of_cells_is_an_alarm_that_names_them() -> None:
    db = Database()
    db.commit([Put(NEXT, "a", "b"), Put(NEXT, "b", "a")])
    with pytest.raises(Cycle, match=r"endless\('a'\) -> endless\('b'\) -> endless\('a'\)"):
        db.read(endless, "a")


# ---------------------------------------------------------------- 10


def test_10_a_fork_is_an_overlay_that_writes_nothing_to_its_parent() -> None:
    db = Database()
    db.commit(put(a=1, b=2))
    watch = db.watch(ignore)
    watch.add(label, "a")
    watch.add(label, "b")
    watch.take()
    quiet = db.watch(never)
    fork = db.fork(put(a=4))
    before = db.stats
    assert evaluated(lambda: fork.read(label, "a")) == ["number a", "odd a", "label a"]
    assert evaluated(lambda: fork.read(label, "b")) == [], "shared with the parent"
    assert fork.read(label, "a") == "even"
    assert db.stats == before
    assert watch.take() == {}
    assert db.read(label, "a") == "odd"
    quiet.close()


# ---------------------------------------------------------------- 11


def test_11_trace_is_the_recorded_reads() -> None:
    db = Database()
    db.commit(put(a=1))
    db.read(label, "a")
    assert evaluated(lambda: db.trace(label, "a")) == [], "there is no tracing mode"
    assert str(db.trace(label, "a")).splitlines() == [
        "label('a') = 'odd' @1",
        "  odd('a') = True @1",
        "    number('a') = 1 @1",
        "      numbers('a') = 1 @0",
    ]


# ---------------------------------------------------------------- 12


class Colour(Enum):
    RED = 1


class Frozen(msgspec.Struct, frozen=True):
    name: str
    port: int | None = None


class Thawed(msgspec.Struct):
    name: str


class Nested(NamedTuple):
    part: Any


@query
def at(_db: View, key: object) -> str:
    return repr(key)


@pytest.mark.parametrize(
    "key", ["a", 1, None, Colour.RED, (), ("a", (1, Colour.RED)), Frozen("a", 1), Nested("a")]
)
def test_12_keys_may_be(key: object) -> None:
    db = Database()
    assert db.read(at, key) == repr(key)


@pytest.mark.parametrize(
    "key",
    [
        True,
        1.0,
        b"a",
        frozenset(),
        ("a", True),
        ("a", ("b", 1.5)),
        Nested(False),
        Frozen("a", True),
        Thawed("a"),
    ],
    ids=repr,
)
def test_12_keys_may_not_be(key: object) -> None:
    db = Database()
    with pytest.raises(BadKey, match=r"at: .* key"):
        db.read(at, key)
    with pytest.raises(BadKey, match=r"numbers: .* key"):
        db.commit([Put(NUMBERS, key, 1)])
    assert db.stats.cells == db.stats.inputs == db.revision == 0


def test_12_only_module_level_functions_are_queries() -> None:
    def nested(_db: View, _key: str) -> int:
        return 1

    with pytest.raises(BadQuery, match=r"nested is not a module-level function"):
        query(nested)
    with pytest.raises(BadQuery, match=r"<lambda> is not a module-level function"):
        query(lambda _db: 1)


def test_12_the_engine_never_imports_asyncio() -> None:
    code = "import sys, isthmus.engine; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"


# ---------------------------------------------------------------- 13


@query
def view_of_class(db: View, namespace: str, zone: str) -> str:
    return f"{namespace} {zone} {number(db, zone)}"


def test_13_askers_of_one_class_share_one_cell() -> None:
    db = Database()
    streams = [db.watch(ignore) for _ in range(1000)]
    for stream in streams:
        stream.add(view_of_class, "ns", "zone-a")
    values = [stream.take()[view_of_class, "ns", "zone-a"] for stream in streams]
    assert db.stats.evaluations == 2
    assert all(value is values[0] for value in values)


def test_13_a_difference_is_made_once_for_all_streams() -> None:
    made: list[int] = []

    def difference(held: tuple[int, ...], now: tuple[int, ...]) -> tuple[int, ...]:
        made.append(1)
        return tuple(sorted(set(now) - set(held)))

    delta = ByIdentity(difference)
    held, now = tuple(range(1000)), tuple(range(1001))
    answers = [delta(held, now) for _stream in range(1000)]
    assert len(made) == 1
    assert all(answer is answers[0] for answer in answers)
    assert answers[0] == (1000,)
