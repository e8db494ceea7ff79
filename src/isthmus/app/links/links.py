"""Which clusters are watched: follows what is wanted, starts and ends watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import structs

from isthmus.aio import deadline
from isthmus.app.links.kept import sweep
from isthmus.app.links.watcher import Place, Watcher
from isthmus.board import Subscription
from isthmus.engine import Change, Delete, Put
from isthmus.errors import DeadlineExceeded
from isthmus.mesh.linked import Linked, Refusal, linked, linked_names, refused
from isthmus.mesh.links import LINK_HEALTH, LinkHealth, Reached
from isthmus.model.key import ObjectKey
from isthmus.model.times import format_seconds

MOMENT: Final = 5.0
"""Seconds that a start waits for clusters that were linked before."""


class Running(NamedTuple):
    """A watcher and its task."""

    watcher: Watcher
    task: asyncio.Task[None]


class Links:
    """Runs the watchers of one server."""

    def __init__(self, cluster: str, place: Place) -> None:
        self._cluster = cluster
        self._place = place
        self._clock = place.means.clock
        self._running: dict[str, Running] = {}
        self._refused: tuple[tuple[ObjectKey, Refusal], ...] = ()
        self._told: dict[ObjectKey, LinkHealth] = {}
        self._looked = asyncio.Event()
        self._moved = asyncio.Event()

    @property
    def watchers(self) -> Mapping[str, Watcher]:
        """By the cluster's name."""
        return {name: running.watcher for name, running in sorted(self._running.items())}

    @property
    def health(self) -> Mapping[ObjectKey, LinkHealth]:
        """What is told of every Link."""
        return self._told

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._place.board.at(0)
        self._forget()
        async with self._place.board.subscribe() as watched, asyncio.TaskGroup() as group:
            watched.add(linked_names, self._cluster)
            watched.add(refused, self._cluster)
            names: tuple[str, ...] = ()
            while True:
                changes = await watched.next()
                wanted = changes.get((linked_names, self._cluster), names)
                await self._rename(watched, names, wanted)
                names = wanted
                self._refused = changes.get((refused, self._cluster), self._refused)
                for (cell, *key), value in changes.items():
                    if cell is linked and key[1] in names:
                        self._want(group, value)
                self._tell()
                if self._running.keys() >= set(names):
                    await self._sweep(names)
                    self._looked.set()

    async def _sweep(self, names: tuple[str, ...]) -> None:
        """Once: views are kept of no cluster whose Link went while this server was away."""
        home = self._place.home
        if home is None or self._looked.is_set():
            return
        try:
            await asyncio.to_thread(sweep, home, names)
        except OSError as fault:
            self._place.means.log.warning("kept views of clusters stay", why=str(fault))

    def _forget(self) -> None:
        """After a failure, nothing is kept of the watchers before.

        At the end of the server it is: its proxies keep what they were told.
        """
        for running in self._running.values():
            running.watcher.leave()
        self._running.clear()

    async def _rename(
        self, watched: Subscription, before: tuple[str, ...], now: tuple[str, ...]
    ) -> None:
        for name in sorted(set(before).difference(now)):
            watched.drop(linked, self._cluster, name)
        await self._stop(set(before).difference(now))
        for name in sorted(set(now).difference(before)):
            watched.add(linked, self._cluster, name)

    def _want(self, group: asyncio.TaskGroup, value: Linked | None) -> None:
        if value is None:  # its name is gone with the next look
            return
        running = self._running.get(value.name)
        if running is not None:
            running.watcher.wanted.set(value)
            return
        watcher = Watcher(value, self._place, self._tell)
        name = f"link {value.name}"
        task = group.create_task(self._place.means.keep(name, watcher.run), name=name)
        self._running[value.name] = Running(watcher, task)

    async def _stop(self, names: set[str]) -> None:
        """End these watchers and forget what they saw."""
        ended = [self._running.pop(name) for name in sorted(names) if name in self._running]
        for running in ended:
            running.task.cancel()
        if ended:
            await asyncio.wait([running.task for running in ended])
        for running in ended:
            running.watcher.leave()
            await running.watcher.keeping.remove()

    # ------------------------------------------------------------------------------------ telling

    def _tell(self) -> None:
        """Bring LINK_HEALTH up to date."""
        wanted = self._healths()
        changes: list[Change] = [Delete(LINK_HEALTH, key) for key in self._told.keys() - wanted]
        changes += [
            Put(LINK_HEALTH, k, row) for k, row in wanted.items() if self._told.get(k) != row
        ]
        if changes:
            self._told = wanted
            self._place.board.commit(changes)
        self._moved.set()

    def _healths(self) -> dict[ObjectKey, LinkHealth]:
        found: dict[ObjectKey, LinkHealth] = {}
        for key, why in self._refused:
            found[key] = self._dated(key, Reached.REFUSED, why.reason, why.message)
        now = self._clock.now()
        for running in self._running.values():
            link, health = running.watcher.wanted.value.link, running.watcher.health
            if link is not None and link not in found:
                row = self._dated(link, health.state(now), *health.words(now))
                dead = health.gateway_alive is not None and row.state is Reached.DEAD
                alive = False if dead else health.gateway_alive
                found[link] = structs.replace(row, gateway_alive=alive)
        return found

    def _dated(self, key: ObjectKey, state: Reached, reason: str, message: str) -> LinkHealth:
        before = self._told.get(key)
        same = before is not None and before.state == state
        since = before.since if before is not None and same else format_seconds(self._clock.time())
        return LinkHealth(state, since, reason, message)

    async def settled(self) -> None:
        """Return when every cluster that is linked has synced or failed once; or after a moment.

        A server that starts again would otherwise first tell its proxies that all other clusters'
        endpoints are gone.
        """
        try:
            async with deadline(self._clock, MOMENT, "connecting to linked clusters"):
                await self._looked.wait()
                while any(running.watcher.open for running in self._running.values()):
                    self._moved.clear()
                    await self._moved.wait()
                for watcher in self.watchers.values():
                    if watcher.view.synced:  # what was kept may be told, and newer be known
                        await watcher.feed.at(watcher.view.revision, seconds=MOMENT)
        except DeadlineExceeded as fault:
            self._place.means.log.warning("starting without some clusters", why=fault.message)
