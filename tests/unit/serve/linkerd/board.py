"""A board of one table, and the calls that tell what is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from isthmus.aio import SystemClock
from isthmus.board import Following
from isthmus.calls import Refusal
from isthmus.engine import Change, Database, Delete, Put, Query, Table, View, query
from isthmus.errors import Unavailable
from isthmus.serve.linkerd import Method, Read

WORDS: Table[str, str] = Table("linkerd_test_words")
SERVICE = "test.Words"


@query
def word(db: View, key: str) -> bytes | None:
    """The word under a key, "" for none; a query that fails for the word `bug`."""
    found = WORDS.get(db, key) or ""
    if found == "bug":
        raise LookupError("a secret of ours")
    return None if found == "silence" else found.encode()


def question(_read: Read, request: bytes) -> str | Refusal:
    text = request.decode(errors="replace")
    if text.startswith("refuse "):
        return Refusal(*text.split(" ", 2)[1:])
    if text == "later":
        raise Unavailable("not now")
    if text == "group":
        raise ExceptionGroup("several", [Unavailable("not now")])
    return text


def steps(held: bytes | None, now: bytes) -> Sequence[bytes]:
    return (now,) if held != now else ()


CALLS = {"Watch": Method(question, word, steps)}


class Words:
    """What a server needs of a board."""

    def __init__(self) -> None:
        self.database = Database()

    @property
    def read(self) -> Read:
        return self.database.read

    def follow(
        self,
        told: Callable[[Any], None],
        query: Query[..., Any],
        /,
        *key: Any,  # noqa: ANN401
    ) -> Following:
        return Following(self.database, SystemClock(), told, query, *key)

    def put(self, **words: str | None) -> None:
        changes: list[Change] = [
            Put(WORDS, key, text) if text is not None else Delete(WORDS, key)
            for key, text in words.items()
        ]
        self.database.commit(changes)


def call(channel: Any, name: str = "Watch") -> Any:  # noqa: ANN401 - grpc's own
    """A call of bytes."""
    return channel.unary_stream(f"/{SERVICE}/{name}", None, None)
