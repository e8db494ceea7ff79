from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from isthmus.controllers.names import SAFE, child, suffix, template_hash

words = st.lists(st.text(max_size=8), min_size=1, max_size=4)


def test_names_spell_no_words() -> None:
    assert set(SAFE) <= set(string.ascii_lowercase + string.digits)
    assert not set(SAFE) & set("aeiou013y")


@given(words, words)
def test_a_suffix_depends_on_every_part_and_on_where_it_ends(
    one: list[str], two: list[str]
) -> None:
    assert set(suffix(*one)) <= set(SAFE)
    assert (suffix(*one, length=40) == suffix(*two, length=40)) == (one == two)


def test_a_hash_does_not_depend_on_the_order_of_fields() -> None:
    assert template_hash({"a": 1, "b": 2}) == template_hash({"b": 2, "a": 1})
    assert template_hash({"a": 1}) != template_hash({"a": 2})


def test_a_collision_moves_the_hash_on() -> None:
    hashes = {template_hash({"a": 1}, collisions) for collisions in range(5)}
    assert len(hashes) == 5


def test_a_long_base_is_cut() -> None:
    name = child("x" * 100, "uid", limit=63)
    assert len(name) == 63
    assert name.startswith("x" * 57 + "-")
