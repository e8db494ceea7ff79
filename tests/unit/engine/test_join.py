"""Selectors against labels, kept in both directions."""

# ruff: noqa: ANN401, SLF001
from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from isthmus.engine import (
    Database,
    Delete,
    Join,
    Labelled,
    Put,
    Selector,
    Table,
    View,
    query,
)
from isthmus.engine.join import JoinKeeper
from tests.unit.engine.world import ignore

Labels = dict[str, str]


class Key(NamedTuple):
    namespace: str
    name: str


class Service(NamedTuple):
    selector: Labels | None
    expressions: tuple[Any, ...] = ()
    note: str = ""


def selector_of(key: Key, row: Service) -> Selector | None:
    return None if row.selector is None else Selector(key.namespace, row.selector, row.expressions)


def labels_of(key: Key, labels: Labels) -> Labelled | None:
    if "hidden" in labels:
        return None
    if "hostile" in labels:
        raise ValueError("hostile")
    return Labelled(key.namespace, labels)


SERVICES: Table[Key, Service] = Table("services")
PODS: Table[Key, Labels] = Table("pods")
SELECTED: Join[Key, Service, Key, Labels] = Join(
    "service_pods", SERVICES, selector_of, PODS, labels_of
)

S, T = Key("n", "s"), Key("n", "t")
A, B, FAR = Key("n", "a"), Key("n", "b"), Key("far", "a")


@query
def members(db: View, key: Key) -> tuple[Key, ...]:
    return SELECTED.members(db, key)


@query
def selectors(db: View, key: Key) -> tuple[Key, ...]:
    return SELECTED.selectors(db, key)


def serve(key: Key, selector: Labels | None, *expressions: tuple[Any, ...]) -> Put[Key, Service]:
    return Put(SERVICES, key, Service(selector, expressions))


def pod(key: Key, **labels: str) -> Put[Key, Labels]:
    return Put(PODS, key, labels)


def test_both_directions_within_a_scope() -> None:
    db = Database()
    db.commit([serve(S, {"app": "x"}), serve(T, {}), pod(A, app="x"), pod(B), pod(FAR, app="x")])
    assert (db.read(members, S), db.read(members, T)) == ((A,), (A, B))
    assert (db.read(selectors, A), db.read(selectors, B)) == ((S, T), (T,))
    assert db.read(selectors, FAR) == ()


def test_what_is_not_there_selects_nothing_and_hears_when_it_comes() -> None:
    db = Database()
    watch = db.watch(ignore)
    watch.add(members, S)
    watch.add(selectors, A)
    assert watch.take() == {(members, S): (), (selectors, A): ()}
    db.commit([serve(S, {"app": "x"})])
    assert watch.take() == {}
    db.commit([pod(A, app="x")])
    assert watch.take() == {(members, S): (A,), (selectors, A): (S,)}
    db.commit([Delete(SERVICES, S)])
    assert watch.take() == {(members, S): (), (selectors, A): ()}


def test_a_relabel_touches_only_the_selectors_it_concerns() -> None:
    db = Database()
    db.commit([serve(S, {"app": "x"}), serve(T, {"app": "y"}), pod(A, app="x"), pod(B, app="y")])
    watch = db.watch(ignore)
    for key in (S, T):
        watch.add(members, key)
    watch.take()
    before = db.evaluations
    db.commit([pod(A, app="x", extra="1")])
    assert watch.take() == {}
    assert db.evaluations == before
    db.commit([pod(A, app="z")])
    assert watch.take() == {(members, S): ()}
    assert db.evaluations == before + 1


def test_a_selector_that_changes_is_filed_anew() -> None:
    db = Database()
    db.commit([serve(S, {"app": "x"}), pod(A, app="x"), pod(B, app="y")])
    assert db.read(members, S) == (A,)
    db.commit([serve(S, {"app": "y"})])
    assert db.read(members, S) == (B,)
    db.commit([pod(A, app="y")])
    assert db.read(members, S) == (A, B)
    db.commit([serve(S, None)])
    assert (db.read(members, S), db.read(selectors, A)) == ((), ())


