"""Failures on request, with time and chance at hand."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from isthmus.lab.faces.trouble import Fate, Plan, Trouble, plan


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, Plan()),
        ({"DELAY_BUCKETS": "0, 5,x,-3,1500"}, Plan(delays=(0.0, 0.005, 0.0, 1.5))),
        ({"ERROR_FRACTION": "30", "LATCH_FRACTION": "101"}, Plan(errors=30, latches=100)),
        ({"ERROR_FRACTION": "-1", "MAX_RATE": "0.05"}, Plan()),
        ({"ERROR_FRACTION": "nan", "MAX_RATE": "inf"}, Plan()),
        ({"MAX_RATE": "2.5"}, Plan(most_rate=2.5)),
        ({"ERROR_FRACTION": "many", "MAX_RATE": "much"}, Plan()),
    ],
)
def test_the_environment(env: dict[str, str], found: Plan) -> None:
    assert plan(env) == found


@pytest.mark.parametrize(("asked", "low", "high"), [(0, 0, 0), (30, 270, 330), (100, 1000, 1000)])
def test_a_fraction_is_what_it_says(asked: int, low: int, high: int) -> None:
    trouble = Trouble(Plan(errors=asked), Random(1))
    fates = Counter(trouble.turn(0.0).fate for _ in range(1000))
    assert low <= fates[Fate.FAILED] <= high


def test_every_request_waits_one_of_the_delays_failing_ones_too() -> None:
    trouble = Trouble(Plan(delays=(0.1, 0.2), errors=50), Random(1))
    seen = {(turn.fate, turn.delay) for turn in (trouble.turn(0.0) for _ in range(100))}
    fates = (Fate.SERVED, Fate.FAILED)
    assert seen == {(fate, delay) for fate in fates for delay in (0.1, 0.2)}


def test_a_latched_process_recovers_when_it_is_left_alone() -> None:
    trouble = Trouble(Plan(errors=100, latches=100), Random(1))
    assert trouble.turn(0.0).fate is Fate.STUCK
    calm = Trouble(Plan(errors=100, latches=100), Random(1))
    calm.turn(0.0)
    calm._plan = Plan()  # noqa: SLF001  # only what is latched fails from here on
    assert calm.turn(29.0).fate is Fate.STUCK
    assert calm.turn(59.0).fate is Fate.STUCK  # 30 s after the one before: not longer
    assert calm.turn(89.1).fate is Fate.SERVED


def test_a_rate_limit_lets_its_rate_through() -> None:
    trouble = Trouble(Plan(most_rate=2.0), Random(1))
    fates = Counter(trouble.turn(each / 10).fate for each in range(1000))
    assert set(fates) == {Fate.SERVED, Fate.LIMITED}
    assert 195 <= fates[Fate.SERVED] <= 225
    assert trouble.turn(200.0).fate is Fate.SERVED


def test_the_rate_is_told_where_it_counts() -> None:
    assert Trouble(Plan(), Random(1)).rate_text(0.0) == "N/A"
    trouble = Trouble(Plan(most_rate=50.0), Random(1))
    for _ in range(23):
        trouble.turn(5.0)
    assert trouble.rate_text(6.0) == "2.3 RPS"
    assert trouble.rate_text(15.0) == "0.0 RPS"
