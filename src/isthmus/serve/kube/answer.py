"""A request as the handlers see it, and what they answer: no sockets, no aiohttp.

`Asked` is everything known of a request before its body is read. A handler returns an `Answer`
(bytes at hand) or a `Stream` (written piece by piece: long lists, watches), or raises an error of
the tree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from isthmus.model.kind import Kind, Version
from isthmus.serve.kube.auth import User
from isthmus.serve.kube.query import Query
from isthmus.serve.kube.routes import Target

JSON = "application/json"


class Asked(NamedTuple):
    """One request about a resource. `headers` has lower-case names, of each the first value."""

    method: str
    verb: str
    target: Target
    kind: Kind
    version: Version
    query: Query
    headers: Mapping[str, str]
    user: User
    body: Callable[[], Awaitable[bytes]]

    @property
    def accept(self) -> str:
        """The Accept header, or ""."""
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        """The Content-Type header, or ""."""
        return self.headers.get("content-type", "")


class Answer(NamedTuple):
    """A whole response. Each of `warnings` becomes a Warning header."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    warnings: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


Write = Callable[[bytes], Awaitable[None]]
"""Hands bytes to the client and waits while it is slow; raises when it is gone or too slow."""


class Stream(NamedTuple):
    """A response of unknown length. `run` writes it; `watching`: as long as the client likes."""

    run: Callable[[Write], Awaitable[None]]
    content_type: str = JSON
    warnings: tuple[str, ...] = ()
    watching: bool = False


class Takeover(NamedTuple):
    """The handler speaks to the client itself: an upgraded protocol, or what is passed on.

    `run` gets the server's own request object and returns its response; it is given as an opaque
    value, so that handlers of documents need not know the HTTP library.
    """

    run: Callable[[Any], Awaitable[Any]]


Response = Answer | Stream | Takeover


def of_document(document: Any, code: int = 200, warnings: tuple[str, ...] = ()) -> Answer:  # noqa: ANN401 - any JSON value
    """A response of one JSON value."""
    return Answer(msgspec.json.encode(document), code, warnings=warnings)


MAX_WARNINGS = 32
MAX_WARNING = 512
"""Most Warning headers in a response, and most characters in one."""


def warning_headers(texts: tuple[str, ...]) -> list[str]:
    """Values of Warning headers, code 299 as Kubernetes uses it: escaped and bounded."""
    shown = list(dict.fromkeys(texts))[:MAX_WARNINGS]
    return [f'299 - "{_quoted(text)}"' for text in shown]


def _quoted(text: str) -> str:
    kept = "".join(c if c.isprintable() else " " for c in text[:MAX_WARNING])
    return kept.replace("\\", "\\\\").replace('"', '\\"')
