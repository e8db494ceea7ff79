"""Types of CEL, as far as they are known before an expression runs.

A type also says how large its values can be: items of a list or map, characters of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec


class CelType(msgspec.Struct, frozen=True):
    """A type. `name` as messages say it; `item` of lists, maps and optionals; `fields` of objects.

    `limit` is the most items or characters, None where nothing says.
    """

    name: str
    item: CelType | None = None
    fields: Mapping[str, CelType] | None = None
    limit: int | None = None

    @property
    def inner(self) -> CelType:
        """The type of items; DYN where nothing is known of them."""
        return self.item or DYN

    def __str__(self) -> str:
        match self.name:
            case "list" | "optional_type":
                return f"{self.name}({self.inner})"
            case "map":
                return "object" if self.fields is not None else f"map(string, {self.inner})"
            case other:
                return other


DYN: Final = CelType("dyn")
NULL: Final = CelType("null_type")
BOOL: Final = CelType("bool")
INT: Final = CelType("int")
UINT: Final = CelType("uint")
DOUBLE: Final = CelType("double")
STRING: Final = CelType("string")
BYTES: Final = CelType("bytes")
TIMESTAMP: Final = CelType("google.protobuf.Timestamp")
DURATION: Final = CelType("google.protobuf.Duration")
TYPE: Final = CelType("type")
LIST: Final = CelType("list")
MAP: Final = CelType("map")
QUANTITY: Final = CelType("kubernetes.Quantity")
IP: Final = CelType("net.IP")
CIDR: Final = CelType("net.CIDR")
URL: Final = CelType("kubernetes.URL")
SEMVER: Final = CelType("kubernetes.Semver")
FORMAT: Final = CelType("kubernetes.NamedFormat")
OPTIONAL: Final = CelType("optional_type")

MAX_REQUEST: Final = 3 * 1024 * 1024
"""Characters in what nothing else bounds: no body is larger."""


def list_of(item: CelType, limit: int | None = None) -> CelType:
    """A list of a type."""
    return CelType("list", item=item, limit=limit)


def optional_of(item: CelType) -> CelType:
    """A value of a type, or none."""
    return CelType("optional_type", item=item)


def items(of: CelType) -> int:
    """The most items or characters that a value of the type has."""
    if of.limit is not None:
        return of.limit
    if of.fields is not None:
        return len(of.fields)
    # A comma or a colon, and a value of one character at least.
    return MAX_REQUEST if of.name in ("string", "bytes", "dyn") else MAX_REQUEST // 3


def joined(one: CelType, other: CelType) -> CelType:
    """The type of a value that is of one type or of the other."""
    if one.name != other.name:
        return DYN
    limits = (one.limit, other.limit)
    limit = None if None in limits else max(each for each in limits if each is not None)
    same = one.fields is other.fields
    item = joined(one.inner, other.inner) if one.item or other.item else None
    return CelType(one.name, item=item, fields=one.fields if same else None, limit=limit)


def comparable(one: CelType, other: CelType) -> bool:
    """Whether `==` between the types can mean anything."""
    numbers = ("int", "uint", "double")
    if "dyn" in (one.name, other.name) or "null_type" in (one.name, other.name):
        return True
    if one.name in numbers and other.name in numbers:
        return True
    return one.name == other.name and comparable(one.inner, other.inner)
