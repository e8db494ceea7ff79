"""The page of the admin listener that explains.

Whoever reaches the listener may read it, as its other pages: it is on loopback by default. What it
tells (names of objects, identities, addresses) is what proxies of the cluster are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from isthmus.app.explain.question import question
from isthmus.app.explain.said import Explained
from isthmus.app.explain.way import explained
from isthmus.engine import Query
from isthmus.errors import BadRequest

PAGE: Final = "/explain"


class Read(Protocol):
    """One answer of the database, now."""

    def __call__(self, query: Query[..., Any], /, *key: Any) -> Any:  # noqa: ANN401  # any query
        """The value of `query` at `key`."""


def page(read: Read) -> Callable[[Mapping[str, str]], object]:
    """The page. Its query: from, to, method, path, headers (lines), session, address, throw, at."""

    def told(said: Mapping[str, str]) -> Explained:
        try:
            asked = question(said)
        except BadRequest as fault:
            return Explained(problem=fault.message)
        found: Explained = read(explained, asked)
        return found

    return told
