"""Protobuf messages as Go's plain JSON writes their structs.

This is what users of `linkerd diagnostics` and their scripts know; it is not protobuf's own JSON:
names as in the .proto file, fields in the order of their declaration, zero values left out, a
oneof under its own name in Go's spelling with the chosen member inside (null if none is chosen),
enums and addresses as numbers, bytes in base64, `<`, `>` and `&` escaped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)

_FIRST = {
    "io.linkerd.proxy.destination.DestinationProfile": ("fully_qualified_name", "opaque_protocol")
}
"""Fields that linkerd's files declare before those with lower numbers."""


def dumps(value: object, *, indent: int | None = 2) -> str:
    """`value` (dicts, lists, texts, numbers) as Go would write it, without a final newline."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, ensure_ascii=False, separators=separators)
    return text.translate(_ESCAPES)


def struct(message: Message) -> dict[str, Any]:
    """A message as the fields of its Go struct."""
    out: dict[str, Any] = {}
    for field in _fields(message):
        oneof = field.containing_oneof
        if oneof is not None and not _synthetic(oneof):
            out.setdefault(camel(oneof.name), _chosen(message, oneof))
        elif (value := _field(message, field)) is not None:
            out[field.name] = value
    return out


def camel(name: str) -> str:
    """A proto name as Go's: `dns_like_identity` is `DnsLikeIdentity`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _fields(message: Message) -> list[FieldDescriptor]:
    """In the order of their declaration, in linkerd's files."""
    first = _FIRST.get(message.DESCRIPTOR.full_name, ())
    fields: list[FieldDescriptor] = list(cast("Any", message.DESCRIPTOR).fields)
    return sorted(fields, key=lambda each: (each.name not in first, each.index))


def _synthetic(oneof: OneofDescriptor) -> bool:
    """Not written by anybody: how protobuf keeps an `optional` field."""
    return oneof.name.startswith("_") and len(oneof.fields) == 1


def _chosen(message: Message, oneof: OneofDescriptor) -> dict[str, Any] | None:
    name = message.WhichOneof(oneof.name)
    if name is None:
        return None
    field = next(each for each in _fields(message) if each.name == name)
    return {camel(name): _value(getattr(message, name), field)}


def _field(message: Message, field: FieldDescriptor) -> Any | None:  # noqa: ANN401  # JSON
    """The field's value, or None if it is left out."""
    value = getattr(message, field.name)
    if field.is_repeated:
        if not value:
            return None
        if isinstance(value, Mapping):
            entry = cast("Any", field.message_type).fields_by_name["value"]
            return {str(key): _value(value[key], entry) for key in sorted(value)}
        return [_value(each, field) for each in value]
    if field.has_presence:
        return _value(value, field) if message.HasField(field.name) else None
    return _value(value, field) if value else None


def _value(value: Any, field: FieldDescriptor) -> Any:  # noqa: ANN401  # JSON
    match field.type:
        case FieldDescriptor.TYPE_MESSAGE:
            return struct(value)
        case FieldDescriptor.TYPE_BYTES:
            return base64.b64encode(value).decode()
        case FieldDescriptor.TYPE_FLOAT:
            return _float(value)
    return value


def _float(value: float) -> float | int:
    """The shortest number that is this one in 32 bits."""
    short = next(float(f"{value:.{digits}g}") for digits in range(6, 10) if _same(value, digits))
    return int(short) if short.is_integer() else short


def _same(value: float, digits: int) -> bool:
    from struct import pack

    return pack("f", float(f"{value:.{digits}g}")) == pack("f", value)
