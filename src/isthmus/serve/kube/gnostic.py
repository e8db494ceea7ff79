"""An OpenAPI v2 document as protobuf: the messages of gnostic's `openapi.v2`, written by hand.

Only the fields that our documents have. Field numbers: gnostic, openapiv2/OpenAPIv2.proto. What is
of no fixed type there (defaults, enums, extensions) is an `Any` with the value as YAML; JSON is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

Node = Mapping[str, Any]
Write = Callable[[int, Any], bytes]
"""(field number, JSON value) -> the field's bytes."""


def document(paths: Iterable[bytes], definitions: Iterable[bytes]) -> bytes:
    """A Document of what `path` and `definition` have made."""
    info = _text(1, "isthmus") + _text(2, "1")
    return b"".join(
        (
            _text(1, "2.0"),
            _bytes(2, info),
            _bytes(8, b"".join(paths)),
            _bytes(9, b"".join(definitions)),
        )
    )


def definition(name: str, node: Node) -> bytes:
    """One of Definitions: a NamedSchema in its field."""
    return _bytes(1, _text(1, name) + _bytes(2, _schema(node)))


def path(name: str, item: Node) -> bytes:
    """One of Paths: a NamedPathItem in its field."""
    return _bytes(2, _text(1, name) + _bytes(2, _path_item(item)))


# ---------------------------------------------------------------------------------------- the wire


_SMALL: Final = tuple(bytes((value,)) for value in range(128))


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 2**64 - 1  # negative numbers are ten bytes long
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


@lru_cache(maxsize=4096)
def _text(number: int, value: str) -> bytes:
    """Names and descriptions come again and again."""
    return _bytes(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, each) for each in values)


def _truth(number: int, value: object) -> bytes:
    return _varint(number << 3) + (b"\x01" if value else b"\x00")


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _number(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _any(number: int, value: object) -> bytes:
    return _bytes(number, _bytes(2, msgspec.json.encode(value)))


def _anys(number: int, values: Iterable[object]) -> bytes:
    return b"".join(_any(number, each) for each in values)


def _extensions(number: int, node: Node) -> Iterator[bytes]:
    for name, value in node.items():
        if name.startswith("x-"):
            yield _bytes(number, _text(1, name) + _any(2, value))


# ---------------------------------------------------------------------------------------- messages


def _schema(node: Node) -> bytes:
    known = [write(number, node[name]) for name, (number, write) in _SCHEMA.items() if name in node]
    return b"".join((*known, *_extensions(31, node)))


def _named_schemas(number: int, properties: Mapping[str, Node]) -> bytes:
    found = (_text(1, name) + _bytes(2, _schema(each)) for name, each in properties.items())
    return _bytes(number, b"".join(_bytes(1, each) for each in found))


def _additional(number: int, value: Node | bool) -> bytes:  # noqa: FBT001 - as JSON has it
    inner = _truth(2, value) if isinstance(value, bool) else _bytes(1, _schema(value))
    return _bytes(number, inner)


def _type(number: int, value: str) -> bytes:
    return _bytes(number, _text(1, value))


def _items(number: int, value: Node) -> bytes:
    return _bytes(number, _bytes(1, _schema(value)))


_SCHEMA: Final[Mapping[str, tuple[int, Write]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _number),
    "maximum": (7, _number),
    "exclusiveMaximum": (8, _truth),
    "minimum": (9, _number),
    "exclusiveMinimum": (10, _truth),
    "maxLength": (11, _whole),
    "minLength": (12, _whole),
    "pattern": (13, _text),
    "maxItems": (14, _whole),
    "minItems": (15, _whole),
    "maxProperties": (17, _whole),
    "minProperties": (18, _whole),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, _named_schemas),
}

_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path_item(item: Node) -> bytes:
    made = [_bytes(at, _operation(item[name])) for name, at in _METHODS.items() if name in item]
    return b"".join((*made, *(_bytes(9, _parameter(each)) for each in item["parameters"])))


def _operation(operation: Node) -> bytes:
    return b"".join(
        (
            _text(5, operation["operationId"]),
            _texts(6, operation["produces"]),
            _texts(7, operation["consumes"]),
            *(_bytes(8, _parameter(each)) for each in operation["parameters"]),
            _bytes(9, b"".join(_response(*each) for each in operation["responses"].items())),
            *_extensions(13, operation),
        )
    )


def _response(code: str, answer: Node) -> bytes:
    schema = _bytes(2, _bytes(1, _schema(answer["schema"])))
    value = _bytes(1, _text(1, answer["description"]) + schema)
    return _bytes(1, _text(1, code) + _bytes(2, value))


def _parameter(said: Node) -> bytes:
    """A ParametersItem: of the query or of the path; they number `type` differently."""
    kind, at = (3, 6) if said["in"] == "query" else (4, 5)
    inner = _truth(1, value=True) if said.get("required") else b""
    inner += _text(2, said["in"])
    inner += _text(3, said["description"]) if "description" in said else b""
    inner += _text(4, said["name"]) + _text(at, said["type"])
    return _bytes(1, _bytes(2, _bytes(kind, inner)))
