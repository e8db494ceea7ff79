"""Differences made once."""

from __future__ import annotations

from isthmus.engine import ByIdentity


def test_equal_but_other_objects_are_another_question() -> None:
    asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def note(held: tuple[int, ...], now: tuple[int, ...]) -> int:
        asked.append((held, now))
        return len(asked)

    delta = ByIdentity(note)
    one, two = tuple(range(2)), tuple(range(2))
    assert (delta(one, two), delta(two, one), delta(one, two)) == (1, 2, 1)


def test_only_the_last_used_are_kept() -> None:
    made: list[str] = []

    def note(held: str, now: str) -> None:
        made.append(held + now)

    delta = ByIdentity(note, keep=2)
    a, b, c = "a", "b", "c"
    delta(a, b)
    delta(b, c)
    delta(a, b)
    delta(c, a)
    assert len(delta) == 2
    delta(a, b)
    assert made == ["ab", "bc", "ca"]
    delta(b, c)
    assert made == ["ab", "bc", "ca", "bc"]


def test_what_is_kept_does_not_weigh_more_than_it_may() -> None:
    def pair(held: str, now: str) -> str:
        return held + now

    delta = ByIdentity(pair, weigh=len, most=10)
    a, b, c = "aa", "bb", "cc"
    for held, now in ((a, b), (b, c)):
        delta(held, now)
    assert (len(delta), delta.weight) == (2, 8)
    delta(c, a)
    assert (len(delta), delta.weight) == (2, 8)
    delta(a, "." * 50)
    assert (len(delta), delta.weight) == (1, 52)
    delta(a, b)
    assert (len(delta), delta.weight) == (1, 4)
