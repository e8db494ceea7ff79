"""How conditions tell of faults: several in one message, each of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from isthmus.controllers.conditions import Says
from isthmus.ir.faults import Unsupported

SHOWN: Final = 16
"""Faults that a message names; it tells how many more there are."""
LONGEST: Final = 512
"""Characters of one of them."""
MOST: Final = 8
"""Conditions of one parent (Gateway API)."""
RAW_PATHS: Final = "RawPathMatching"
"""The fault that has a condition of its own (decision 20)."""


def listed(told: Sequence[str]) -> str:
    """The first of several; how many more there are."""
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "; ".join(map(_short, told[:SHOWN])) + more


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def supported(faults: Iterable[Unsupported]) -> Iterator[Says]:
    """What proxies in scope will not do: nothing is said while they do all."""
    raw = [one for one in faults if one.feature == RAW_PATHS]
    rest = [one for one in faults if one.feature != RAW_PATHS]
    if raw:
        yield Says(RAW_PATHS, True, RAW_PATHS, listed(_told(raw)))
    if rest:
        yield Says("Supported", False, _reason(rest[0].feature), listed(_told(rest)))


def _told(faults: Iterable[Unsupported]) -> list[str]:
    said = (
        f"{one.dialect}: {one.feature}{': ' if one.detail else ''}{one.detail}" for one in faults
    )
    return list(dict.fromkeys(said))


def _reason(feature: str) -> str:
    """A feature as one word: `failure accrual` becomes `FailureAccrual`."""
    words = "".join(each if each.isalnum() else " " for each in feature).split()
    return "".join(each[:1].upper() + each[1:] for each in words) or "Unsupported"