def test_a_selector_and_an_object_that_move_leave_no_old_place_behind() -> None:
    db = Database()
    db.commit([serve(S, {"app": "x"}), pod(A, app="x")])
    assert db.read(members, S) == (A,)
    db.commit([serve(S, {"app": "y"}), pod(A, app="y", tier="1")])
    state = keeper_of(db)._state
    assert [state.filed.get(("n", ("app", app))) for app in "xy"] == [(), (S,)]
    assert [state.present.get(("n", ("app", app))) for app in "xy"] == [(), (A,)]
    db.commit([Delete(SERVICES, S), Delete(PODS, A)])
    assert [state.filed.get(("n", ("app", app))) for app in "xy"] == [(), ()]
    assert [state.present.get(("n", place)) for place in (("app", "y"), ("tier", "1"), "*")] == [
        (),
        (),
        (),
    ]


def test_selector_and_labels_that_change_together_leave_no_trace() -> None:
    """They part and meet again within one commit: nobody is told, nothing is recomputed."""
    db = Database()
    db.commit([serve(S, {"app": "x"}), pod(A, app="x")])
    assert (db.read(members, S), db.read(selectors, A)) == ((A,), (S,))
    before = db.evaluations
    db.commit([serve(S, {"app": "y"}), pod(A, app="y")])
    assert (db.read(members, S), db.read(selectors, A)) == ((A,), (S,))
    assert db.evaluations == before


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        (("env", "In", ("prod", "test")), {"prod", "test"}),
        (("env", "In", ()), set()),
        (("env", "NotIn", ("prod",)), {"test", "dev", "none"}),
        (("env", "NotIn", ()), {"prod", "test", "dev", "none"}),
        (("env", "Exists", ()), {"prod", "test", "dev"}),
        (("env", "DoesNotExist", ()), {"none"}),
    ],
    ids=lambda value: " ".join(sorted(map(str, value))),
)
def test_operators(expression: tuple[Any, ...], selected: set[str]) -> None:
    db = Database()
    db.commit(pod(Key("n", env), app="x", env=env) for env in ("prod", "test", "dev"))
    db.commit([pod(Key("n", "none"), app="x"), serve(S, {}, expression)])
    db.commit([serve(T, {"app": "x"}, expression)])
    for key in (S, T):
        assert {found.name for found in db.read(members, key)} == selected


def test_all_expressions_must_hold() -> None:
    one = Selector("n", {"a": "1"}, (("b", "Exists", ()), ("c", "NotIn", ("2",))))
    assert one.matches({"a": "1", "b": "", "c": "3"})
    assert not one.matches({"a": "1", "c": "3"})
    assert not one.matches({"a": "1", "b": "", "c": "2"})
    assert not one.matches({"a": "2", "b": "", "c": "3"})


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"selector on 'a': 'Gt' is none of DoesNotExist, Exists"):
        Selector("n", {}, (("a", "Gt", ("1",)),))  # type: ignore[arg-type]


def test_selectors_and_labels_compare_by_meaning() -> None:
    assert Selector("n", {"b": "2", "a": "1"}) == Selector("n", [("a", "1"), ("b", "2")])
    assert Labelled("n", (("a", "1"),)) == Labelled("n", {"a": "1"})
    one, other = Labelled("n", {"a": "1", "b": "2"}), Labelled("n", {"b": "2", "a": "1"})
    assert (one, hash(one)) == (other, hash(other))
    assert Labelled("n", {"a": "1"}) != Labelled("m", {"a": "1"})


def test_a_row_may_opt_out_and_a_hostile_one_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    assert db.read(members, S) == ()
    db.commit([serve(S, {}), pod(A, hidden=""), pod(B, hostile=""), pod(Key("n", "c"))])
    assert db.read(members, S) == (Key("n", "c"),)
    assert "service_pods failed at Key(namespace='n', name='b')" in caplog.text
    db.commit([pod(A), pod(B)])
    assert db.read(members, S) == (A, B, Key("n", "c"))
    db.commit([Delete(PODS, A), pod(B, hidden="")])
    assert db.read(members, S) == (Key("n", "c"),)


