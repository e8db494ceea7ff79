"""Tables, their listed names, and indexes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from isthmus.engine import (
    BadCommit,
    Database,
    Delete,
    Index,
    NotListed,
    Put,
    Table,
    View,
    query,
)
from tests.unit.engine.world import NUMBERS, evaluated, ignore, number, put


class Key(NamedTuple):
    namespace: str
    name: str


class Pod(NamedTuple):
    ips: tuple[str, ...]
    note: str = ""


def ips_of(_key: Key, pod: Pod) -> tuple[str, ...]:
    if pod.note == "hostile":
        raise ValueError(pod.note)
    return pod.ips


PODS: Table[Key, Pod] = Table("pods", scope=lambda key: key.namespace)
BY_IP: Index[Key, Pod, str] = Index("pods_by_ip", PODS, ips_of)
BY_NOTE: Index[Key, Pod, object] = Index("pods_by_note", PODS, lambda _key, pod: [pod.note])

A, B, C = Key("x", "a"), Key("x", "b"), Key("y", "c")


@query
def at_ip(db: View, ip: str) -> tuple[Key, ...]:
    return BY_IP.get(db, ip)


@query
def in_namespace(db: View, namespace: str) -> tuple[Key, ...]:
    return PODS.names(db, namespace)


@query
def listing(db: View) -> tuple[str, ...]:
    return NUMBERS.names(db, "")


def test_a_query_reads_the_sorted_keys_filed_under_an_index_key() -> None:
    db = Database()
    db.commit([Put(PODS, B, Pod(("1", "2"))), Put(PODS, A, Pod(("2", "2")))])
    assert [db.read(at_ip, ip) for ip in "123"] == [(B,), (A, B), ()]


def test_a_row_is_refiled_and_only_readers_of_what_changed_are_woken() -> None:
    db = Database()
    db.commit([Put(PODS, A, Pod(("1", "2"))), Put(PODS, B, Pod(("4",)))])
    watch = db.watch(ignore)
    for ip in "1234":
        watch.add(at_ip, ip)
    watch.take()
    db.commit([Put(PODS, A, Pod(("2", "3")))])
    before = db.evaluations
    assert watch.take() == {(at_ip, "1"): (), (at_ip, "3"): (A,)}
    assert db.evaluations == before + 2
    db.commit([Delete(PODS, A)])
    assert watch.take() == {(at_ip, "2"): (), (at_ip, "3"): ()}


def test_a_row_that_changes_elsewhere_touches_no_index_reader() -> None:
    db = Database()
    db.commit([Put(PODS, A, Pod(("1",)))])
    db.read(at_ip, "1")
    db.commit([Put(PODS, A, Pod(("1",), "changed"))])
    before = db.evaluations
    assert db.read(at_ip, "1") == (A,)
    assert db.evaluations == before


def test_an_index_that_is_first_read_later_finds_the_rows_that_are_there() -> None:
    db = Database()
    db.commit([Put(PODS, A, Pod(("1",))), Put(PODS, C, Pod(("1",)))])
    db.commit([Delete(PODS, C)])
    assert db.read(at_ip, "1") == (A,)


def test_one_input_cell_per_index_key() -> None:
    db = Database()
    for ip in "123":
        db.read(at_ip, ip)
        db.read(at_ip, ip)
    assert db.stats.inputs == 3


def test_one_hostile_row_is_filed_nowhere_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    assert db.read(at_ip, "1") == ()
    db.commit([Put(PODS, A, Pod(("1",), "hostile")), Put(PODS, B, Pod(("1",)))])
    assert db.read(at_ip, "1") == (B,)
    assert caplog.text.count("pods_by_ip failed at Key(namespace='x', name='a')") == 1
    caplog.clear()
    db.commit([Put(PODS, A, Pod(("1",)))])
    assert db.read(at_ip, "1") == (A, B)
    assert caplog.text == ""


@query
def at_note(db: View, note: str) -> tuple[Key, ...]:
    return BY_NOTE.get(db, note)


def test_a_row_filed_under_what_cannot_be_a_key_is_filed_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    db.commit([Put(PODS, A, Pod((), 1.5)), Put(PODS, B, Pod((), "n"))])  # type: ignore[arg-type]
    assert db.read(at_note, "n") == (B,)
    assert "pods_by_note failed" in caplog.text


def test_names_of_a_scope() -> None:
    db = Database()
    db.commit([Put(PODS, key, Pod(())) for key in (C, B, A)])
    assert (db.read(in_namespace, "x"), db.read(in_namespace, "y")) == ((A, B), (C,))
    db.commit([Put(PODS, A, Pod((), "changed"))])
    assert evaluated(lambda: db.read(in_namespace, "x")) == []


def test_names_are_an_allow_list() -> None:
    with pytest.raises(NotListed, match=r"table numbers was declared without a scope"):
        Database().read(listing)
    assert PODS.listed is not None
    assert NUMBERS.listed is None


def test_outside_queries_rows_are_read_without_leaving_cells() -> None:
    db = Database()
    db.commit([Put(PODS, A, Pod(("1",)))])
    assert PODS.get(db, A) == Pod(("1",))
    assert PODS.get(db, B) is None
    assert BY_IP.get(db, "1") == (A,)
    assert PODS.names(db, "x") == (A,)
    rows = PODS.rows(db)
    rows.clear()
    assert PODS.rows(db) == {A: Pod(("1",))}
    assert db.stats.inputs == 0


def test_an_equal_row_is_no_change_and_keeps_the_old_row() -> None:
    db = Database()
    first = Pod(("1",))
    assert db.commit([Put(PODS, A, first)]) == 1
    assert db.commit([Put(PODS, A, Pod(("1",)))]) == 1
    assert PODS.get(db, A) is first
    assert db.commit([Delete(PODS, B)]) == 1
    assert db.commit([]) == 1


def test_the_last_of_several_changes_to_a_row_counts() -> None:
    db = Database()
    db.commit(put(a=1))
    assert db.commit([*put(a=2), Delete(NUMBERS, "a"), *put(a=1)]) == 1
    assert db.commit([*put(b=2), Delete(NUMBERS, "b")]) == 1
    assert db.commit([Delete(NUMBERS, "a"), *put(a=3)]) == 2
    assert NUMBERS.rows(db) == {"a": 3}


REFUSED: list[Any] = [Put(NUMBERS, "b", None), "b", Put("numbers", "b", 1), None]  # type: ignore[arg-type]


@pytest.mark.parametrize("change", REFUSED)
def test_a_commit_that_is_refused_changes_nothing(change: Any) -> None:  # noqa: ANN401
    db = Database()
    with pytest.raises(BadCommit):
        db.commit([*put(a=1), change])
    assert db.revision == 0
    assert NUMBERS.rows(db) == {}
    assert db.commit(put(a=1)) == 1, "and the next one is not refused"


class Sneaky(NamedTuple):
    db: Database

    def __eq__(self, _other: object) -> bool:
        self.db.commit(put(a=1))
        return False

    def __hash__(self) -> int:
        return 0


SNEAKY: Table[str, Sneaky] = Table("sneaky")


def test_a_commit_inside_a_commit_is_refused() -> None:
    db = Database()
    db.commit([Put(SNEAKY, "a", Sneaky(db))])
    with pytest.raises(BadCommit, match="commit inside a commit"):
        db.commit([Put(SNEAKY, "a", Sneaky(db))])
    assert db.revision == 1


def test_a_relist_is_one_revision_and_only_a_difference() -> None:
    """Sources: first sync and relist are one revision; rows that did not change touch nobody."""
    db = Database()
    assert db.commit(Put(NUMBERS, str(at), at) for at in range(1000)) == 1
    watch = db.watch(ignore)
    for at in range(1000):
        watch.add(number, str(at))
    watch.take()
    relist = [Put(NUMBERS, str(at), at + (at == 7)) for at in range(1000)]
    assert db.commit(relist) == 2
    assert evaluated(watch.take) == ["number 7"]


def test_declarations_say_what_they_are() -> None:
    assert (repr(PODS), repr(BY_IP)) == ("<table pods>", "<index pods_by_ip>")
    assert PODS.tables == BY_IP.tables == (PODS,)
