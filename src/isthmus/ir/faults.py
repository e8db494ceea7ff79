"""What a dialect cannot say: never silence, always a condition on the object."""

from __future__ import annotations

from isthmus.ir.names import Source, Value


class Unsupported(Value, frozen=True):
    """`dialect` cannot express `feature`, asked for by `origin`."""

    origin: Source
    feature: str
    dialect: str
    detail: str = ""
