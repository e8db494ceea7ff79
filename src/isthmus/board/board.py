"""The board: the database, who writes it, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple, ParamSpec, TypeVar

from isthmus.aio import Clock, Log
from isthmus.board.feed import Feed
from isthmus.board.following import Following
from isthmus.board.subscription import Subscription
from isthmus.board.tables import Intakes
from isthmus.engine import Change, Database, Query
from isthmus.store.contract import Store

FENCE = 10.0
"""Seconds that `at` waits unless told otherwise."""

P = ParamSpec("P")
T = TypeVar("T")


class Health(NamedTuple):
    """How the local feed fares. `trouble` says why it stands still, or is empty."""

    synced: bool
    revision: int
    unreadable: int
    trouble: str


class Board:
    """Owns the Database of one control plane.

    Nobody commits but through it. `intakes` says where the objects of every store go.
    """

    def __init__(
        self,
        database: Database,
        cluster: str,
        store: Store,
        intakes: Intakes,
        *,
        clock: Clock,
        random: Random,
        log: Log,
    ) -> None:
        self._database = database
        self._intakes = intakes
        self._clock = clock
        self._random = random
        self._log = log
        self._local = self.feed(cluster, store)

    def feed(self, cluster: str, store: Store, intakes: Intakes | None = None) -> Feed:
        """A feed from another cluster's store; its owner runs it, and makes it leave in the end.

        `intakes`: where its objects go, if not where those of the local store do.
        """
        return Feed(
            cluster,
            store,
            intakes if intakes is not None else self._intakes,
            self._database.commit,
            clock=self._clock,
            random=self._random,
            log=self._log,
        )

    async def run(self) -> None:
        """Absorb the local store until cancelled."""
        await self._local.run()

    @property
    def synced(self) -> bool:
        """The local store's objects are in the tables."""
        return self._local.synced

    @property
    def health(self) -> Health:
        """For readiness and metrics."""
        feed = self._local
        return Health(feed.synced, feed.revision, feed.unreadable, feed.trouble)

    async def at(self, revision: int, *, seconds: float = FENCE) -> None:
        """The fence: return when the tables hold the local store's `revision`.

        Raises:
            DeadlineExceeded: not within `seconds`.
        """
        await self._local.at(revision, seconds=seconds)

    def subscribe(self) -> Subscription:
        """Watched cells for one owner; use it as `async with`."""
        return Subscription(self._database, self._clock)

    def follow(
        self,
        told: Callable[[Any], None],
        query: Query[..., Any],
        /,
        *key: Any,  # noqa: ANN401
    ) -> Following:
        """Call `told(value)` when a cell has changed, beginning with what it is now."""
        return Following(self._database, self._clock, told, query, *key)

    def commit(self, changes: Iterable[Change]) -> int:
        """Commit rows that no store holds: settings, moments that have passed."""
        return self._database.commit(changes)

    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        """One answer, now."""
        return self._database.read(query, *key, **named)
