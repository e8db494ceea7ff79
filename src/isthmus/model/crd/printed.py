"""additionalPrinterColumns: what `kubectl get` shows of custom resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from isthmus.errors import Cause
from isthmus.model.columns import AGE
from isthmus.model.crd import jsonpath
from isthmus.model.document import items, number, text
from isthmus.model.faults import duplicate, invalid, not_supported, required
from isthmus.model.kind import Column, Document
from isthmus.model.times import age

_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_FORMATS: Final = ("", "int32", "int64", "float", "double", "byte", "date", "date-time", "password")

MAX_COLUMNS: Final = 64
"""Columns of one version that are shown."""


def columns(version: Document) -> tuple[Column, ...]:
    """The columns of a version after Name; Age where it names none."""
    said = items(version, "additionalPrinterColumns")[:MAX_COLUMNS]
    return tuple(map(_column, said)) or (AGE,)


def _column(said: Document) -> Column:
    kind = text(said, "type")
    path = jsonpath.parse(text(said, "jsonPath"))
    return Column(
        text(said, "name"),
        _cell(path, kind),
        type="string" if kind == "date" else kind,
        priority=number(said, "priority"),
        description=text(said, "description"),
    )


def _cell(path: jsonpath.Path, kind: str) -> Callable[[Document, float], str | int | None]:
    def cell(document: Document, now: float) -> str | int | None:
        found = jsonpath.find(path, document)
        return _shown(found[0], kind, now) if found else None

    return cell


def _shown(value: Any, kind: str, now: float) -> Any:  # noqa: ANN401 - JSON
    """The cell of the first value that the path leads to; nothing where types do not fit."""
    match kind, value:
        case _, None:
            return None
        case "string", _:
            return _text(value)
        case "date", str():
            return age(value, now)
        case "boolean", bool():
            return value
        case ("boolean", _) | (_, bool()):
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return value
        case _:
            return None


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return jsonpath_text(value)


def jsonpath_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """An object or a list as kubectl's JSONPath prints it: JSON, cut where it is long."""
    said = msgspec.json.encode(value).decode()
    return said if len(said) <= 1024 else said[:1024] + "..."


def faults(version: Document, path: str) -> Iterator[Cause]:
    """What is wrong with the columns of a version."""
    seen = set[str]()
    said = items(version, "additionalPrinterColumns")
    if len(said) > MAX_COLUMNS:
        yield invalid(f"{path}.additionalPrinterColumns", len(said), f"at most {MAX_COLUMNS}")
    for at, each in enumerate(said[:MAX_COLUMNS]):
        where = f"{path}.additionalPrinterColumns[{at}]"
        name, kind = text(each, "name"), text(each, "type")
        if not name:
            yield required(f"{where}.name")
        if name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)
        if kind not in _TYPES:
            yield (
                not_supported(f"{where}.type", kind, _TYPES) if kind else required(f"{where}.type")
            )
        if text(each, "format") not in _FORMATS:
            yield not_supported(f"{where}.format", text(each, "format"), _FORMATS[1:])
        if not text(each, "jsonPath"):
            yield required(f"{where}.jsonPath")
            continue
        try:
            jsonpath.parse(text(each, "jsonPath"))
        except ValueError as fault:
            yield invalid(f"{where}.jsonPath", text(each, "jsonPath"), str(fault))
