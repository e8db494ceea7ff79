"""When a server is ready, and how it says so.

Ready: the store is open, the first sync is done, everything listens, and the files are written. The
default namespaces and roles and the ConfigMap of endpoints are waited for a moment: who comes right
after the ready line takes them for granted, but a store that cannot write must not hide one that
can read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from isthmus.aio import deadline
from isthmus.app import announce
from isthmus.app.announce import Endpoints
from isthmus.app.certificates import Certificates
from isthmus.app.means import Means
from isthmus.board import Board
from isthmus.config import ServerConfig
from isthmus.controllers import roles
from isthmus.engine import View, query
from isthmus.errors import DeadlineExceeded
from isthmus.mesh.tables import NAMESPACES
from isthmus.model.key import ObjectKey
from isthmus.store.contract import Store
from isthmus.store.objects import Writer

PATIENCE = 60.0
"""Seconds between two lines that say what the start waits for."""
MOMENT = 5.0
"""Seconds that readiness waits for what is tried for ever."""
DEFAULT_NAMESPACE = "default"


@query
def stands(db: View, namespace: ObjectKey) -> bool:
    """Whether the namespace is there."""
    return NAMESPACES.get(db, namespace) is not None


class Readiness:
    """Watches the way to readiness, announces it, and knows what stands in its way since."""

    def __init__(
        self,
        config: ServerConfig,
        means: Means,
        store: Store,
        board: Board,
        stopping: Callable[[], bool],
    ) -> None:
        self._config = config
        self._clock = means.clock
        self._log = means.log
        self._means = means
        self._store = store
        self._board = board
        self._announced = False
        self._stopping = stopping

    def reasons(self) -> Mapping[str, str]:
        """What stands in the way, by part; nothing when ready."""
        if self._stopping():
            return {"server": "stopping"}
        health = self._board.health
        reasons = {
            "server": "" if self._announced else "starting",
            "board": "" if health.synced else "the first sync is not done",
            "store": health.trouble,
        }
        return {part: reason for part, reason in reasons.items() if reason}

    async def settled(self) -> None:
        """Return when the tables hold what the store held when we started."""
        wanted = self._store.revision
        while True:
            try:
                await self._board.at(wanted, seconds=PATIENCE)
            except DeadlineExceeded:
                self._log.warning("still waiting", **self.reasons())
            else:
                return

    async def announce(
        self,
        group: asyncio.TaskGroup,
        objects: Writer,
        endpoints: Endpoints,
        certificates: Certificates,
    ) -> None:
        """Tell the world where we listen; from then on we are ready."""
        await self._for_a_moment("making the default namespaces and roles", self._defaults)
        announce.write_files(self._config, endpoints, certificates)
        publish = partial(announce.publish, objects, self._config, endpoints)
        publishing = group.create_task(self._means.keep("publish", publish), name="publish")
        await self._for_a_moment(
            "writing the ConfigMap of endpoints", lambda: asyncio.shield(publishing)
        )
        self._announced = True

    async def _for_a_moment(self, what: str, wait: Callable[[], Awaitable[None]]) -> None:
        try:
            async with deadline(self._clock, MOMENT, what):
                await wait()
        except DeadlineExceeded as fault:
            self._log.warning("still trying", what=fault.message)

    async def _defaults(self) -> None:
        """The controllers have made what users take for granted."""
        cluster = self._config.cluster
        key = ObjectKey(cluster, "", DEFAULT_NAMESPACE)
        async with self._board.subscribe() as watched:
            watched.add(stands, key)
            watched.add(roles.settled, cluster)
            known: dict[tuple[Any, ...], bool] = {}
            while len(known) < 2 or not all(known.values()):
                known |= await watched.next()
