"""Who asks for the same is told the same: one watched cell for all streams of a question.

A change wakes one cell and is worked out once, then every stream learns of it; so what a change
costs, apart from the messages themselves, does not depend on how many clients there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from isthmus.engine import Query
from isthmus.serve.linkerd.method import Read

Learn = Callable[[Any], None]


class Followed(Protocol):
    """A cell that is followed."""

    def catch_up(self) -> None:
        """Tell now what would be told a little later."""

    def close(self) -> None:
        """Follow it no longer."""


class Board(Protocol):
    """Where truth comes from."""

    @property
    def read(self) -> Read:
        """One answer, now."""

    def follow(self, told: Learn, query: Query[..., Any], /, *key: Any) -> Followed:  # noqa: ANN401
        """Have `told` called with the value of `query` at `key` whenever it has changed."""


class Topic(NamedTuple):
    """A cell, and who is told of it."""

    followed: Followed
    learners: dict[Learn, None]


class Topics:
    """The cells that open streams watch."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._topics: dict[tuple[Query[..., Any], Any], Topic] = {}

    def join(self, query: Query[[Any], Any], key: Any, learn: Learn) -> None:  # noqa: ANN401
        """Tell `learn` the value of now, and later ones as they come."""
        topic = self._topics.get((query, key))
        if topic is not None:
            # Or it may know what the others are not told yet, and never are if it changes back.
            topic.followed.catch_up()
        # Read first: where the query fails, which is a bug, a watched cell would say nothing.
        learn(self._board.read(query, key))
        if topic is None:
            topic = self._topics[query, key] = self._topic(query, key)
        topic.learners[learn] = None

    def _topic(self, query: Query[[Any], Any], key: Any) -> Topic:  # noqa: ANN401
        learners: dict[Learn, None] = {}

        def tell(value: Any) -> None:  # noqa: ANN401
            for each in learners:
                each(value)

        return Topic(self._board.follow(tell, query, key), learners)

    def leave(self, query: Query[[Any], Any], key: Any, learn: Learn) -> None:  # noqa: ANN401
        """Tell `learn` nothing any more; the last to leave lets the cell go."""
        topic = self._topics.get((query, key))
        if topic is None or topic.learners.pop(learn, self) is self:
            return
        if not topic.learners:
            del self._topics[query, key]
            topic.followed.close()

    def __len__(self) -> int:
        return len(self._topics)
