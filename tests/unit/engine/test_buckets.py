"""Buckets and overlays, small and big, layered and not."""

# ruff: noqa: SLF001
from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from isthmus.engine.buckets import Buckets, Overlay, ordered


class Colour(Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("size", [1, 8, 9, 100])
def test_members_are_sorted_and_kept_once(size: int) -> None:
    buckets: Buckets[str, int] = Buckets()
    for member in (*range(size - 1, -1, -1), 0):
        buckets.add("k", member)
    assert buckets.get("k") == tuple(range(size))
    assert buckets.get("k") is buckets.get("k")
    buckets.add("k", -1)
    buckets.remove("k", 0)
    buckets.remove("k", 1000)
    assert buckets.get("k") == (-1, *range(1, size))
    assert sorted(buckets.peek("k")) == [-1, *range(1, size)]
    for member in (-1, *range(size)):
        buckets.remove("k", member)
    assert buckets.get("k") == ()
    assert buckets._own == {}, "an empty bucket is no bucket"


@pytest.mark.parametrize("size", [1, 8, 9, 100])
def test_a_layer_leaves_its_base_alone(size: int) -> None:
    base: Buckets[str, int] = Buckets()
    for member in range(size):
        base.add("k", member)
    layer = Buckets(base)
    assert layer.get("k") == tuple(range(size))
    layer.add("k", size)
    layer.remove("k", 0)
    layer.add("other", 1)
    assert layer.get("k") == tuple(range(1, size + 1))
    assert (base.get("k"), base.get("other")) == (tuple(range(size)), ())
    for member in range(1, size + 1):
        layer.remove("k", member)
    assert (layer.get("k"), base.get("k")) == ((), tuple(range(size)))
    layer.add("k", 5)
    assert layer.get("k") == (5,)


def test_members_without_an_order_are_sorted_by_text() -> None:
    mixed: list[Any] = [Colour.RED, 2, "a", None, Colour.BLUE, ("t", None), ("t", 1), 1, "b", "c"]
    expected = tuple(sorted(mixed, key=repr))
    assert tuple(ordered(reversed(mixed))) == expected
    buckets: Buckets[str, Any] = Buckets()
    for member in mixed:
        buckets.add("k", member)
    assert buckets.get("k") == expected
    buckets.remove("k", 2)
    assert buckets.get("k") == tuple(m for m in expected if m != 2)
    buckets.add("k", 2)
    assert buckets.get("k") == expected


def test_a_member_without_an_order_may_join_and_leave_sorted_ones() -> None:
    buckets: Buckets[str, Any] = Buckets()
    for member in range(20):
        buckets.add("k", member)
    assert buckets.get("k") == tuple(range(20))
    buckets.add("k", "odd")
    assert buckets.get("k") == tuple(sorted([*range(20), "odd"], key=repr))
    buckets.remove("k", "odd")
    assert buckets.get("k") == tuple(range(20))


def test_an_overlay_hides_adds_and_lists() -> None:
    base: dict[str, int] = {"a": 1, "b": 2}
    layer: Overlay[str, int] = Overlay(base)
    layer["b"] = 3
    layer["c"] = 4
    layer.pop("a", None)
    assert [layer.get(key) for key in "abcd"] == [None, 3, 4, None]
    assert dict(layer.items()) == {"b": 3, "c": 4}
    assert base == {"a": 1, "b": 2}
    top: Overlay[str, int] = Overlay(layer)
    top.pop("c", None)
    assert dict(top.items()) == {"b": 3}
