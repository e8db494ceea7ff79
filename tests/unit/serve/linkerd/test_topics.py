"""Streams that ask the same share one cell, and hold the same at every moment."""

from __future__ import annotations

import pytest

from isthmus.aio import breathe
from isthmus.serve.linkerd.topics import Topics
from tests.unit.serve.linkerd.board import Words, word


class Ear:
    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def learn(self, value: bytes) -> None:
        self.heard.append(value)


async def test_who_asks_the_same_shares_a_cell() -> None:
    words = Words()
    topics = Topics(words)
    ears = [Ear() for _ in range(5)]
    for each in ears:
        topics.join(word, "a", each.learn)
    await breathe()
    words.put(a="x")
    await breathe()
    assert len(topics) == len(words.database.watches) == 1
    assert all(each.heard[-1] == b"x" for each in ears)
    before = words.database.stats.evaluations
    words.put(a="y")
    await breathe()
    assert words.database.stats.evaluations == before + 1


async def test_the_last_to_leave_lets_the_cell_go() -> None:
    words = Words()
    topics = Topics(words)
    one, two = Ear().learn, Ear().learn
    topics.join(word, "a", one)
    topics.join(word, "a", two)
    topics.leave(word, "a", one)
    topics.leave(word, "a", one)
    assert len(topics) == 1
    topics.leave(word, "a", two)
    topics.leave(word, "b", two)
    words.database.forget()
    assert (len(topics), words.database.stats.cells) == (0, 0)


async def test_who_comes_between_two_changes_is_not_left_behind() -> None:
    """The cell goes from x to y and back before anybody was told: for the first nothing changed."""
    words = Words()
    words.put(a="x")
    topics = Topics(words)
    first, second = Ear(), Ear()
    topics.join(word, "a", first.learn)
    await breathe()
    words.put(a="y")
    topics.join(word, "a", second.learn)
    words.put(a="x")
    await breathe()
    assert first.heard[-1] == second.heard[-1] == b"x"


async def test_who_asks_what_fails_joins_nothing() -> None:
    words = Words()
    words.put(a="bug")
    topics = Topics(words)
    with pytest.raises(LookupError):
        topics.join(word, "a", Ear().learn)
    assert len(topics) == len(words.database.watches) == 0
