"""The expressions of CEL as values: what the parser makes, the checker and the evaluator read.

Macros are nodes of their own (`Fold`, `Present`, `Bind`), and chains of `&&` and `||` are flat, so
that a long rule is not a deep one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Literal(NamedTuple):
    """A constant: null, bool, int, Uint, float, str or bytes."""

    value: object


class Name(NamedTuple):
    """A variable, or a part of a qualified name."""

    name: str


class Select(NamedTuple):
    """`of.field`; `optional` for `of.?field`."""

    of: Expr
    field: str
    optional: bool = False


class Present(NamedTuple):
    """`has(of.field)`."""

    of: Expr
    field: str


class At(NamedTuple):
    """`of[key]`; `optional` for `of[?key]`."""

    of: Expr
    key: Expr
    optional: bool = False


class Call(NamedTuple):
    """`function(args)`, or `target.function(args)` whose target is the first of `args`."""

    function: str
    args: tuple[Expr, ...]
    method: bool = False


class Both(NamedTuple):
    """`a && b && ...`, or `a || b || ...` where `any` is True."""

    parts: tuple[Expr, ...]
    any: bool


class Choice(NamedTuple):
    """`condition ? yes : no`."""

    condition: Expr
    yes: Expr
    no: Expr


class ListOf(NamedTuple):
    """`[a, ?b]`; `optional` says which items are optional."""

    items: tuple[Expr, ...]
    optional: tuple[bool, ...]


class MapOf(NamedTuple):
    """`{k: v, ?k: v}`."""

    entries: tuple[tuple[Expr, Expr], ...]
    optional: tuple[bool, ...]


class Fold(NamedTuple):
    """A macro over a list or map: `over.kind(names..., steps...)`.

    `kind` is all, exists, existsOne, map, filter, transformList or transformMap. `steps` is the
    predicate; of maps and transforms the filter, if any, and the result.
    """

    kind: str
    over: Expr
    names: tuple[str, ...]
    steps: tuple[Expr, ...]


class Bind(NamedTuple):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Expr
    body: Expr


class OptMap(NamedTuple):
    """`of.optMap(name, body)`; `flat` for optFlatMap."""

    of: Expr
    name: str
    body: Expr
    flat: bool


Expr = (
    Literal
    | Name
    | Select
    | Present
    | At
    | Call
    | Both
    | Choice
    | ListOf
    | MapOf
    | Fold
    | Bind
    | OptMap
)


def below(expr: Expr) -> Iterable[Expr]:  # noqa: PLR0911 - one case for each kind
    """The expressions right below one."""
    match expr:
        case Literal() | Name():
            return ()
        case Select(of) | Present(of):
            return (of,)
        case At(of, key):
            return (of, key)
        case Call(_, args):
            return args
        case Both(parts):
            return parts
        case Choice(condition, yes, no):
            return (condition, yes, no)
        case ListOf(items):
            return items
        case MapOf(entries):
            return [each for entry in entries for each in entry]
        case Fold(_, over, _, steps):
            return (over, *steps)
        case Bind(_, value, body):
            return (value, body)
        case OptMap(of, _, body):
            return (of, body)


def size(expr: Expr) -> int:
    """How many expressions it is made of."""
    found, waiting = 0, [expr]
    while waiting:
        found += 1
        waiting.extend(below(waiting.pop()))
    return found


def depth(expr: Expr) -> int:
    """How many expressions stand inside one another."""
    level, found = [expr], 0
    while level:
        found += 1
        level = [inner for each in level for inner in below(each)]
    return found
