from __future__ import annotations

import pytest

from isthmus.model.annotations import Problem, Share, shares
from isthmus.model.annotations.shares import parse_share

KEY = "multicluster.isthmus.dev/member."


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("weight=3", Share(weight=3)),
        ("weight=3, priority=1", Share(weight=3, priority=1)),
        (" priority = 15 ,weight=10000", Share(weight=10_000, priority=15)),
        ("drain", Share(drain=True)),
        ("drain,weight=2", Share(weight=2, drain=True)),
        ("priority=0", Share()),
    ],
)
def test_what_a_member_gets(text: str, share: Share) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be weight=N, priority=N or drain"),
        ("weight", "must be weight=N"),
        ("drain=yes", "must be weight=N"),
        ("heavy=1", "must be weight=N"),
        ("weight=1,", "must be weight=N"),
        ("weight=0", "to give nothing write drain"),
        ("weight=10001", "weight must be a whole number from 1 to 10000"),
        ("weight=1.5", "weight must be a whole number"),
        ("weight=-1", "weight must be a whole number"),
        ("weight=\u0663", "weight must be a whole number"),
        ("priority=16", "priority must be a whole number from 0 to 15"),
        ("weight=1,weight=1", "says weight twice"),
        ("weight=" + "9" * 200, "is longer than 128 characters"),
    ],
)
def test_what_is_not_understood_says_why(text: str, why: str) -> None:
    found = shares({f"{KEY}east": text})["east"]
    assert isinstance(found, Problem)
    assert found.key == f"{KEY}east"
    assert why in found.why


def test_one_that_is_wrong_spoils_no_other() -> None:
    found = shares({f"{KEY}east": "weight=2", f"{KEY}a.b": "drain", f"{KEY}west": "?", KEY: "x"})
    assert found["east"] == Share(weight=2)
    assert found["a.b"] == Share(drain=True)
    assert isinstance(found["west"], Problem)
    assert sorted(found) == ["a.b", "east", "west"]
