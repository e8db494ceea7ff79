"""Walks of a document along its schema: unknown fields, types, rules, defaults, pruning.

Paths are written as Kubernetes writes them: `spec.containers[0].name`. Walks recurse as deep as the
document, which `document.read_json` and `wire.decode` have bounded. Faults are all told, up to
MAX_FAULTS, so that a body of nothing but faults cannot answer with many times itself.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import islice
from typing import Any, Final

import re2

from isthmus.errors import Cause, TooLarge
from isthmus.model.document import count_values, json_type
from isthmus.model.duration import parse_duration
from isthmus.model.faults import (
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    wrong_type,
)
from isthmus.model.kind import Document
from isthmus.model.quantity import parse_quantity
from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.times import parse_time

MAX_FAULTS: Final = 256

MAX_FILLED: Final = 50_000
"""Values that defaults may add to one document."""


def unknown_fields(schema: Schema, document: Document) -> list[str]:
    """The path of every field that the schema does not know."""
    return list(islice(_unknown(schema, document, ""), MAX_FAULTS))


def type_faults(schema: Schema, document: Document) -> list[Cause]:
    """Every value of a type that the schema does not allow; null counts as absent."""
    return list(islice(_types(schema, document, ""), MAX_FAULTS))


def rule_faults(schema: Schema, document: Document) -> list[Cause]:
    """Every broken rule of a structural schema: required, enum, pattern, bounds, unique items.

    Values of a wrong type are passed over: `type_faults` tells them.
    """
    return list(islice(_rules(schema, document, ""), MAX_FAULTS))


def join(path: str, name: str) -> str:
    """The path of a field below `path`."""
    return f"{path}.{name}" if path else name


def _children(schema: Schema, value: Any, path: str) -> Iterator[tuple[Schema, Any, str]]:  # noqa: ANN401 - JSON
    """What is known below a value: schema, value and path of each."""
    match schema.type, value:
        case Type.OBJECT, dict():
            fields = schema.fields
            for name, inner in value.items():
                if name in fields:
                    yield fields[name], inner, join(path, name)
        case Type.MAP, dict() if schema.values is not None:
            for name, inner in value.items():
                yield schema.values, inner, join(path, name)
        case Type.ARRAY, list() if schema.items is not None:
            for index, inner in enumerate(value):
                yield schema.items, inner, f"{path}[{index}]"
        case _:
            return


def _unknown(schema: Schema, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    if schema.type is Type.OBJECT and isinstance(value, dict) and not schema.preserve:
        fields = schema.fields
        yield from (join(path, name) for name in value if name not in fields)
    for below, inner, where in _children(schema, value, path):
        if isinstance(inner, dict | list):
            yield from _unknown(below, inner, where)


# ---------------------------------------------------------------------------------------- types


def _types(schema: Schema, value: Any, path: str) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    if value is None:
        return
    if not _FITS[schema.type](value):
        # The value itself is not shown, here and below: it may be a secret's.
        found, kind = _value_type(value), _SAID.get(schema.type, schema.type.value)
        where = path or "the object"
        yield wrong_type(path, found, f'{where} in body must be of type {kind}: "{found}"')
        return
    problem = _content_problem(schema, value)
    if problem:
        yield invalid(path, "..." if schema.type is Type.BYTES else value, problem)
    for below, inner, where in _children(schema, value, path):
        yield from _types(below, inner, where)


def _value_type(value: object) -> str:
    return "integer" if _is_integer(value) else json_type(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_FITS: Final[Mapping[Type, Callable[[object], bool]]] = {
    Type.OBJECT: lambda value: isinstance(value, dict),
    Type.MAP: lambda value: isinstance(value, dict),
    Type.ARRAY: lambda value: isinstance(value, list),
    Type.STRING: _is_text,
    Type.INTEGER: _is_integer,
    Type.NUMBER: _is_number,
    Type.BOOLEAN: lambda value: isinstance(value, bool),
    Type.INT_OR_STRING: lambda value: _is_integer(value) or _is_text(value),
    Type.QUANTITY: lambda value: _is_number(value) or _is_text(value),
    Type.BYTES: _is_text,
    Type.TIME: _is_text,
    Type.MICRO_TIME: _is_text,
    Type.DURATION: _is_text,
    Type.ANY: lambda _: True,
}

_SAID: Final[Mapping[Type, str]] = {
    Type.MAP: "object",
    Type.BYTES: "string",
    Type.TIME: "string",
    Type.MICRO_TIME: "string",
    Type.DURATION: "string",
    Type.QUANTITY: "string",
    Type.INT_OR_STRING: "integer or string",
}

_RANGES: Final = {"int32": 31, "int64": 63}


def _content_problem(schema: Schema, value: Any) -> str:  # noqa: ANN401 - JSON
    """Why a value of the right JSON type does not fit all the same, or ""."""
    match schema.type:
        case Type.INTEGER | Type.INT_OR_STRING if not isinstance(value, str):
            bits = _RANGES.get(schema.format, 31 if schema.type is Type.INT_OR_STRING else 63)
            fits = -(2**bits) <= value < 2**bits
            return "" if fits else f"must fit {bits + 1} bits"
        case Type.QUANTITY:
            fits = parse_quantity(value if isinstance(value, str) else repr(value)) is not None
            return "" if fits else "must be a quantity such as 100m or 1.5Gi"
        case Type.TIME | Type.MICRO_TIME:
            fits = parse_time(value) is not None
            return "" if fits else "must be a time such as 2026-01-02T15:04:05Z (RFC 3339)"
        case Type.DURATION:
            return "" if parse_duration(value) is not None else "must be a duration such as 1m30s"
        case Type.BYTES:
            return "" if is_base64(value) else "must be base64"
        case _:
            return ""


def is_base64(text: str) -> bool:
    """Whether `text` is standard base64 with padding; line ends are passed over, as Go does."""
    try:
        b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


# ---------------------------------------------------------------------------------------- rules


def _rules(schema: Schema, value: Any, path: str) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    if value is None or not _FITS[schema.type](value):
        return
    match value:
        case str():
            yield from _text_rules(schema, value, path)
        case bool():
            pass
        case int() | float():
            yield from _number_rules(schema, value, path)
        case list():
            yield from _list_rules(schema, value, path)
        case dict():
            missing = (name for name in schema.required if value.get(name) is None)
            yield from (required(join(path, name)) for name in missing)
        case _:
            pass
    for below, inner, where in _children(schema, value, path):
        yield from _rules(below, inner, where)


def _text_rules(schema: Schema, value: str, path: str) -> Iterator[Cause]:
    if schema.enum and value not in schema.enum:
        yield not_supported(path, value, schema.enum)
    if schema.pattern and not _pattern(schema.pattern).search(value):
        yield invalid(path, value, f"{path} in body should match '{schema.pattern}'")
    if schema.min_length is not None and len(value) < schema.min_length:
        at_least = f"{path} in body should be at least {schema.min_length} chars long"
        yield invalid(path, value, at_least)
    if schema.max_length is not None and len(value) > schema.max_length:
        yield too_long(path, schema.max_length)


@cache
def _pattern(text: str) -> Any:  # noqa: ANN401 - re2 has no types
    """RE2, as in Kubernetes: `$` is the very end (not before a last newline), time is linear."""
    return re2.compile(text)


def _number_rules(schema: Schema, value: float, path: str) -> Iterator[Cause]:
    if schema.minimum is not None and value < schema.minimum:
        at_least = f"{path} in body should be greater than or equal to {schema.minimum}"
        yield invalid(path, value, at_least)
    if schema.maximum is not None and value > schema.maximum:
        yield invalid(
            path, value, f"{path} in body should be less than or equal to {schema.maximum}"
        )


def _list_rules(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    if schema.min_items is not None and len(value) < schema.min_items:
        at_least = f"{path} in body should have at least {schema.min_items} items"
        yield invalid(path, len(value), at_least)
    if schema.max_items is not None and len(value) > schema.max_items:
        yield too_many(path, len(value), schema.max_items)
    seen: set[str] = set()
    for index, each in enumerate(value):
        key = _list_key(schema, each)
        if key is None:
            continue
        identity = repr(key)
        if identity in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(identity)


def _list_key(schema: Schema, item: Any) -> Any:  # noqa: ANN401 - JSON
    """What must be unique in the list of this item, or None."""
    if schema.list_type is ListType.SET:
        return item
    if schema.list_type is not ListType.MAP or not isinstance(item, dict) or schema.items is None:
        return None
    fields = schema.items.fields
    absent = {name: fields[name].default for name in schema.list_keys if name in fields}
    return {name: item.get(name, absent.get(name)) for name in schema.list_keys}


# ------------------------------------------------------------------------------------- changing


def defaults(schema: Schema, document: Document) -> None:
    """Put defaults where a field is missing or null and its parent is there; in place.

    TooLarge when they would add more than MAX_FILLED values: a short list can ask for many.
    """
    _defaults(schema, document, [MAX_FILLED])


def _defaults(schema: Schema, value: Any, left: list[int]) -> None:  # noqa: ANN401 - JSON
    if schema.type is Type.OBJECT and isinstance(value, dict):
        for name, field in schema.fields.items():
            if field.default is None or value.get(name) is not None:
                continue
            if name not in value or not field.nullable:
                left[0] -= count_values(field.default)
                if left[0] < 0:
                    raise TooLarge(f"defaults would add more than {MAX_FILLED} values")
                value[name] = deepcopy(field.default)
    for below, inner, _ in _children(schema, value, ""):
        if isinstance(inner, dict | list):
            _defaults(below, inner, left)


def prune(schema: Schema, document: Document) -> None:
    """Drop every field that the schema does not know; in place."""
    _prune(schema, document)


def _prune(schema: Schema, value: Any) -> None:  # noqa: ANN401 - JSON
    if schema.type is Type.OBJECT and isinstance(value, dict) and not schema.preserve:
        fields = schema.fields
        for name in [name for name in value if name not in fields]:
            del value[name]
    for below, inner, _ in _children(schema, value, ""):
        if isinstance(inner, dict | list):
            _prune(below, inner)


def drop_nulls(schema: Schema, document: Document) -> None:
    """Drop nulls from fields and maps where null may not stand; in place.

    What Kubernetes does to custom resources before it fills in defaults. Items of lists stay.
    """
    _drop_nulls(schema, document)


def _drop_nulls(schema: Schema, value: Any) -> None:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        fields = schema.fields if schema.type is Type.OBJECT else {}
        for name in [name for name, inner in value.items() if inner is None]:
            field = fields.get(name, schema.values)
            if field is not None and not field.nullable and field.type is not Type.ANY:
                del value[name]
    for below, inner, _ in _children(schema, value, ""):
        if isinstance(inner, dict | list):
            _drop_nulls(below, inner)


def normalise(schema: Schema, document: Document) -> None:
    """What decoding into typed fields does: null is absent, a quantity is text; in place.

    A null in a map of strings is "", a null in a list is the item type's zero, as in Kubernetes.
    """
    _normalise(schema, document)


def _normalise(schema: Schema, value: Any) -> None:  # noqa: ANN401 - JSON
    match schema.type, value:
        case Type.OBJECT, dict():
            fields = schema.fields
            for name in [n for n, v in value.items() if v is None and _drops_null(fields.get(n))]:
                del value[name]
            for name in value.keys() & fields.keys():
                value[name] = _normal(fields[name], value[name])
        case Type.MAP, dict() if schema.values is not None:
            for name, inner in value.items():
                value[name] = _normal(schema.values, inner)
        case Type.ARRAY, list() if schema.items is not None:
            value[:] = [_normal(schema.items, inner) for inner in value]
        case _:
            return


def _drops_null(field: Schema | None) -> bool:
    return field is not None and (not field.nullable or field.type in (Type.TIME, Type.MICRO_TIME))


def _normal(schema: Schema, value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None:
        zero = _ZEROS.get(schema.type)
        return None if zero is None or schema.nullable else zero()
    if schema.type is Type.QUANTITY and not isinstance(value, str):
        return repr(value)
    _normalise(schema, value)
    return value


_ZEROS: Final[Mapping[Type, Callable[[], Any]]] = {
    Type.OBJECT: dict,
    Type.MAP: dict,
    Type.ARRAY: list,
    Type.STRING: str,
    Type.BYTES: str,
    Type.INTEGER: int,
    Type.NUMBER: int,
    Type.BOOLEAN: bool,
    Type.INT_OR_STRING: int,
    Type.QUANTITY: lambda: "0",
}
