"""Which values may be keys.

A key names a cell for as long as the process lives, so it must be immutable, hashable, and mean
one thing: `True == 1` and `1.0 == 1` would let two names share a cell, so bools and floats are out.
Keys are checked whenever they come from outside, and when a query makes a new cell.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from isthmus.engine.faults import BadKey

_ATOMS = frozenset({str, int, type(None)})


def check_key(key: object, where: str) -> None:
    """Refuse a key that is not str, int, None, an enum, or a tuple or frozen Struct of these.

    `where` names the table or query for the message.
    """
    if key.__class__ in _ATOMS:
        return
    if isinstance(key, tuple):
        for part in key:
            if part.__class__ not in _ATOMS:
                check_key(part, where)
    elif isinstance(key, msgspec.Struct):
        _check_struct(key, where)
    elif isinstance(key, bool | float) or not isinstance(key, str | int | Enum):
        raise BadKey(f"{where}: {key!r} ({type(key).__name__}) cannot be a key or part of one")


def _check_struct(key: msgspec.Struct, where: str) -> None:
    if not key.__struct_config__.frozen:
        raise BadKey(f"{where}: {type(key).__name__} is not frozen, so it cannot be a key")
    for name in key.__struct_fields__:
        check_key(getattr(key, name), where)