def keeper_of(db: Database) -> JoinKeeper:
    [keeper] = db.keepers[PODS]
    assert isinstance(keeper, JoinKeeper)
    return keeper


def test_a_selector_is_filed_under_its_rarest_pair() -> None:
    db = Database()
    db.commit(pod(Key("n", str(at)), managed="helm", app=str(at)) for at in range(20))
    db.commit(serve(Key("n", str(at)), {"managed": "helm", "app": str(at)}) for at in range(20))
    assert db.read(members, Key("n", "7")) == (Key("n", "7"),)
    filed = keeper_of(db)._state.filed
    assert filed.get(("n", ("managed", "helm"))) == ()
    assert filed.get(("n", ("app", "7"))) == (Key("n", "7"),)


def test_before_there_are_objects_selectors_spread_over_their_pairs() -> None:
    db = Database()
    assert db.read(members, S) == ()
    names = [Key("n", str(at)) for at in range(50)]
    db.commit(serve(key, {"app": "same", "version": key.name}) for key in names)
    filed = keeper_of(db)._state.filed
    assert len(filed.get(("n", ("app", "same")))) <= 1
    db.commit(pod(key, app="same", version=key.name) for key in names)
    assert [db.read(members, key) for key in names] == [(key,) for key in names]


def test_a_relabel_verifies_only_selectors_under_its_own_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database()
    db.commit(serve(Key("n", str(at)), {"app": str(at)}) for at in range(1000))
    db.commit([pod(A, app="1")])
    assert db.read(selectors, A) == (Key("n", "1"),)
    verified: list[Selector] = []
    matches = Selector.matches

    def counted(self: Selector, labels: Any) -> bool:
        verified.append(self)
        return matches(self, labels)

    monkeypatch.setattr(Selector, "matches", counted)
    db.commit([pod(A, app="2")])
    assert [one.pairs for one in verified] == [(("app", "2"),)]
    assert db.read(selectors, A) == (Key("n", "2"),)


SELF: Join[Key, Labels, Key, Labels] = Join(
    "self", PODS, lambda key, row: Selector(key.namespace, row), PODS, labels_of
)


@query
def alike(db: View, key: Key) -> tuple[Key, ...]:
    return SELF.members(db, key)


def test_a_table_may_be_joined_with_itself() -> None:
    db = Database()
    assert db.read(alike, A) == ()
    db.commit([pod(A, app="x"), pod(B, app="x", more="1")])
    assert (db.read(alike, A), db.read(alike, B)) == ((A, B), (B,))
    db.commit([pod(B, app="y")])
    assert (db.read(alike, A), db.read(alike, B)) == ((A,), (B,))


def test_a_join_in_a_fork() -> None:
    db = Database()
    db.commit([serve(S, {"app": "x"}), pod(A, app="x"), pod(B, app="y")])
    assert (db.read(members, S), db.read(selectors, B)) == ((A,), ())
    fork = db.fork([pod(B, app="x"), Delete(PODS, A)])
    assert (fork.read(members, S), fork.read(selectors, B)) == ((B,), (S,))
    assert fork.read(selectors, A) == ()
    assert (db.read(members, S), db.read(selectors, B)) == ((A,), ())
    other = db.fork([serve(S, {"app": "y"})])
    assert (other.read(members, S), other.read(selectors, A)) == ((B,), ())


def test_a_join_says_what_it_is() -> None:
    assert repr(SELECTED) == "<join service_pods>"
    assert SELECTED.to_objects.tables == (SERVICES, PODS)


LIST: Any = ["x"]


@pytest.mark.parametrize(
    "hostile", [pod(A, app=LIST), serve(A, {"app": LIST})], ids=["pod", "service"]
)
def test_what_cannot_be_filed_stops_nothing(hostile: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A label whose value is a list, as only unchecked input would have it."""
    db = Database()
    assert db.read(members, S) == ()
    db.commit([hostile, serve(S, {}), pod(B, app="x")])
    assert db.read(members, S) == (B,)
    assert db.read(members, A) == ()
    assert "service_pods failed at Key(namespace='n', name='a')" in caplog.text
    db.commit([Delete(PODS, A), Delete(SERVICES, A)])
    assert db.read(members, S) == (B,)
