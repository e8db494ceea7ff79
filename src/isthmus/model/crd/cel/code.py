"""What an expression is compiled to, and the parts that reading members is made of.

A Code is a type, an estimate of its work, and a function from a frame to the value. A frame is a
list: the budget first, then the variables, each in its slot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from isthmus.model.crd.cel.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    CelType,
    items,
    optional_of,
)
from isthmus.model.crd.cel.values import NONE, CelError, Optional, type_name

Frame = list[Any]
Run = Callable[[Frame], Any]

MOST: Final = 10**15
"""Estimates end here, so that nested ones stay small numbers."""


class TypeFault(ValueError):
    """The expression cannot mean anything: an unknown name, or types that do not go together."""


class Code(NamedTuple):
    """A compiled expression."""

    type: CelType
    cost: int
    run: Run


def deep_size(of: CelType, within: int = 12) -> int:
    """An estimate of everything that a value of the type holds, in units of `values.measure`."""
    if of.name in ("string", "bytes"):
        return 1 + items(of) // 10
    if within == 0:
        return 1
    if of.fields is not None:
        return min(MOST, 1 + sum(deep_size(each, within - 1) for each in of.fields.values()))
    if of.name in ("list", "map"):
        return min(MOST, 1 + items(of) * deep_size(of.inner, within - 1))
    return 1


# ------------------------------------------------------------------------------------ selections


def field_type(of: CelType, field: str) -> CelType:
    """The type of a field; TypeFault where there can be none."""
    if of.name == "dyn":
        return DYN
    if of.name == "optional_type":
        found = field_type(of.inner, field)
        return found if found.name == "optional_type" else optional_of(found)
    if of.name != "map":
        raise TypeFault(f"type '{of}' does not support field selection")
    if of.fields is None:
        return of.inner
    if field not in of.fields:
        raise TypeFault(f"undefined field '{field}'")
    return of.fields[field]


def selected(value: Any, field: str) -> Any:  # noqa: ANN401 - a value of CEL
    """`value.field`; CelError."""
    if type(value) is dict:
        try:
            return value[field]
        except KeyError:
            raise CelError(f"no such key: {field}") from None
    if isinstance(value, Optional):
        return maybe(value, field)
    raise CelError(f"no such overload: {type_name(value)} has no fields")


def maybe(value: Any, key: Any) -> Optional:  # noqa: ANN401 - values of CEL
    """`value.?key` and `value[?key]`."""
    if isinstance(value, Optional):
        return maybe(value.value, key) if value.present else NONE
    try:
        found = indexed(value, key)
    except CelError:
        if not isinstance(value, list | dict):
            raise
        return NONE
    return found if isinstance(found, Optional) else Optional(True, found)


def present(value: Any, field: str) -> bool:  # noqa: ANN401 - a value of CEL
    """`has(value.field)`."""
    if type(value) is dict:
        return field in value
    if isinstance(value, Optional):
        return value.present and present(value.value, field)
    raise CelError(f"no such overload: {type_name(value)} has no fields")


def item_type(of: CelType, key: CelType) -> CelType:
    """The type of `of[key]`; TypeFault."""
    match of.name:
        case "dyn":
            return DYN
        case "optional_type":
            return optional_of(item_type(of.inner, key))
        case "list" if key.name in ("int", "uint", "double", "dyn"):
            return of.inner
        case "map" if of.fields is None:
            return of.inner
        case _:
            raise TypeFault(f"found no matching overload for '_[_]' applied to '({of}, {key})'")


def indexed(value: Any, key: Any) -> Any:  # noqa: ANN401 - values of CEL
    """`value[key]`; CelError."""
    if isinstance(value, list):
        whole = isinstance(key, int | float) and not isinstance(key, bool) and key == int(key)
        if not whole:
            raise CelError("no such overload")
        if not 0 <= key < len(value):
            raise CelError(f"index out of bounds: {int(key)}")
        return value[int(key)]
    if isinstance(value, dict):
        if isinstance(key, str | int | float) and key in value:
            return value[key]
        raise CelError(f"no such key: {key if isinstance(key, str | int) else type_name(key)}")
    if isinstance(value, Optional):
        return maybe(value, key)
    raise CelError(f"no such overload: {type_name(value)} has no items")


# ------------------------------------------------------------------------------------- iteration


def member_types(of: CelType, names: int) -> tuple[CelType, ...]:
    """The types of a macro's variables over a value of the type; TypeFault."""
    match of.name:
        case "dyn":
            return (DYN,) * names
        case "list":
            return (of.inner,) if names == 1 else (INT, of.inner)
        case "map" if of.fields is None:
            return (STRING,) if names == 1 else (STRING, of.inner)
        case _:
            raise TypeFault(f"expression of type '{of}' cannot be the range of a comprehension")


def members(value: Any, names: int) -> list[Any]:  # noqa: ANN401 - a value of CEL
    """What a macro runs over: items, keys, or pairs where it has two variables; CelError."""
    match value:
        case list():
            return value if names == 1 else list(enumerate(value))
        case dict():
            return list(value) if names == 1 else list(value.items())
        case _:
            raise CelError(f"no such overload: {type_name(value)} cannot be iterated over")


def must_be_bool(code: Code, where: str) -> Code:
    """The code, if it can be a bool; TypeFault."""
    if code.type.name not in ("bool", "dyn"):
        raise TypeFault(f"expected type 'bool' but found '{code.type}' in {where}")
    return code._replace(type=BOOL)
