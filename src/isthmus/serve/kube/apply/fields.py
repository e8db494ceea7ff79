"""Sets of field paths: what one manager owns of an object (Kubernetes: fieldsV1).

A step of a path is text as fieldsV1 has it: `f:` and a field's name, `k:` and the key fields of a
list item as JSON, `v:` and a value of a set as JSON, `i:` and an index. A set is a tree: at each
place, the steps that belong to it and the sets below. What a set says of a place below is apart
from whether the place itself belongs to it (`.` on the wire).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.document import MAX_DEPTH

Path = tuple[str, ...]
"""The steps to a place, from the object's root."""

LONGEST_SHOWN: Final = 1024
"""Most characters of a path in a message."""

_NONE: Final[frozenset[str]] = frozenset()
_LONGEST_KEPT: Final = 256
_ENCODER = msgspec.json.Encoder(order="deterministic")


class FieldSet(NamedTuple):
    """A set of paths. `children` holds no empty set, so that equal sets are equal values."""

    members: frozenset[str] = _NONE
    children: Mapping[str, FieldSet] = {}

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def union(self, other: FieldSet) -> FieldSet:
        """The paths of either."""
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        for step, below in other.children.items():
            held = children.get(step)
            children[step] = below if held is None else held.union(below)
        return FieldSet(self.members | other.members, children)

    def difference(self, other: FieldSet) -> FieldSet:
        """The paths that `other` does not have; those below a path of `other` are not meant."""
        if not other:
            return self
        children: dict[str, FieldSet] = {}
        for step, below in self.children.items():
            taken = other.children.get(step)
            left = below if taken is None else below.difference(taken)
            if left:
                children[step] = left
        return FieldSet(self.members - other.members, children)

    def intersection(self, other: FieldSet) -> FieldSet:
        """The paths of both."""
        children: dict[str, FieldSet] = {}
        for step, below in self.children.items():
            found = other.children.get(step)
            shared = EMPTY if found is None else below.intersection(found)
            if shared:
                children[step] = shared
        return FieldSet(self.members & other.members, children)

    def at(self, step: str) -> FieldSet:
        """What the set says of the places below a step."""
        return self.children.get(step, EMPTY)

    def paths(self) -> Iterator[Path]:
        """Every path, in a fixed order."""
        for step in sorted(self.members):
            yield (step,)
        for step in sorted(self.children):
            for path in self.children[step].paths():
                yield (step, *path)


EMPTY: Final = FieldSet()


class Builder:
    """A set in the making."""

    def __init__(self) -> None:
        self._members: set[str] = set()
        self._children: dict[str, FieldSet] = {}

    def add(self, step: str) -> None:
        """The place itself."""
        self._members.add(step)

    def put(self, step: str, below: FieldSet) -> None:
        """What is below a step; at most once for each."""
        if below:
            self._children[step] = below

    def made(self) -> FieldSet:
        """The set."""
        if not self._members and not self._children:
            return EMPTY
        return FieldSet(frozenset(self._members), self._children)


# --------------------------------------------------------------------------------------- steps


def field(name: str) -> str:
    """The step into a field of an object or a map."""
    return f"f:{name}"


def keyed(keys: Mapping[str, Any]) -> str:
    """The step to the list item with these key fields."""
    return f"k:{_text(keys)}"


def valued(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """The step to a value in a set."""
    return f"v:{_text(value)}"


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    try:
        return _ENCODER.encode(value).decode()
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as fault:
        raise BadRequest(f"a key of a list cannot be written as JSON: {fault}") from None


def show(path: Path) -> str:
    """A path as messages have it: `.spec.containers[name="x"].image`, cut where it is very long."""
    text = "".join(map(_shown, path))
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _shown(step: str) -> str:
    kind, rest = step[:2], step[2:]
    match kind:
        case "f:":
            return f".{rest}"
        case "k:":
            keys = msgspec.json.decode(rest, type=dict)
            return "[" + ",".join(f"{name}={_text(keys[name])}" for name in sorted(keys)) + "]"
        case "v:":
            return f"[={rest}]"
        case _:
            return f"[{rest}]"


# ---------------------------------------------------------------------------------------- wire


def parse(value: object) -> FieldSet:
    """The set that a fieldsV1 value says; BadRequest if it says none.

    Steps of kinds that nobody knows are passed over: they are another version's business.
    """
    return _parse(value, 0)


def _parse(value: object, depth: int) -> FieldSet:
    if not isinstance(value, dict):
        raise BadRequest("fieldsV1: every field must be an object")
    if depth > MAX_DEPTH:
        raise BadRequest(f"fieldsV1 is nested more than {MAX_DEPTH} deep")
    members: set[str] = set()
    children: dict[str, FieldSet] = {}
    for key, inner in value.items():
        if key == ".":
            continue
        step = key if key.startswith("f:") else _step(key)
        if not inner and isinstance(inner, dict):
            if step is not None:
                members.add(step)
            continue
        below = _parse(inner, depth + 1)
        if step is None:
            continue
        if "." in inner:
            members.add(step)
        if below:
            children[step] = below
    return FieldSet(frozenset(members), children) if members or children else EMPTY


def _step(key: str) -> str | None:
    """The step that is no field, in its one spelling; None for a kind that nobody knows."""
    if not key.startswith(("k:", "v:", "i:")):
        return None
    return _spelt(key) if len(key) <= _LONGEST_KEPT else _spelt.__wrapped__(key)


@lru_cache(maxsize=4096)
def _spelt(key: str) -> str:
    kind, text = key[:2], key[2:]
    try:
        value = msgspec.json.decode(text)
        spelt = kind + _text(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        raise BadRequest(f"fieldsV1: {kind} is not followed by JSON") from None
    if kind == "k:" and not (isinstance(value, dict) and value):
        raise BadRequest("fieldsV1: k: is not followed by key fields")
    if kind == "i:" and not (isinstance(value, int) and not isinstance(value, bool)):
        raise BadRequest("fieldsV1: i: is not followed by an index")
    return spelt


def write(fields: FieldSet) -> dict[str, Any]:
    """The set as a fieldsV1 value."""
    written: dict[str, Any] = {}
    for step, below in fields.children.items():
        inner = write(below)
        if step in fields.members:
            inner["."] = {}
        written[step] = inner
    for step in fields.members:
        if step not in written:
            written[step] = {}
    return written
