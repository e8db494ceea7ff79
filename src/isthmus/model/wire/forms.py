"""Messages that JSON writes otherwise than as an object of their fields.

Their wire fields are in messages.txt like any other's; the functions here take the fields as read
and make the JSON form. None means that the field is not set.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from isthmus.errors import BadRequest
from isthmus.model.document import read_value
from isthmus.model.duration import format_duration
from isthmus.model.kind import Document
from isthmus.model.times import format_micro_time, format_time, from_seconds

Form = Callable[[Document], Any]


def _time(fields: Document) -> str | None:
    moment = _seconds(fields)
    return None if moment is None else format_time(from_seconds(moment))


def _micro_time(fields: Document) -> str | None:
    moment = _seconds(fields)
    if moment is None:
        return None
    micros = fields.get("nanos", 0) // 1000
    return format_micro_time(from_seconds(moment) + timedelta(microseconds=micros))


def _seconds(fields: Document) -> int | None:
    """Whole seconds since the epoch; None for the zero time, which is an empty message."""
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    if not fields:
        return None
    if not 0 <= nanos < 1_000_000_000:
        raise BadRequest(f"{nanos} nanoseconds are not part of a second")
    if not -62_135_596_800 <= seconds < 253_402_300_800:  # the years 1 to 9999
        raise BadRequest(f"{seconds} seconds since 1970 is outside the years 1 to 9999")
    return int(seconds)


def _duration(fields: Document) -> str:
    return format_duration(fields.get("duration", 0))


def _quantity(fields: Document) -> str:
    return str(fields.get("string", "")) or "0"


def _int_or_string(fields: Document) -> int | str:
    kind = fields.get("type", 0)
    if kind not in (0, 1):
        raise BadRequest(f"an IntOrString is of type 0 or 1, not {kind}")
    return str(fields.get("strVal", "")) if kind == 1 else int(fields.get("intVal", 0))


def _raw(fields: Document) -> Any:  # noqa: ANN401 - any JSON value
    """RawExtension, JSON, FieldsV1: JSON within protobuf."""
    raw = b64decode(fields.get("raw", ""))
    return read_value(raw) if raw else None


def _either(member: str) -> Form:
    """JSONSchemaPropsOrX: the schema, or the other member, whichever is set, bare."""

    def form(fields: Document) -> Any:  # noqa: ANN401 - any JSON value
        return fields["schema"] if "schema" in fields else fields.get(member)

    return form


def _or_bool(fields: Document) -> Any:  # noqa: ANN401 - any JSON value
    return fields.get("schema", fields.get("allows", False))


def _items(fields: Document) -> list[str]:
    return list(fields.get("items", ()))


FROM_WIRE: Final[Mapping[str, Form]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": _duration,
    "meta.v1.FieldsV1": _raw,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "apiextensions.v1.JSON": _raw,
    "apiextensions.v1.JSONSchemaPropsOrArray": _either("jSONSchemas"),
    "apiextensions.v1.JSONSchemaPropsOrBool": _or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _either("property"),
    "authentication.v1.ExtraValue": _items,
    "authorization.v1.ExtraValue": _items,
}
"""The JSON form of each special message, from its wire fields."""
