"""Checking an object against its structural schema: every fault, in Kubernetes' words.

On an update, what has not changed is not found fault with (Kubernetes: "validation ratcheting"), so
that a schema may become stricter while old objects are still touched. The work is bounded by steps:
what is too much for them is a fault like others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from isthmus.errors import Cause
from isthmus.model.crd.formats import FORMATS
from isthmus.model.crd.nodes import NOTHING, Node
from isthmus.model.document import json_type
from isthmus.model.faults import (
    duplicate,
    invalid,
    not_supported,
    required,
    show,
    too_long,
    too_many,
    wrong_type,
)
from isthmus.model.regex import compiled
from isthmus.model.shapes import METADATA
from isthmus.model.walk import MAX_FAULTS, join, type_faults

MAX_STEPS: Final = 500_000
"""Steps of checking one object: about half a second."""

_TRY: Final = 8
"""Steps that it takes to try one of several schemas, beside what it checks."""

ABSENT: Final = NOTHING
"""In place of an old value: there is none to compare with."""


class _Enough(Exception):
    """As many faults or steps as anybody needs."""


def faults(root: Node, value: Any, old: Any = ABSENT, path: str = "") -> list[Cause]:  # noqa: ANN401 - JSON
    """Every fault of a value at `path`, at most MAX_FAULTS; `old` is what stood there before."""
    check = _Check()
    try:
        check.node(root, value, old, path)
    except _Enough:
        if check.steps < 0:
            why = f"takes more than {MAX_STEPS} steps to validate"
            check.found.append(invalid(path, json_type(value), why))
    return check.found


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether two JSON values are the same; true is not 1, however deep it stands."""
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, dict | list) or identity(one) == identity(other)


