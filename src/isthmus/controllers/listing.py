"""Lists of keys: as long as a namespace has objects, made again with each that comes or goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import is_not
from typing import TypeVar

K = TypeVar("K")


def merged(*runs: tuple[K, ...]) -> tuple[K, ...]:
    """The members of sorted runs, each once, in order; costs what their lengths are.

    What is in no run but the first leaves the very tuple: nobody has to look at it again.
    """
    first, *others = runs
    known = set(first)
    more = [one for run in others for one in run if one not in known]
    if not more:
        return first
    # Sorted runs one after the other: the sort finds them and merges.
    return tuple(dict.fromkeys(sorted([*first, *more])))  # type: ignore[type-var]  # keys


def changed(before: Sequence[K], now: Sequence[K]) -> tuple[set[K], set[K]]:
    """What is gone, and what is new; both without doubles. What is the same at both ends is free.

    Of 10,000 names one comes or goes at a time, and the others are the very same objects.
    """
    short = min(len(before), len(now))
    head = _first_difference(before, now, short)
    tail = _first_difference(reversed(before), reversed(now), short - head)
    old, new = before[head : len(before) - tail], now[head : len(now) - tail]
    return set(old).difference(new), set(new).difference(old)


def _first_difference(left: Iterable[K], right: Iterable[K], most: int) -> int:
    return min(most, next(compress(count(), map(is_not, left, right)), most))
