"""What may be a query, how it is called, and what it may return."""

# ruff: noqa: ANN401
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from isthmus.engine import BadKey, BadQuery, Database, InsideQuery, OutsideQuery, View, query
from tests.unit.engine.world import NUMBERS, ignore, inverse, number, odd, put, ran, twice


async def coroutine(_db: View) -> int:
    return 1


def generator(_db: View) -> Iterator[int]:
    yield 1


async def stream(_db: View) -> AsyncIterator[int]:
    yield 1


def nothing() -> int:
    return 1


def default(_db: View, _key: str = "a") -> int:
    return 1


def named(_db: View, *, _key: str) -> int:
    return 1


def variable(_db: View, *_keys: str) -> int:
    return 1


class Class:
    def method(self, _db: View) -> int:
        return 1


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (coroutine, "coroutine or generator"),
        (generator, "coroutine or generator"),
        (stream, "coroutine or generator"),
        (nothing, "must take a view and then keys"),
        (default, "without defaults"),
        (named, "all positional"),
        (variable, "all positional"),
        (Class.method, "Class.method is not a module-level function"),
        (Class, "not a module-level function"),
        (len, "not a module-level function"),
    ],
)
def test_what_cannot_be_a_query(fn: Any, why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        query(fn)


@query
def add(db: View, one: str, two: str) -> int:
    """Adds two numbers."""
    return number(db, one) + number(db, two)


@query
def none(db: View) -> int:
    return add(db, "a", "a")


def test_a_query_keeps_its_name_and_docstring() -> None:
    assert (add.__name__, add.__doc__) == ("add", "Adds two numbers.")
    assert repr(add) == "<query tests.unit.engine.test_query.add>"
    assert add.describe(("a", "b")) == "add('a', 'b')"


def test_queries_of_no_one_and_two_keys() -> None:
    db = Database()
    db.commit(put(a=1, b=2))
    assert (db.read(none), db.read(number, "b"), db.read(add, "a", "b")) == (2, 2, 3)
    watch = db.watch(ignore)
    watch.add(none)
    watch.add(number, "b")
    watch.add(add, "a", "b")
    assert watch.take() == {(none,): 2, (number, "b"): 2, (add, "a", "b"): 3}


@query
def miscounts(db: View) -> int:
    return add(db, "a")  # type: ignore[call-arg]


def test_a_wrong_number_of_keys_is_refused() -> None:
    db = Database()
    with pytest.raises(BadQuery, match=r"add takes 2 keys, was given 1"):
        db.read(add, "a")  # type: ignore[call-arg]
    with pytest.raises(BadQuery, match=r"number takes 1 keys, was given 2"):
        db.read(number, "a", "b")  # type: ignore[call-arg]
    with pytest.raises(BadQuery, match=r"add takes 2 keys, was given 1"):
        db.read(miscounts)


def test_a_query_is_not_called_outside_queries() -> None:
    db = Database()
    with pytest.raises(OutsideQuery, match=r"number\('a'\) called outside queries"):
        number(db, "a")
    assert db.stats.cells == 0


@query
def builds(_db: View, kind: str) -> Any:
    made: dict[str, Any] = {
        "list": [],
        "dict": {},
        "set": set(),
        "map": map(str, ()),
        "generator": (x for x in "a"),
        "tuple": (),
    }
    return made[kind]


@pytest.mark.parametrize("kind", ["list", "dict", "set", "map", "generator"])
def test_a_query_returns_something_frozen(kind: str) -> None:
    with pytest.raises(BadQuery, match=rf"builds\('{kind}'\) returned a {kind}; it must be frozen"):
        Database().read(builds, kind)


def test_a_tuple_is_frozen() -> None:
    assert Database().read(builds, "tuple") == ()


@query
def smuggled(db: View, what: str) -> int:
    assert isinstance(db, Database)
    match what:
        case "read":
            return db.read(number, "a")
        case "trace":
            db.trace(number, "a")
        case "fork":
            db.fork([])
        case "rows":
            NUMBERS.rows(db)
        case "watch":
            db.watch(ignore).add(number, "a")
        case "settle":
            db.watch(ignore).settle()
            next(iter(db.watches)).take()
        case "drop":
            db.watch(ignore).drop(number, "a")
    return 0


@pytest.mark.parametrize("what", ["read", "trace", "fork", "rows", "watch", "settle", "drop"])
def test_what_belongs_outside_is_refused_inside(what: str) -> None:
    db = Database()
    db.watch(ignore).add(number, "b")
    with pytest.raises(InsideQuery, match=r"inside"):
        db.read(smuggled, what)


@query
def reads_badly(db: View) -> tuple[int, ...]:
    return tuple(number(db, name) for name in ("a", True))  # type: ignore[arg-type]


@query
def rows_badly(db: View) -> int | None:
    return NUMBERS.get(db, 1.5)  # type: ignore[arg-type]


def test_a_bad_key_inside_a_query_is_a_bug_of_that_query() -> None:
    db = Database()
    with pytest.raises(BadKey, match=r"number: True \(bool\)"):
        db.read(reads_badly)
    with pytest.raises(BadKey, match=r"numbers: 1.5 \(float\)"):
        db.read(rows_badly)


@query
def truth(db: View) -> object:
    return bool(number(db, "a")) if number(db, "b") else number(db, "a")


def test_values_of_different_types_are_different() -> None:
    db = Database()
    db.commit(put(a=1))
    assert db.read(truth) is not True
    db.commit(put(b=1))
    assert db.read(truth) is True


class Prickly:
    def __eq__(self, other: object) -> bool:
        raise ArithmeticError("not comparable")

    __hash__ = None  # type: ignore[assignment]


@query
def prickly(db: View) -> object:
    number(db, "a")
    return Prickly()


def test_a_value_that_cannot_be_compared_is_a_bug_of_its_query() -> None:
    db = Database()
    db.read(prickly)
    db.commit(put(a=1))
    with pytest.raises(ArithmeticError):
        db.read(prickly)


@query
def interrupted(db: View) -> int:
    if number(db, "stop") and not odd(db, "fresh"):
        raise KeyboardInterrupt
    return number(db, "a")


@query
def exhausted(db: View) -> int:
    if number(db, "stop"):
        raise MemoryError
    return number(db, "a")


@pytest.mark.parametrize(
    ("one", "raised"), [(interrupted, KeyboardInterrupt), (exhausted, MemoryError)]
)
def test_what_says_nothing_about_the_query_is_not_memoised(
    one: Any, raised: type[BaseException]
) -> None:
    db = Database(idle=0)
    watch = db.watch(ignore)
    watch.add(one)
    watch.take()
    db.commit(put(stop=1))
    for _ in range(2):
        with pytest.raises(raised):
            watch.take()
    assert "fresh" not in db.memo[odd], "what the broken evaluation had begun to need is released"
    db.commit(put(stop=0, a=2))
    assert watch.take() == {(one,): 2}
    watch.close()
    assert db.stats.cells == db.stats.inputs == 0


def test_an_equal_exception_is_no_change_and_not_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    with pytest.raises(ZeroDivisionError):
        db.read(twice, "a")
    db.commit(put(a=200))
    assert db.read(twice, "a") == 0
    db.commit(put(a=0, b=1))
    with ran() as again, pytest.raises(ZeroDivisionError):
        db.read(twice, "a")
    assert again == ["number a", "inverse a", "twice a"]
    assert db.stats.failures == 2
    caplog.clear()
    db.commit([*put(a=0), *put(b=2)])
    with ran() as again, pytest.raises(ZeroDivisionError):
        db.read(twice, "a")
    assert again == []
    assert caplog.text == ""


@query
def brittle(db: View) -> int:
    raise ValueError("negative" if number(db, "a") < 0 else "positive")


@query
def over(db: View) -> str:
    try:
        return str(brittle(db))
    except ValueError as fault:
        return str(fault)


def test_readers_of_a_failing_query_are_cut_off_when_it_fails_the_same_way() -> None:
    db = Database()
    assert db.read(over) == "positive"
    db.commit(put(a=1))
    before = db.evaluations
    assert db.read(over) == "positive"
    assert db.evaluations == before + 2, "number and brittle"
    db.commit(put(a=-1))
    assert db.read(over) == "negative"


def test_inverse_recovers_to_the_same_object() -> None:
    db = Database()
    db.commit(put(a=3))
    before = db.read(inverse, "a")
    db.commit(put(a=0))
    with pytest.raises(ZeroDivisionError):
        db.read(inverse, "a")
    db.commit(put(a=3))
    assert db.read(inverse, "a") is before
