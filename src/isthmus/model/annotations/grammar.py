"""Durations, numbers and truths as annotations write them, and what is wrong when they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from isthmus.errors import Cause
from isthmus.model.faults import invalid

T = TypeVar("T")

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LARGEST: Final = 2**64 - 1
_DIGITS: Final = re.compile(r"[0-9]{1,32}")
_RATIO: Final = re.compile(r"[+-]?(?:[0-9]{1,32}\.?[0-9]{0,32}|\.[0-9]{1,32})")
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class Problem(NamedTuple):
    """An annotation that says nothing that can be understood."""

    key: str
    value: str
    why: str

    @property
    def warning(self) -> str:
        """For the writer of an object that is taken all the same."""
        return f"metadata.annotations[{self.key}]: {self.why}; it has no effect"

    @property
    def fault(self) -> Cause:
        """For the writer of an object that is refused."""
        return invalid(f"metadata.annotations[{self.key}]", self.value, self.why)


class Unfit(ValueError):
    """What a parser of a single value raises; `parsed` makes a Problem of it."""


def parsed(
    annotations: Mapping[str, str], key: str, parse: Callable[[str], T]
) -> T | Problem | None:
    """The value of an annotation, what is wrong with it, or None where it is absent."""
    value = annotations.get(key)
    if value is None:
        return None
    try:
        return parse(value)
    except Unfit as fault:
        return Problem(key, value[:128], str(fault))


def first_problem(*found: object) -> Problem | None:
    """The first of these that is a Problem."""
    return next((each for each in found if isinstance(each, Problem)), None)


def parse_duration(text: str) -> int:
    """Milliseconds of `10s`, `500ms`, `5m`, `2h`, `1d` or `0`; one number, one unit. Unfit."""
    said = text.strip()
    last = max((at for at, mark in enumerate(said) if mark in "0123456789"), default=-1)
    number, unit = said[: last + 1], said[last + 1 :]
    if said.startswith("-"):
        raise Unfit("a duration may not be negative")
    if "." in number:
        raise Unfit("a duration may not have fractions; use a smaller unit")
    if not _DIGITS.fullmatch(number):
        raise Unfit("a duration must be a whole number and a unit, such as 10s")
    count = int(number)
    if not unit and count == 0:
        return 0
    if unit not in _UNITS:
        raise Unfit("a duration must have one of the units ms, s, m, h, d")
    if count > _LARGEST or count * _UNITS[unit] > _LARGEST:
        raise Unfit("the duration is too long")
    return count * _UNITS[unit]


def parse_truth(text: str) -> bool:
    """The words for true and false that Go knows, trimmed. Unfit."""
    word = text.strip()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise Unfit("must be true or false")


def parse_count(text: str, *, bits: int) -> int:
    """A whole number that fits `bits`; digits only, not trimmed. Unfit."""
    if not _DIGITS.fullmatch(text) or int(text) >= 2**bits:
        raise Unfit(f"must be a whole number from 0 to {2**bits - 1}")
    return int(text)


def parse_ratio(text: str, *, most: float) -> float:
    """A number from 0 to `most`. Unfit."""
    said = text.strip()
    if not _RATIO.fullmatch(said) or not 0 <= float(said) <= most:
        raise Unfit(f"must be a number from 0 to {most:g}")
    return float(said)
