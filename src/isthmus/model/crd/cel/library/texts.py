"""Functions over texts and lists: CEL's own, its `strings` extension, and Kubernetes' libraries."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from isthmus.model.crd.cel.library.core import duration_text, number_text, time_text
from isthmus.model.crd.cel.library.table import (
    MAX_RESULT,
    Work,
    function,
    item_of_first,
    method,
    same_as_first,
)
from isthmus.model.crd.cel.types import (
    BOOL,
    DYN,
    INT,
    LIST,
    STRING,
    CelType,
    list_of,
)
from isthmus.model.crd.cel.values import CelError, TypeName, Uint, equal, type_name
from isthmus.model.regex import compiled

_TEXTS = list_of(STRING)

# ----------------------------------------------------------------------------------------- texts


def bounded(text: str) -> str:
    """A text that a function made, or CelError if it is too long to go on with."""
    if len(text) > MAX_RESULT:
        raise CelError(f"a text of more than {MAX_RESULT} characters")
    return text


method("startsWith", STRING, STRING, gives=BOOL)(lambda a, b: a.startswith(b))
method("endsWith", STRING, STRING, gives=BOOL)(lambda a, b: a.endswith(b))
method("contains", STRING, STRING, gives=BOOL)(lambda a, b: b in a)
method("indexOf", STRING, STRING, gives=INT)(lambda a, b: a.find(b))
method("lastIndexOf", STRING, STRING, gives=INT)(lambda a, b: a.rfind(b))
method("trim", STRING, gives=same_as_first)(str.strip)
method("reverse", STRING, gives=same_as_first)(lambda a: a[::-1])
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
method("lowerAscii", STRING, gives=lambda args: args[0])(lambda a: a.translate(_LOWER))
method("upperAscii", STRING, gives=lambda args: args[0])(lambda a: a.translate(_UPPER))


def _within(text: str, at: int) -> int:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return at


method("charAt", STRING, INT, gives=CelType("string", limit=1))(
    lambda a, at: a[_within(a, at) :][:1]
)
method("indexOf", STRING, STRING, INT, gives=INT)(lambda a, b, at: a.find(b, _within(a, at)))
method("lastIndexOf", STRING, STRING, INT, gives=INT)(
    lambda a, b, at: a.rfind(b, 0, _within(a, at) + len(b))
)
method("substring", STRING, INT, gives=lambda args: args[0])(lambda a, at: a[_within(a, at) :])


@method("substring", STRING, INT, INT, gives=lambda args: args[0])
def _substring(text: str, start: int, end: int) -> str:
    if _within(text, start) > _within(text, end):
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


@method("replace", STRING, STRING, STRING, gives=STRING)
def _replace(text: str, old: str, new: str) -> str:
    return _replace_some(text, old, new, -1)


@method("replace", STRING, STRING, STRING, INT, gives=STRING)
def _replace_some(text: str, old: str, new: str, count: int) -> str:
    times = text.count(old)
    if len(text) + times * len(new) > MAX_RESULT + times * len(old):
        raise CelError(f"a text of more than {MAX_RESULT} characters")
    return text.replace(old, new, count if count >= 0 else -1)


@method("split", STRING, STRING, gives=_TEXTS)
def _split(text: str, by: str) -> list[str]:
    return text.split(by) if by else list(text)


@method("split", STRING, STRING, INT, gives=_TEXTS)
def _split_some(text: str, by: str, most: int) -> list[str]:
    if most < 0:
        return _split(text, by)
    if most <= 1:
        return [text][:most]
    if by:
        return text.split(by, most - 1)
    return [*text[: most - 1], text[most - 1 :]] if len(text) >= most else list(text)


@method("join", LIST, gives=STRING)
def _join(parts: list[Any]) -> str:
    return _join_by(parts, "")


@method("join", LIST, STRING, gives=STRING)
def _join_by(parts: list[Any], by: str) -> str:
    if not all(isinstance(each, str) for each in parts):
        raise CelError("no such overload")
    if sum(map(len, parts)) + len(by) * len(parts) > MAX_RESULT:
        raise CelError(f"a text of more than {MAX_RESULT} characters")
    return by.join(parts)


@function("strings.quote", STRING, gives=STRING)
def _quote(text: str) -> str:
    pairs = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
             "\v": "\\v", "\\": "\\\\", '"': '\\"'}  # fmt: skip
    return f'"{"".join(pairs.get(each, each) for each in text)}"'


_CLAUSE = re.compile(r"%(?:\.([0-9]{1,2}))?([sdfexXobB%])|%")


@method("format", STRING, LIST, gives=STRING, work=Work.DEEP)
def _format(text: str, args: list[Any]) -> str:
    """Clauses %s %d %f %e %x %X %o %b; each takes the next argument."""
    waiting = iter(args)

    def clause(found: re.Match[str]) -> str:
        if found[2] is None:
            raise CelError("unrecognized formatting clause")
        if found[2] == "%":
            return "%"
        try:
            value = next(waiting)
        except StopIteration:
            raise CelError("index out of range: not enough arguments") from None
        return _formatted(found[2], int(found[1]) if found[1] else 6, value)

    return bounded(_CLAUSE.sub(clause, text))


def _formatted(letter: str, digits: int, value: Any) -> str:  # noqa: ANN401 - of CEL
    kind = type_name(value)
    match letter:
        case "s":
            return shown(value)
        case "d" if kind in ("int", "uint"):
            return str(int(value))
        case "f" | "e" if kind in ("int", "uint", "double"):
            return f"{float(value):.{digits}{letter}}"
        case "x" | "X" if kind == "string":
            return str(value.encode().hex()) if letter == "x" else str(value.encode().hex().upper())
        case "x" | "X" | "o" | "b" if kind in ("int", "uint"):
            return format(int(value), letter)
        case "b" if kind == "bool":
            return str(int(value))
        case _:
            raise CelError(f"error during formatting: %{letter} does not take {kind}")


def shown(value: Any) -> str:  # noqa: ANN401, PLR0911 - one case for each type
    """A value as `%s` writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return number_text(value)
        case int() | Uint():
            return str(int(value))
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case datetime():
            return time_text(value)
        case timedelta():
            return duration_text(value)
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            pairs = sorted((shown(key), shown(each)) for key, each in value.items())
            return f"{{{', '.join(f'{key}: {each}' for key, each in pairs)}}}"
        case TypeName(name):
            return name
        case _:
            raise CelError(f"error during formatting: {type_name(value)} has no text")


