"""The JSON paths of definitions: columns, selectable fields, replicas.

`simple` paths (`.spec.replicas`) name one place. Columns may also take an item by number, all items
(`[*]`), or those for which a field has a value (`[?(@.type=="Ready")]`), as kubectl's JSONPath has
them. A path is read once, when the definition is taken, and then cannot fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

MAX_PATH: Final = 1024
"""Characters of one path."""

MAX_FOUND: Final = 64
"""Values that a path is followed to; nobody shows more."""


class Field(NamedTuple):
    """`.name`, `['name']`."""

    name: str


class Item(NamedTuple):
    """`[3]`; negative numbers count from the end."""

    at: int


class All(NamedTuple):
    """`[*]`, `.*`."""


class Where(NamedTuple):
    """`[?(@.path == value)]`; `sign` is one of ==, !=, <, <=, >, >=, or "" for "is there"."""

    path: tuple[str, ...]
    sign: str
    value: Any


Step = Field | Item | All | Where
Path = tuple[Step, ...]

_STEP: Final = re.compile(
    r"""\.(?P<all>\*)
    |\.(?P<name>(?:[^.\[\]\\(){}\s'"]|\\.)+)
    |\[(?P<index>-?[0-9]{1,6})\]
    |\[(?P<every>\*)\]
    |\[(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\]
    |\[\?\(\s*@(?P<inner>(?:\.(?:[^.\[\]\\()\s'"=!<>]|\\.)+)+)\s*
      (?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|-?[0-9]+(?:\.[0-9]+)?|true|false)\s*)?\)\]
    """,
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)")
_SIMPLE: Final = re.compile(r"(?:\.[A-Za-z0-9_-]+)+", re.ASCII)


def parse(text: str) -> Path:
    """The steps of a path; ValueError says what is wrong with it."""
    if len(text) > MAX_PATH:
        raise ValueError(f"may not be longer than {MAX_PATH} characters")
    if not text.startswith((".", "[")):
        raise ValueError('a JSON path must begin with "."')
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError(f"is an invalid JSON path: unexpected {text[at : at + 16]!r}")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    said = found.groupdict()
    if said["all"] or said["every"]:
        return All()
    if said["index"]:
        return Item(int(said["index"]))
    if said["inner"]:
        path = tuple(
            _ESCAPED.sub(r"\1", part) for part in re.findall(r"\.((?:[^.\\]|\\.)+)", said["inner"])
        )
        return Where(path, said["sign"] or "", _constant(said["value"] or ""))
    name = next(said[each] for each in ("name", "single", "double") if said[each] is not None)
    return Field(_ESCAPED.sub(r"\1", name))


def _constant(text: str) -> Any:  # noqa: ANN401 - text, number or truth
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text or 0)


def simple(text: str) -> tuple[str, ...] | None:
    """The names of a path that only names fields (`.spec.replicas`), or None."""
    if len(text) > MAX_PATH or not _SIMPLE.fullmatch(text):
        return None
    return tuple(text[1:].split("."))


def find(path: Path, document: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """What stands at the path, in order; missing fields are nothing."""
    found = [document]
    for step in path:
        found = [inner for each in found for inner in _below(step, each)][:MAX_FOUND]
    return found


def _below(step: Step, value: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON
    match step, value:
        case Field(name), dict():
            if name in value:
                yield value[name]
        case Item(at), list():
            if -len(value) <= at < len(value):
                yield value[at]
        case All(), list():
            yield from value
        case All(), dict():
            yield from value.values()
        case Where(), list():
            yield from (each for each in value if _holds(step, each))
        case _:
            return


def _holds(where: Where, item: Any) -> bool:  # noqa: ANN401 - JSON
    value = item
    for name in where.path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    wanted = where.value
    if where.sign in ("==", "!="):
        equal = isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)
        return equal is (where.sign == "==")
    if not where.sign:
        return True
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    if not numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    return bool(_ORDERS[where.sign](value, wanted))


_ORDERS: Final = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
