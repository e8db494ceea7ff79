"""A small world for the engine's tests: numbers on a sheet, and a record of what was evaluated."""

# ruff: noqa: ANN401
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from isthmus.engine import Database, Put, Query, Table, View, query

NUMBERS: Table[str, int] = Table("numbers")

RAN: list[str] = []


def put(**numbers: int) -> list[Put[str, int]]:
    return [Put(NUMBERS, name, number) for name, number in numbers.items()]


@query
def number(db: View, name: str) -> int:
    """A row, or 0."""
    RAN.append(f"number {name}")
    return NUMBERS.get(db, name) or 0


@query
def odd(db: View, name: str) -> bool:
    """Often equal although the number changed."""
    RAN.append(f"odd {name}")
    return bool(number(db, name) % 2)


@query
def label(db: View, name: str) -> str:
    RAN.append(f"label {name}")
    return "odd" if odd(db, name) else "even"


@query
def inverse(db: View, name: str) -> int:
    """Raises for 0."""
    RAN.append(f"inverse {name}")
    return 100 // number(db, name)


@query
def twice(db: View, name: str) -> int:
    """Raises what `inverse` raises."""
    RAN.append(f"twice {name}")
    return 2 * inverse(db, name)


@query
def selected(db: View) -> int:
    """Reads `which`, then one of two others."""
    RAN.append("selected")
    return inverse(db, "a") if number(db, "which") == 0 else number(db, "b")


@contextmanager
def ran() -> Iterator[list[str]]:
    """What was evaluated within the block."""
    RAN.clear()
    yield RAN


def evaluated(act: Callable[[], object]) -> list[str]:
    """What `act` evaluated, in the order of starting."""
    with ran() as names:
        act()
    return list(names)


def state(db: Database, one: Query[..., Any], *key: Any) -> int:
    return db.memo[one][one.fold(key)].state


def never() -> None:
    raise AssertionError("woken")


def ignore() -> None:
    """A wake that nobody waits for."""
