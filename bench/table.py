"""One figure, and many of them as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Figure(NamedTuple):
    """Something that was measured.

    `aim` says what is wanted ("≤ 1.2", "≥ 5"), in the figure's unit; empty if nothing was promised.
    """

    name: str
    value: float
    unit: str
    aim: str = ""


HEAD = ("figure", "value", "unit", "aim")


def written(value: float) -> str:
    """Three digits that count, without exponents: `0.0123`, `1.23`, `12,300`."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    for limit, digits in ((100, 0), (10, 1), (1, 2), (0.1, 3), (0.01, 4)):
        if magnitude >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def table(figures: Iterable[Figure]) -> str:
    """The figures as aligned columns under a head, one line each."""
    rows = [HEAD, *((one.name, written(one.value), one.unit, one.aim) for one in figures)]
    name, value, unit, _ = (max(len(row[column]) for row in rows) for column in range(4))
    lines = [
        f"{row[0]:<{name}}  {row[1]:>{value}}  {row[2]:<{unit}}  {row[3]}".rstrip() for row in rows
    ]
    return "\n".join((lines[0], "-" * max(map(len, lines)), *lines[1:]))
