"""Paths as they are compared, and changes of paths (decision 20).

What two proxies could read differently is refused or made one before any rule looks at it: encoded
slashes and fragments are refused, dot segments resolved, repeated slashes merged.
"""

from __future__ import annotations

import re
from typing import Final

from isthmus.ir.rules import PathChange

_ENCODED_SLASH: Final = re.compile(r"%2f|%5c", re.IGNORECASE)
_ENCODED_DOT: Final = re.compile(r"%2e", re.IGNORECASE)


def normalise(target: str) -> str | None:
    """A request target (path and query) in its one form; None if it is refused with 400.

    The query stays as it is. `*` (OPTIONS) stays; anything else that is not absolute is refused.
    """
    path, mark, query = target.partition("?")
    if "#" in target or _ENCODED_SLASH.search(path):
        return None
    if path == "*":
        return target
    if not path.startswith(("/", "\\")):
        return None
    return _resolved(path.replace("\\", "/")) + mark + query


def _resolved(path: str) -> str:
    """Dot segments are resolved before empty ones are dropped, each `..` taking one segment."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        dots = _ENCODED_DOT.sub(".", segment)
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(segment)
    last = _ENCODED_DOT.sub(".", segments[-1])
    if last in (".", ".."):
        kept.append("")
    merged = [segment for segment in kept if segment]
    ends = "/" if merged and kept and kept[-1] == "" else ""
    return "/" + "/".join(merged) + ends


def split_query(target: str) -> tuple[str, str]:
    """Path and query, the query with its question mark."""
    path, mark, query = target.partition("?")
    return path, mark + query


def covers(prefix: str, path: str) -> bool:
    """Whether a prefix covers a path by whole segments."""
    base = prefix.rstrip("/")
    return path == base or path.startswith(base + "/")


def changed(change: PathChange | None, target: str, prefix: str | None) -> str | None:
    """The target after a change; the query stays. `prefix` is what matched, None if no prefix did.

    None if a prefix is to be replaced where none matched.
    """
    path, query = split_query(target)
    if change is None:
        return target
    if change.full is not None:
        return change.full + query
    if change.prefix is None:
        return target
    if prefix is None or not covers(prefix, path):
        return None
    rest = path[len(prefix.rstrip("/")) :]
    return (change.prefix.rstrip("/") + rest or "/") + query
