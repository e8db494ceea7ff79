"""Values of CEL: those of Python, and the few that Python has none for.

int (of 64 bits), float, str, bytes, bool, None, list and dict are as they are; a timestamp is a
datetime, a duration a timedelta. Uint, Optional and TypeName are here, and Opaque for the types
that Kubernetes adds: quantities, addresses, URLs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple


class CelError(Exception):
    """An expression has no value; `||`, `&&`, `all` and `exists` may do without it."""


class Spent(Exception):
    """The budget is used up. Nothing catches it but whoever gave the budget."""


class Budget:
    """Units of work that are left. One is about 0.2 microseconds."""

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Use some; Spent when there are no more."""
        self.left -= units
        if self.left < 0:
            raise Spent


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class TypeName(NamedTuple):
    """A type as a value."""

    name: str


class Optional(NamedTuple):
    """A value that may be absent."""

    present: bool
    value: Any = None


NONE = Optional(False)


class Opaque(NamedTuple):
    """A value of a Kubernetes library; `kind` names its type, `value` compares as the type does."""

    kind: str
    value: Any


_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeName: "type",
}


def type_name(value: object) -> str:
    """The name of a value's type, as `type()` and messages say it."""
    if isinstance(value, Opaque):
        return value.kind
    return _TYPES.get(type(value), "dyn")


NUMBERS = ("int", "uint", "double")


def equal(one: Any, other: Any) -> bool:  # noqa: ANN401 - values of CEL
    """`==`: numbers compare across types, other types only with their own."""
    if type(one) is type(other) and not isinstance(one, list | dict):
        return bool(one == other)
    match one, other:
        case (bool(), _) | (_, bool()):
            return False
        case (int() | float(), int() | float()):
            return bool(one == other)
        case list(), list():
            return len(one) == len(other) and all(map(equal, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(
                equal(value, other[key]) for key, value in one.items()
            )
        case _:
            return False


def measure(value: Any, most: int) -> int:  # noqa: ANN401 - values of CEL
    """Units of reading a value whole: its members, a tenth of its characters; about `most`."""
    units, waiting = 0, [value]
    while waiting and units < most:
        each = waiting.pop()
        units += 1
        match each:
            case str() | bytes():
                units += len(each) // 10
            case list():
                waiting.extend(each)
            case dict():
                waiting.extend(each.values())
            case _:
                pass
    return units
