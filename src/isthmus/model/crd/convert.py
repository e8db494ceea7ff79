"""JSON as values of CEL, along the schema: times are timestamps, numbers doubles, names escaped.

Only what the schema names is seen by rules; fields that are kept without being known are not.
"""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from isthmus.model.crd.cel.library.core import duration
from isthmus.model.crd.cel.syntax import RESERVED
from isthmus.model.crd.cel.values import CelError
from isthmus.model.crd.nodes import Node
from isthmus.model.times import parse_time

_WORDS: Final = RESERVED | {"true", "false", "null", "in"}
_SIGNS: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """A property's name as rules write it: `foo__dash__bar`, `__namespace__`."""
    if name in _WORDS:
        return f"__{name}__"
    for sign, word in _SIGNS:
        name = name.replace(sign, word)
    return name


def to_cel(node: Node, value: Any, *, root: bool = False) -> Any:  # noqa: ANN401 - JSON to CEL
    """A value that fits the node, as its rules see it. What does not fit stays as it is."""
    match value:
        case dict():
            return _object(node, value, head=root or node.embedded)
        case list() if node.items is not None:
            return [to_cel(node.items, each) for each in value]
        case str() if node.type == "string" and node.format:
            return _text(node.format, value)
        case int() if node.type == "number" and not isinstance(value, bool):
            return float(value)
        case float() if node.type == "integer" and value.is_integer():
            return int(value)
        case _:
            return value


def _object(node: Node, value: dict[str, Any], *, head: bool) -> dict[str, Any]:
    if node.values is not None:
        return {name: to_cel(node.values, each) for name, each in value.items()}
    if node.open:
        return value
    made = {
        escaped(name): to_cel(below, value[name])
        for name, below in node.properties.items()
        if name in value
    }
    if head:
        made |= {name: value[name] for name in ("apiVersion", "kind") if name in value}
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            shown = ("name", "generateName")
            made["metadata"] = {name: metadata[name] for name in shown if name in metadata}
    return made


def _text(form: str, value: str) -> Any:  # noqa: ANN401 - a value of CEL
    try:
        match form:
            case "date":
                return datetime.fromisoformat(value).replace(tzinfo=UTC)
            case "date-time" | "datetime":
                return parse_time(value) or value
            case "duration":
                return duration(value)
            case "byte":
                return b64decode(value)
            case _:
                return value
    except (ValueError, CelError):
        return value
