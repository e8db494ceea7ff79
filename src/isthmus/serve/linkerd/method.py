"""What a dialect must say for a call to be served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from isthmus.engine import Query
from isthmus.serve.linkerd.machine import Steps


class Read(Protocol):
    """One answer of the database, now: how a question is checked before a stream is opened."""

    def __call__(self, query: Query[..., Any], /, *key: Any) -> Any:  # noqa: ANN401  # any query
        """The value of `query` at `key`."""


class Method(NamedTuple):
    """One call with one request and a stream of answers, or the first of them alone (`unary`).

    `question` turns the request's bytes into the key of `answer`, or a `Refusal`; it must not raise
    for anything that a client can send. Clients take INVALID_ARGUMENT and FAILED_PRECONDITION as
    final and ask again after others. A value of `answer` that is None says nothing.
    """

    question: Callable[[Read, bytes], Any]
    answer: Query[[Any], Any]
    steps: Steps[Any]
    unary: bool = False


Service = Mapping[str, Method]
"""The calls of a gRPC service, by name."""
