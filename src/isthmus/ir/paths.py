"""Paths as they are compared, and changes of paths (decision 20).

What two proxies could read differently is refused or made one before any rule looks at it: encoded
slashes and fragments are refused, dot segments resolved, repeated slashes merged, and letters that
were encoded for no reason decoded (RFC 3986, 6.2.2.2). All as Envoy does it.
"""

from __future__ import annotations

import re
from typing import Final

from isthmus.ir.rules import PathChange

_ENCODED_SLASH: Final = re.compile(r"%2f|%5c", re.IGNORECASE)
_ENCODED: Final = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED: Final = re.compile(r"[-._~A-Za-z0-9]")


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
        dots = _dots(segment)
        if dots == "..":
            del kept[-1:]
        elif dots is None:
            kept.append(_decoded(segment))
    if _dots(segments[-1]) is not None:
        kept.append("")
    merged = [segment for segment in kept if segment]
    ends = "/" if merged and kept and kept[-1] == "" else ""
    return "/" + "/".join(merged) + ends


def _dots(segment: str) -> str | None:
    """`.` or `..` if a segment stands for one, with parameters behind it too."""
    for found in (_decoded(segment), segment.partition(";")[0]):
        if found in (".", ".."):
            return found
    return None


def _decoded(segment: str) -> str:
    """Letters, digits and `-._~` as themselves; everything else as it was sent."""

    def plain(found: re.Match[str]) -> str:
        mark = chr(int(found[1], 16))
        return mark if _UNRESERVED.fullmatch(mark) else found[0]

    return _ENCODED.sub(plain, segment)


def has_parameters(target: str) -> bool:
    """Whether a path has `;`: what follows it in a segment is no part of the path to some servers.

    Where a path decides who may in, such a request is refused.
    """
    return ";" in split_query(target)[0]


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
