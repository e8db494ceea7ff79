"""Documents: reading JSON from strangers, and looking into what was read.

A document comes from outside and is hostile: too deep, too large, a field said twice, a list where
an object belongs. `read_json` and `strict_json` let in only what can be handled; the look-ups below
never raise, whatever stands in the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from isthmus.errors import BadRequest, TooLarge
from isthmus.model.kind import Document

MAX_BODY: Final = 3 * 1024 * 1024
"""Bytes of one request body; Kubernetes' API server has the same limit."""

MAX_DEPTH: Final = 128
"""Objects and lists inside one another. Recursive readers rely on it."""

MAX_VALUES: Final = 200_000
"""Values in one document. A walk takes about a microsecond for each, and others wait meanwhile."""

MAX_DUPLICATES: Final = 64
"""How many duplicate fields are named; a body of nothing else would answer with itself."""


def read_json(body: bytes, *, limit: int = MAX_BODY) -> Document:
    """The JSON object in `body`.

    BadRequest when it is not JSON, not an object, deeper than MAX_DEPTH, or of more than
    MAX_VALUES; TooLarge over `limit`.
    """
    if len(body) > limit:
        raise TooLarge(f"the body is {len(body)} bytes long, the limit is {limit}")
    value = read_value(body)
    if not isinstance(value, dict):
        raise BadRequest(f"the body is a JSON {_json_type(value)}, not an object")
    return value


def read_value(body: bytes) -> Any:  # noqa: ANN401 - bytes become values here
    """Any JSON value; BadRequest as for `read_json`."""
    try:
        value = msgspec.json.decode(body)
    except msgspec.MsgspecError as fault:
        raise BadRequest(f"the body is not valid JSON: {fault}") from None
    except RecursionError:
        raise _too_deep() from None
    openings = body.count(b"{") + body.count(b"[")
    if openings > MAX_DEPTH or openings + body.count(b",") >= MAX_VALUES:
        check_bounds(value)
    return value


def strict_json(body: bytes, *, limit: int = MAX_BODY) -> tuple[Document, tuple[str, ...]]:
    """The JSON object in `body`, and the path of every field said twice (the last one counts).

    Paths are written as Kubernetes does, `spec.ports[0].name`; at most MAX_DUPLICATES of them.
    """
    document = read_json(body, limit=limit)
    seen = _Duplicates()
    tree = json.loads(body, object_pairs_hook=seen.pairs)
    return document, tuple(_duplicate_paths(tree)) if seen.any else ()


def check_bounds(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """BadRequest if a value is deeper than MAX_DEPTH or holds more than MAX_VALUES."""
    level, values = [value], 0
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _children(outer)]
        values += len(level)
        if values > MAX_VALUES:
            raise BadRequest(f"the body holds more than {MAX_VALUES} values")
        if not level:
            return
    if any(isinstance(each, dict | list) for each in level):
        raise _too_deep()


def count_values(value: Any) -> int:  # noqa: ANN401 - any JSON value
    """How many values a JSON value is made of, itself among them."""
    found, waiting = 0, [value]
    while waiting:
        found += 1
        waiting.extend(_children(waiting.pop()))
    return found


def _children(value: Any) -> Iterable[Any]:  # noqa: ANN401 - any JSON value
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def _too_deep() -> BadRequest:
    return BadRequest(f"objects and lists are nested more than {MAX_DEPTH} deep")


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


json_type = _json_type
"""`null`, `boolean`, `number`, `string`, `array` or `object`: what messages call a value."""


class _Pairs(list[tuple[str, Any]]):
    """An object as written, in order, with its repetitions."""


class _Duplicates:
    """Notes whether any object says a field twice; only then are paths sought."""

    def __init__(self) -> None:
        self.any = False

    def pairs(self, pairs: list[tuple[str, Any]]) -> _Pairs:
        self.any = self.any or len({name for name, _ in pairs}) != len(pairs)
        return _Pairs(pairs)


def _duplicate_paths(tree: Any) -> Iterator[str]:  # noqa: ANN401 - a JSON tree
    told = 0
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting and told < MAX_DUPLICATES:
        path, value = waiting.pop()
        inner: list[tuple[str, Any]] = []
        if isinstance(value, _Pairs):
            twice: set[str] = set()
            for name, each in value:
                here = f"{path}.{name}" if path else name
                if here in twice and told < MAX_DUPLICATES:
                    told += 1
                    yield here
                twice.add(here)
                inner.append((here, each))
        elif isinstance(value, list):
            inner = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
        waiting.extend(reversed(inner))


# ------------------------------------------------------------------ look-ups that never raise


def get(document: object, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """What stands at a dotted path (`spec.template.metadata`), or None. Lists are not entered."""
    value = document
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text(document: object, path: str) -> str:
    """The string at a dotted path, or ""."""
    value = get(document, path)
    return value if isinstance(value, str) else ""


def number(document: object, path: str, otherwise: int = 0) -> int:
    """The integer at a dotted path, or `otherwise`."""
    value = get(document, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def truth(document: object, path: str) -> bool:
    """Whether `true` stands at a dotted path."""
    return get(document, path) is True


def mapping(document: object, path: str) -> dict[str, Any]:
    """The object at a dotted path, or an empty one (which is not part of the document)."""
    value = get(document, path)
    return value if isinstance(value, dict) else {}


def texts(document: object, path: str) -> dict[str, str]:
    """The pairs of strings at a dotted path, such as labels."""
    return {key: value for key, value in mapping(document, path).items() if isinstance(value, str)}


def items(document: object, path: str) -> list[dict[str, Any]]:
    """The objects in the list at a dotted path; what is no object becomes {}: indexes hold."""
    value = get(document, path)
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, dict) else {} for each in value]


def strings(document: object, path: str) -> list[str]:
    """The strings in the list at a dotted path; what is not a string becomes ""."""
    value = get(document, path)
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, str) else "" for each in value]


def ensure(document: Document, path: str) -> dict[str, Any]:
    """The object at a dotted path, made where it is missing or null.

    For defaults. Where something else than an object stands on the way, an object that is not part
    of the document is returned: the type fault is told by `walk.type_faults`, not hidden by a
    default.
    """
    here: dict[str, Any] = document
    for name in path.split("."):
        inner = here.get(name)
        if inner is None:
            inner = here[name] = {}
        elif not isinstance(inner, dict):
            return {}
        here = inner
    return here


def settle(where: dict[str, Any], name: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Put a default: only where nothing (or null, or empty text) stands."""
    if where.get(name) is None or where.get(name) == "":
        where[name] = value
