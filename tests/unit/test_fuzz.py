"""The targets of `make fuzz` stand: each takes its seeds, and bytes that are nothing."""

from __future__ import annotations

import pytest

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_target_takes_what_it_begins_with(name: str) -> None:
    target = TARGETS[name]
    take = target.make()
    for seed in (b"", b"\x00", b"\xff" * 9, *target.seeds):
        take(seed)
        take(seed[: len(seed) // 2])
