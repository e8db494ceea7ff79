"""JSON values: bounded reading, copying, comparing, and paths for messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from isthmus.errors import BadRequest, Cause

MAX_DEPTH = 200
"""Deepest nesting of a document or patch: well below Python's recursion limit. Real ones: 50."""

MAX_SHOWN = 256
"""Longest path or value that a message repeats."""

_DECODER = msgspec.json.Decoder()


class Path(NamedTuple):
    """Where in a document; written out only when something is wrong there."""

    parent: Path | None
    segment: str

    def field(self, name: str) -> Path:
        return Path(self, name)

    def item(self, index: int) -> Path:
        return Path(self, f"[{index}]")

    def keyed(self, key: str, value: object) -> Path:
        return Path(self, f"[{key}={value!s:.64}]")

    def __str__(self) -> str:
        """`spec.ports[port=80].name`, cut when somebody made it long."""
        segments: list[str] = []
        at: Path | None = self
        while at is not None:
            segments.append(at.segment[:MAX_SHOWN])
            at = at.parent
        text = ""
        for segment in reversed(segments):
            text += segment if segment.startswith("[") or not text else f".{segment}"
        return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


ROOT = Path(None, "")


def malformed(path: Path | str, message: str) -> BadRequest:
    """A patch that makes no sense, and where."""
    where = str(path)
    said = f"{where}: {message}" if where else message
    return BadRequest(f"the patch is malformed: {said}", causes=(Cause(where, message),))


def decode(body: bytes) -> Any:  # noqa: ANN401 - bytes become values here
    """The JSON value of a body, no deeper than MAX_DEPTH; else BadRequest."""
    try:
        value = _DECODER.decode(body)
    except RecursionError:
        raise malformed("", f"nested deeper than {MAX_DEPTH}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise malformed("", f"invalid JSON document: {error}") from None
    check_depth(value)
    return value


def check_depth(value: object) -> None:
    """BadRequest if a value is nested deeper than MAX_DEPTH. Costs one look at each container."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for holder in level:
            children = holder.values() if isinstance(holder, dict) else holder
            if isinstance(children, str | bytes | int | float | None):
                continue
            below.extend(child for child in children if isinstance(child, dict | list))  # type: ignore[attr-defined]
        if not below:
            return
        level = below
    raise malformed("", f"nested deeper than {MAX_DEPTH}")


def opened(document: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A copy of the document to work on, if it is no deeper than MAX_DEPTH."""
    check_depth(document)
    return clone(document)


def clone(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A copy that shares no container with the original."""
    if isinstance(value, dict):
        return {key: clone(held) for key, held in value.items()}
    if isinstance(value, list):
        return [clone(held) for held in value]
    return value


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Equality as JSON has it: 1 equals 1.0, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(held, right[key]) for key, held in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def weight(value: object, limit: int) -> int:
    """About how many bytes a value is as JSON, counted not much further than `limit`."""
    count, stack = 0, [value]
    while stack and count <= limit:
        held = stack.pop()
        count += len(held) if isinstance(held, str) else 4
        if isinstance(held, dict):
            count += sum(map(len, held))
            stack.extend(held.values())
        elif isinstance(held, list):
            stack.extend(held)
    return count
