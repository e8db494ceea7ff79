from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.controllers.listing import changed, merged

RUNS = st.lists(st.integers(0, 12), unique=True)


@given(RUNS, RUNS)
def test_what_changed_is_the_difference_of_both(before: list[int], now: list[int]) -> None:
    found = changed(tuple(before), tuple(now))
    assert found == (set(before) - set(now), set(now) - set(before))


@given(RUNS.map(sorted), RUNS.map(sorted), RUNS.map(sorted))
def test_runs_become_one(one: list[int], two: list[int], three: list[int]) -> None:
    assert merged(tuple(one), tuple(two), tuple(three)) == tuple(sorted({*one, *two, *three}))


def test_what_adds_nothing_leaves_the_very_list() -> None:
    first = (1, 2, 3)
    assert merged(first, (2,), ()) is first