# --------------------------------------------------------------------------- regular expressions


def _pattern(text: str) -> Any:  # noqa: ANN401 - re2 has no types
    try:
        return compiled(text)
    except ValueError as fault:
        raise CelError(f"{fault}") from None


@function("matches", STRING, STRING, gives=BOOL, method=None)
def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).search(text) is not None


@method("find", STRING, STRING, gives=lambda args: args[0])
def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return str(found.group(0)) if found else ""


@method("findAll", STRING, STRING, gives=_TEXTS)
def _find_all(text: str, pattern: str) -> list[str]:
    return _find_some(text, pattern, -1)


@method("findAll", STRING, STRING, INT, gives=_TEXTS)
def _find_some(text: str, pattern: str, most: int) -> list[str]:
    found: list[str] = []
    for each in _pattern(pattern).finditer(text):
        if 0 <= most <= len(found):
            break
        found.append(str(each.group(0)))
    return found


# ----------------------------------------------------------------------------------------- lists


def _ordered(values: list[Any]) -> list[Any]:
    """The list, or CelError unless its items can be compared with one another."""
    kinds = {"number" if isinstance(each, int | float) and not isinstance(each, bool)
             else type_name(each) for each in values}  # fmt: skip
    comparable = {"number", "string", "bool", "bytes"}
    comparable |= {"google.protobuf.Timestamp", "google.protobuf.Duration"}
    if len(kinds) > 1 or not kinds <= comparable:
        raise CelError("no such overload")
    return values


@method("isSorted", LIST, gives=BOOL)
def _is_sorted(values: list[Any]) -> bool:
    _ordered(values)
    return all(one <= other for one, other in pairwise(values))


@method("sum", LIST, gives=item_of_first)
def _sum(values: list[Any]) -> Any:  # noqa: ANN401 - a value of CEL
    kinds = {type_name(each) for each in values}
    if not values:
        return 0
    if kinds == {"google.protobuf.Duration"}:
        return sum(values, timedelta())
    if len(kinds) > 1 or not kinds <= {"int", "uint", "double"}:
        raise CelError("no such overload")
    total = sum(values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise CelError("integer overflow")
    return Uint(total) if kinds == {"uint"} else total


def _edge(values: list[Any], pick: Any, name: str) -> Any:  # noqa: ANN401 - a value of CEL
    if not values:
        raise CelError(f"{name} called on empty list")
    return pick(_ordered(values))


method("min", LIST, gives=item_of_first)(lambda a: _edge(a, min, "min"))
method("max", LIST, gives=item_of_first)(lambda a: _edge(a, max, "max"))
method("indexOf", LIST, DYN, gives=INT, work=Work.DEEP)(
    lambda a, b: next((at for at, each in enumerate(a) if equal(each, b)), -1)
)
method("lastIndexOf", LIST, DYN, gives=INT, work=Work.DEEP)(
    lambda a, b: next((at for at in reversed(range(len(a))) if equal(a[at], b)), -1)
)
method("reverse", LIST, gives=lambda args: args[0])(lambda a: a[::-1])
method("sort", LIST, gives=lambda args: args[0])(lambda a: sorted(_ordered(a)))


@method("slice", LIST, INT, INT, gives=lambda args: args[0])
def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise CelError(f"cannot slice({start}, {end}), the list has {len(values)} items")
    return values[start:end]


@method("flatten", LIST, gives=LIST)
def _flatten(values: list[Any]) -> list[Any]:
    flat = [inner for each in values for inner in (each if isinstance(each, list) else [each])]
    if len(flat) > MAX_RESULT:
        raise CelError(f"a list of more than {MAX_RESULT} items")
    return flat


# ------------------------------------------------------------------------------------------ sets


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for each in values:
        if not any(equal(each, other) for other in kept):
            kept.append(each)
    return kept


def _holds(one: list[Any], other: list[Any]) -> bool:
    return all(any(equal(each, held) for held in one) for each in other)


method("distinct", LIST, gives=lambda args: args[0], work=Work.PAIRS)(_distinct)
function("sets.contains", LIST, LIST, gives=BOOL, work=Work.PAIRS)(_holds)
function("sets.equivalent", LIST, LIST, gives=BOOL, work=Work.PAIRS)(
    lambda a, b: _holds(a, b) and _holds(b, a)
)
function("sets.intersects", LIST, LIST, gives=BOOL, work=Work.PAIRS)(
    lambda a, b: any(equal(one, other) for one in a for other in b)
)
