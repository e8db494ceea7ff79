"""Pages of the Prometheus text format: reading one, and writing another."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MOST: Final = 200_000
"""Lines of one page."""

Labels = tuple[tuple[str, str], ...]

_LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(?P<key>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)",?')


class Sample(NamedTuple):
    """One line: a series and its value."""

    name: str
    labels: Labels
    value: float


def read(page: str) -> Iterator[Sample]:
    """The series of a page; what cannot be read is left out."""
    for line in page.splitlines()[:MOST]:
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        labels = tuple(
            (each["key"], each["value"]) for each in _LABEL.finditer(found["labels"] or "")
        )
        try:
            yield Sample(found["name"], labels, float(found["value"]))
        except ValueError:
            continue


class Page:
    """Series to be written, by family. What is added twice is added up."""

    def __init__(self, *, fine: bool = False) -> None:
        """`fine`: histograms keep all of their buckets."""
        self.fine = fine
        self._kinds: dict[str, str] = {}
        self._series: dict[str, dict[tuple[str, Labels], float]] = defaultdict(dict)

    def add(self, family: str, kind: str, labels: Labels, value: float, suffix: str = "") -> None:
        """Add to a series of a family, which is a counter, a gauge or a histogram.

        A counter's name ends in `_total`, which is no part of the family's.
        """
        name = f"{family}_total" if kind == "counter" else f"{family}{suffix}"
        self._kinds[family] = kind
        known = self._series[family]
        known[name, labels] = known.get((name, labels), 0.0) + value

    def count(self, family: str, labels: Labels, value: float) -> None:
        """Add to a counter."""
        self.add(family, "counter", labels, value)

    @property
    def text(self) -> str:
        """All of it, families by name."""
        return "".join(self._lines())

    def _lines(self) -> Iterable[str]:
        for family in sorted(self._series):
            yield f"# TYPE {family} {self._kinds[family]}\n"
            for (name, labels), value in self._series[family].items():
                inner = ",".join(f'{label}="{text}"' for label, text in labels)
                yield f"{name}{{{inner}}} {_number(value)}\n"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
