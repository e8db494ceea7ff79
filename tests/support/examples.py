"""How many examples a property is tried with, by day and at night."""

from __future__ import annotations

from hypothesis import settings

BY_DAY = 60
"""What a property has that asks for no number of its own."""


def examples(number: int) -> int:
    """`number` by day; under a larger profile as many times more, up to what that profile says."""
    most = settings().max_examples
    return max(number, min(most, number * most // BY_DAY))
