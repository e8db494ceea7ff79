"""Durations as Go writes them: `1m0s`, `1.5s`, `300ms`. Whole numbers of nanoseconds inside."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}

_PART: Final = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,20}))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)

_LONGEST: Final = 2**63 - 1


def parse_duration(text: str) -> int | None:
    """Nanoseconds of a Go duration, or None if it is not one or does not fit 64 bits."""
    sign = -1 if text.startswith("-") else 1
    rest = text.removeprefix("-") if sign < 0 else text.removeprefix("+")
    if rest == "0":
        return 0
    total = at = 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            return None
        unit, fraction = _UNITS[part[3]], part[2] or "0"
        total += int(part[1] or "0") * unit + int(fraction) * unit // 10 ** len(fraction)
        at = part.end()
    return sign * total if rest and total <= _LONGEST else None


def format_duration(nanoseconds: int) -> str:
    """Go's text: `0s`, `1.5s`, `2m0s`, `1h0m0s`, `300ms`, `5µs`."""
    if nanoseconds < 0:
        return "-" + format_duration(-nanoseconds)
    if nanoseconds < 1_000_000_000:
        return _below_a_second(nanoseconds)
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    seconds = _decimal(rest, _UNITS["s"]) + "s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


def _below_a_second(nanoseconds: int) -> str:
    for unit in ("ms", "µs"):
        if nanoseconds >= _UNITS[unit]:
            return _decimal(nanoseconds, _UNITS[unit]) + unit
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)
