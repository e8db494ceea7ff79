"""The targets of `make fuzz` stand: what fuzzers found before, and what comes near to it."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.corpus import kept, spoiled
from tests.fuzz.targets import TARGETS

ROUNDS = 3
"""How often each input is spoiled in another way, always the same."""


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_target_takes_what_it_begins_with(name: str) -> None:
    target = TARGETS[name]
    take = target.make()
    for seed in (b"", b"\x00", b"\xff" * 9, *target.seeds):
        take(seed)
        take(seed[: len(seed) // 2])


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_target_takes_what_was_found_before(name: str) -> None:
    take, inputs = TARGETS[name].make(), kept(name)
    assert inputs, "make fuzz KEEP=--keep has not been run"
    for each in inputs:
        take(each)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_target_takes_what_comes_near(name: str) -> None:
    target, chance = TARGETS[name], Random(1)
    take, inputs = target.make(), (*target.seeds, *kept(name))
    for _ in range(ROUNDS):
        for each in spoiled(inputs, target.words, chance):
            take(each)
