"""Cells of `kubectl get`: the columns that many kinds share, and short ways to write others."""

from __future__ import annotations

from typing import Final

from isthmus.model.document import get, items, number, text
from isthmus.model.kind import Column, Document
from isthmus.model.times import UNKNOWN, age

NONE: Final = "<none>"
WIDE: Final = 1
"""The priority of columns that only `-o wide` shows."""


def age_cell(document: Document, now: float) -> str:
    """How long the object exists."""
    return age(text(document, "metadata.creationTimestamp"), now)


def _created_cell(document: Document, _now: float) -> str:
    return text(document, "metadata.creationTimestamp") or UNKNOWN


AGE: Final = Column("Age", age_cell)
CREATED_AT: Final = Column("Created At", _created_cell)


def text_column(name: str, path: str, *, priority: int = 0, absent: str = "") -> Column:
    """The string at a dotted path; `absent` where there is none."""
    return Column(name, lambda document, _: text(document, path) or absent, priority=priority)


def number_column(name: str, path: str, *, priority: int = 0, absent: int = 0) -> Column:
    """The integer at a dotted path."""

    def cell(document: Document, _now: float) -> int:
        return number(document, path, absent)

    return Column(name, cell, "integer", priority=priority)


def value_column(name: str, path: str, *, kind: str = "string", priority: int = 0) -> Column:
    """Whatever scalar stands at a dotted path, as custom resources' columns do, or nothing."""

    def cell(document: Document, _now: float) -> str | int | None:
        value = get(document, path)
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str | int) else None

    return Column(name, cell, kind, priority=priority)


def condition_column(name: str, condition: str, *, priority: int = 0) -> Column:
    """The status of a condition: True, False, Unknown, or nothing."""

    def cell(document: Document, _now: float) -> str | None:
        for each in items(document, "status.conditions"):
            if text(each, "type") == condition:
                return text(each, "status")
        return None

    return Column(name, cell, priority=priority)


def at_most(shown: list[str], limit: int = 3, *, empty: str = NONE) -> str:
    """`a,b,c + 2 more...`, as kubectl shortens lists."""
    more = len(shown) - limit
    listed = ",".join(shown[:limit])
    return f"{listed} + {more} more..." if more > 0 else listed or empty
