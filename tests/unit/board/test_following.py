"""One cell, told by a call: in the loop, newest only, in slices, never after the end."""

from __future__ import annotations

import pytest

from isthmus.aio import Clock, ManualClock, SystemClock, breathe
from isthmus.board import Following
from isthmus.engine import Database, Delete, Put, Table, View, query

pytestmark = pytest.mark.anyio

NUMBERS: Table[int, int] = Table("following_numbers")


@query
def half(db: View, key: int) -> int:
    """Fails for an odd number."""
    whole, odd = divmod(NUMBERS.get(db, key) or 0, 2)
    if odd:
        raise ArithmeticError("a bug")
    return whole


@query
def total(db: View, most: int) -> int:
    return sum(half(db, each) for each in range(most))


class Told:
    def __init__(self, clock: Clock | None = None, most: int | None = None) -> None:
        self.db, self.values = Database(), list[int]()
        asked = (half, 1) if most is None else (total, most)
        self.one = Following(self.db, clock or SystemClock(), self.values.append, *asked)

    def put(self, number: int, key: int = 1) -> None:
        self.db.commit([Put(NUMBERS, key, number)])


async def test_it_begins_with_what_is_true_and_tells_the_newest_only() -> None:
    told = Told()
    assert told.values == []
    await breathe()
    told.put(2)
    told.put(4)
    await breathe()
    told.put(6)
    told.put(4)
    await breathe()
    assert told.values == [0, 2]
    told.one.close()


async def test_to_catch_up_is_to_be_told_at_once() -> None:
    told = Told()
    told.one.catch_up()
    told.put(2)
    told.one.catch_up()
    assert told.values == [0, 1]
    told.put(4)
    await breathe()
    told.one.catch_up()
    assert told.values == [0, 1, 2]
    told.one.close()


async def test_a_query_that_fails_tells_nothing() -> None:
    told = Told()
    await breathe()
    told.put(3)
    await breathe()
    assert told.values == [0]
    told.put(4)
    await breathe()
    assert told.values == [0, 2]
    told.one.close()


async def test_after_the_end_nobody_is_told_and_no_cell_is_left() -> None:
    told = Told()
    told.put(2)
    told.one.close()
    await breathe()
    told.put(4)
    await breathe()
    assert told.values == []
    assert told.db.stats.cells == 0


class Late(ManualClock):
    """A clock for which every look takes longer than a slice."""

    def now(self) -> float:
        self.looked = getattr(self, "looked", 0.0) + 1.0
        return self.looked


async def test_long_work_is_cut_into_slices() -> None:
    told = Told(Late(), most=100)
    await breathe()
    for number in range(50):
        told.put(2, key=number)
    told.db.commit([Delete(NUMBERS, 0)])
    turns = 0
    while told.values != [0, 49]:
        await breathe()
        turns += 1
    assert turns > 1
    told.one.close()