def correlated(node: Node, old: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The items of an old list of type map by their keys, as `list_key` says them."""
    if node.list_type != "map" or not isinstance(old, list) or node.items is None:
        return {}
    return {list_key(node, each): each for each in old if isinstance(each, dict)}


def list_key(node: Node, item: Any) -> str:  # noqa: ANN401 - JSON
    """What tells an item of a list of type map from the others, as text."""
    return identity(_keys(node, item))


def identity(value: Any) -> str:  # noqa: ANN401 - JSON
    """A text that only equal values have."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _keys(node: Node, item: Any) -> Any:  # noqa: ANN401 - JSON
    fields = node.items.properties if node.items is not None else {}
    absent = {name: held.default for name, held in fields.items() if held.default is not NOTHING}
    return {name: item.get(name, absent.get(name)) for name in node.list_keys}


class _Check:
    """One check: its faults, and the steps that are left."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.found: list[Cause] = []
        self.steps = steps

    def _say(self, cause: Cause) -> None:
        self.found.append(cause)
        if len(self.found) >= MAX_FAULTS:
            raise _Enough

    def _spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise _Enough

    def node(self, node: Node, value: Any, old: Any, path: str) -> None:  # noqa: ANN401 - JSON
        """Check a value and all below it."""
        self._spend(1)
        if old is not ABSENT and same(value, old):
            return
        if not self._type(node, value, path):
            return
        if value is None:
            return
        self._value(node, value, path)
        match value:
            case dict():
                self._object(node, value, old, path)
            case list():
                self._list(node, value, old, path)
            case _:
                pass

    def _value(self, node: Node, value: Any, path: str) -> None:  # noqa: ANN401 - JSON
        """What the node says of the value itself."""
        if node.enum is not None:
            self._spend(len(node.enum) // 64)
            if not any(same(value, each) for each in node.enum):
                words = [each if isinstance(each, str) else show(each) for each in node.enum[:64]]
                self._say(not_supported(path, value, words))
        match value:
            case str():
                self._text(node, value, path)
            case bool():
                pass
            case int() | float():
                self._number(node, value, path)
            case _:
                pass
        if node.logical:
            self._logic(node, value, path)

    # ----------------------------------------------------------------------------------- types

    def _type(self, node: Node, value: Any, path: str) -> bool:  # noqa: ANN401 - JSON
        """Whether the value is of the node's type; nulls are, where they may stand."""
        if value is None and (node.nullable or not (node.type or node.int_or_string)):
            return True
        if node.int_or_string:
            fits, said = isinstance(value, str) or _is_whole(value), "integer,string"
        else:
            fits, said = _fits(node.type, value), node.type
        if not fits:
            found = "integer" if _is_whole(value) else json_type(value)
            where = path or "the object"
            self._say(wrong_type(path, found, f'{where} in body must be of type {said}: "{found}"'))
        return fits

    # --------------------------------------------------------------------------------- scalars

    def _text(self, node: Node, value: str, path: str) -> None:
        bounds = node.bounds
        if bounds.max_length is not None and len(value) > bounds.max_length:
            self._say(too_long(path, bounds.max_length))
        if bounds.min_length is not None and len(value) < bounds.min_length:
            says = f"{path} in body should be at least {bounds.min_length} chars long"
            self._say(invalid(path, value, says))
        if node.pattern:
            self._spend(1 + len(value) // 256)
            if not _matches(node.pattern, value):
                self._say(invalid(path, value, f"{path} in body should match '{node.pattern}'"))
        check = FORMATS.get(node.format)
        # A format of a number says nothing of the text beside it.
        if check is not None and node.type in ("string", "") and not check(value):
            says = f"{path} in body must be of type {node.format}: {show(value)}"
            self._say(invalid(path, value, says))

    def _number(self, node: Node, value: float, path: str) -> None:
        bounds = node.bounds
        low, high = bounds.minimum, bounds.maximum
        if low is not None and (value <= low if bounds.over_minimum else value < low):
            word = "greater than" if bounds.over_minimum else "greater than or equal to"
            self._say(invalid(path, value, f"{path} in body should be {word} {show(low)}"))
        if high is not None and (value >= high if bounds.under_maximum else value > high):
            word = "less than" if bounds.under_maximum else "less than or equal to"
            self._say(invalid(path, value, f"{path} in body should be {word} {show(high)}"))
        step = bounds.multiple_of
        if step is not None and not _is_multiple(value, step):
            self._say(invalid(path, value, f"{path} in body should be a multiple of {show(step)}"))
        bits = {"int32": 31, "int64": 63}.get(node.format, 63 if node.type == "integer" else 0)
        if bits and not -(2**bits) <= value < 2**bits:
            says = f"{path} in body must be of type {node.format or 'int64'}: {show(value)}"
            self._say(invalid(path, value, says))

    # ----------------------------------------------------------------------------- collections

    def _object(self, node: Node, value: dict[str, Any], old: Any, path: str) -> None:  # noqa: ANN401 - JSON
        held = old if isinstance(old, dict) else {}
        most, least = node.bounds.max_properties, node.bounds.min_properties
        if most is not None and len(value) > most:
            self._say(too_many(path, len(value), most))
        if least is not None and len(value) < least:
            says = f"{path} in body should have at least {least} properties"
            self._say(invalid(path, len(value), says))
        for name in node.required:
            if name not in value:
                self._say(required(join(path, name)))
        if node.embedded:
            self._embedded(value, path)
        for name, inner in value.items():
            below = node.properties.get(name, node.values)
            if below is not None:
                where = join(path, name) if name in node.properties else f"{path}.{name}"
                self.node(below, inner, held.get(name, ABSENT), where)

    def _embedded(self, value: dict[str, Any], path: str) -> None:
        """An object within an object: it says what it is, and has metadata."""
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name), str) or not value[name]:
                self._say(required(join(path, name), "must not be empty"))
        if "metadata" in value:
            where = join(path, "metadata")
            for cause in type_faults(METADATA, value["metadata"]):
                self._say(cause._replace(path=join(where, cause.path) if cause.path else where))

    def _list(self, node: Node, value: list[Any], old: Any, path: str) -> None:  # noqa: ANN401 - JSON
        most, least = node.bounds.max_items, node.bounds.min_items
        if most is not None and len(value) > most:
            self._say(too_many(path, len(value), most))
        if least is not None and len(value) < least:
            says = f"{path} in body should have at least {least} items"
            self._say(invalid(path, len(value), says))
        if node.list_type in ("set", "map"):
            self._duplicates(node, value, path)
        if node.items is None:
            return
        held = correlated(node, old)
        for at, each in enumerate(value):
            before = ABSENT
            if held and isinstance(each, dict):
                before = held.get(list_key(node, each), ABSENT)
            self.node(node.items, each, before, f"{path}[{at}]")

    def _duplicates(self, node: Node, value: list[Any], path: str) -> None:
        seen: set[str] = set()
        for at, each in enumerate(value):
            if node.list_type == "map" and not isinstance(each, dict):
                continue
            key = each if node.list_type == "set" else _keys(node, each)
            said = identity(key)
            self._spend(1 + len(said) // 256)
            if said in seen:
                self._say(duplicate(f"{path}[{at}]", key))
            seen.add(said)

    # ----------------------------------------------------------------------------------- logic

    def _logic(self, node: Node, value: Any, path: str) -> None:  # noqa: ANN401 - JSON
        where = path or "<root>"
        for part in node.all_of:
            broken = self._try(part, value, path)
            if broken:
                self._say(_combined(path, f'"{where}" must validate all the schemas (allOf)'))
                self._say_all(broken)
        if node.any_of:
            tries = list(self._tries(node.any_of, value, path))
            if all(tries):
                says = f'"{where}" must validate at least one schema (anyOf)'
                self._say(_combined(path, says))
                self._say_all(min(tries, key=len))
        if node.one_of:
            tries = list(self._tries(node.one_of, value, path, stop=False))
            fitting = sum(not each for each in tries)
            if fitting != 1:
                found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
                says = f'"{where}" must validate one and only one schema (oneOf). {found}'
                self._say(_combined(path, says))
                self._say_all(min(tries, key=len))
        if node.negated is not None and not self._try(node.negated, value, path):
            self._say(_combined(path, f'"{where}" must not validate the schema (not)'))

    def _say_all(self, causes: list[Cause]) -> None:
        for cause in causes:
            self._say(cause)

    def _tries(
        self,
        parts: tuple[Node, ...],
        value: Any,  # noqa: ANN401 - JSON
        path: str,
        *,
        stop: bool = True,
    ) -> Iterator[list[Cause]]:
        """The faults for each of the parts; `stop` at the first without any."""
        for part in parts:
            broken = self._try(part, value, path)
            yield broken
            if stop and not broken:
                return

    def _try(self, part: Node, value: Any, path: str) -> list[Cause]:  # noqa: ANN401 - JSON
        """The faults that the value has for a part alone."""
        inner = _Check(self.steps - _TRY)
        try:
            inner.node(part, value, ABSENT, path)
        except _Enough:
            if inner.steps < 0:
                raise
        finally:
            self.steps = inner.steps
        return inner.found


def _combined(path: str, says: str) -> Cause:
    return invalid(path, "", says)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(kind: str, value: Any) -> bool:  # noqa: ANN401 - JSON
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_whole(value) or (isinstance(value, float) and value.is_integer())
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return True


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and float(step).is_integer():
        return value % int(step) == 0
    ratio = value / step
    return math.isfinite(ratio) and math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-12)


def _matches(pattern: str, text: str) -> bool:
    """Whether RE2 finds the pattern; patterns were compiled when the schema was taken."""
    try:
        return compiled(pattern).search(text) is not None
    except ValueError:
        return False
