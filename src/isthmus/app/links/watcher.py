"""One linked cluster: its connection, its objects in the tables, its health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from isthmus.aio import Backoff, Latest
from isthmus.app.links.health import Fault, Health, fault_of
from isthmus.app.links.keeping import Keeping
from isthmus.app.links.kubeconfig import Unusable, access_of, kubeconfig_of
from isthmus.app.links.probing import Probing
from isthmus.app.links.renewing import Renewing
from isthmus.app.links.told import Told, told_by
from isthmus.app.means import Means
from isthmus.board import Board, Intakes
from isthmus.engine import Change, Delete, Put
from isthmus.errors import DeadlineExceeded, IsthmusError
from isthmus.mesh.clusters import LINKED, Cluster
from isthmus.mesh.linked import Linked
from isthmus.mesh.reaching import At, targets
from isthmus.mesh.settings import settings
from isthmus.model.key import Key, ObjectKey
from isthmus.store.contract import Store
from isthmus.store.kubernetes import MIRRORED, Access, Client, Session, View
from isthmus.store.kubernetes import Means as SessionMeans
from isthmus.store.kubernetes import Told as Listeners
from isthmus.store.objects import Writer

AGAIN: Final = Backoff(first=0.2, most=5.0)


class Place(NamedTuple):
    """Where a watcher works: our board, our store, where a cluster's objects go.

    `home` is the directory in which views are kept over a start; None keeps nothing.
    """

    board: Board
    store: Store
    objects: Writer
    intakes: Intakes
    means: Means
    home: Path | None = None


def remote(intakes: Intakes) -> Intakes:
    """Where the objects of another cluster go: those that mirroring reads, and into no census."""
    names = {each.name for each in MIRRORED}
    kept = {name: intake for name, intake in intakes.by_resource.items() if name in names}
    return Intakes(kept)


class Watcher:
    """Keeps the tables equal to what one cluster was last seen to have."""

    def __init__(self, linked: Linked, place: Place, changed: Callable[[], None]) -> None:
        """`changed` is called when the health may read differently."""
        self.wanted: Latest[Linked] = Latest(linked)
        self.health = Health()
        self.told = Told()
        self.access: Latest[Access | None] = Latest(None)
        """Of the serving connection."""
        self._board, self._store, self._objects, intakes, self._means, home = place
        self._clock = place.means.clock
        self._changed = changed
        self.view = View(self._clock)
        self.feed = self._board.feed(linked.name, self.view, intakes)
        self.keeping = Keeping(self, home, self._clock, self._means.log)
        self._serving: asyncio.Task[None] | None = None
        self._live = False
        """The serving connection follows the cluster now."""
        self.row: Cluster | None = None
        """What is told of the cluster; None before the first sync."""
        self.starts = 0
        """Connections that took over: each listed everything."""

    @property
    def random(self) -> Random:
        """Chance."""
        return self._means.random

    @property
    def open(self) -> bool:
        """Neither an answer nor a failure yet, or the tables lack what is known."""
        unheard = self.starts == 0 and self.health.fault is None
        return unheard or (self.view.synced and self.row is None)

    @property
    def name(self) -> str:
        """What we call the cluster."""
        return self.wanted.value.name

    async def run(self) -> None:
        """Watch until cancelled. What was seen stays in the tables: see `leave`."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.feed.run())
                group.create_task(self._connections(group))
                group.create_task(self._publish_once_synced())
                group.create_task(self.keeping.run())
                group.create_task(Probing(self, self._clock).run())
                group.create_task(Renewing(self, self._objects, self._clock).run())
        finally:
            self._serving, self._live = None, False

    def leave(self) -> None:
        """Take the cluster out of the tables; after `run` has ended."""
        self._board.commit([Delete(LINKED, self.name)])
        self.feed.leave()

    # --------------------------------------------------------------------------------- connecting

    async def _connections(self, group: asyncio.TaskGroup) -> None:
        """One connection for the credentials of now; that before goes on until it has synced."""
        seen: tuple[ObjectKey, str] | None = None
        newest: asyncio.Task[None] | None = None
        with self.wanted.watch() as watch:
            while True:
                linked = await watch.next()
                self._follow(linked)
                if seen == (linked.secret, linked.digest):
                    continue
                seen = (linked.secret, linked.digest)
                if newest is not None and newest is not self._serving:
                    newest.cancel()
                try:
                    access = await self._read(linked.secret)
                except Unusable as fault:
                    self._unusable(fault)
                else:
                    await self.keeping.recall(access)
                    newest = group.create_task(self._connect(access))

    def _follow(self, linked: Linked) -> None:
        """What changes without another connection."""
        self.health.staleness, self.health.notice = linked.staleness, linked.notice
        self.publish()

    async def _read(self, secret: ObjectKey) -> Access:
        record = await self._store.get(Key("secrets", secret.namespace, secret.name))
        if record is None:
            where = f"{secret.namespace}/{secret.name}"
            raise Unusable("SecretNotFound", f"there is no Secret {where}")
        return access_of(kubeconfig_of(record.value))

    def _unusable(self, fault: Unusable) -> None:
        """Who takes the Secret away takes the access; who writes junk there has made a mistake."""
        if fault.word == "SecretNotFound" and self._serving is not None:
            self._serving.cancel()
            self._serving = None
            self.access.set(None)
        self._failed(fault, serving=self._serving is None)

    async def _connect(self, access: Access) -> None:
        """Connect, again and again, until cancelled."""
        failures = 0
        while True:
            try:
                async with Client(access, self._clock) as client:
                    await self._once(client, access)
            except IsthmusError as fault:
                me = asyncio.current_task()
                failures = 1 if self._live and self._serving is me else failures + 1
                self._failed(fault, serving=self._serving in (None, me))
            await self._clock.sleep(AGAIN.pause(failures, self._means.random))

    async def _once(self, client: Client, access: Access) -> None:
        """One connection to its end, which is always an error."""
        me = asyncio.current_task()
        session = Session(
            client,
            self.view,
            SessionMeans(self._clock, self._means.random),
            Listeners(partial(self._heard, me, client), lambda: self._notice(me, session)),
        )
        told = await told_by(client, self._namespace())
        staged = await session.sync()
        await self._take_over(access, told)
        self._heard(me, client)
        self._notice(me, session)
        await session.run(staged)

    async def _take_over(self, access: Access, told: Told) -> None:
        """From here on this connection's news are shown, and no other's."""
        me, before = asyncio.current_task(), self._serving
        if before is not None and before is not me:
            before.cancel()
            await asyncio.wait([before])
        self._serving, self._live = me, True
        self.starts += 1
        self.told = told
        self.access.set(access)
        self.health.heard = self._clock.now()
        self.health.fault = self.health.newer = None

    # ------------------------------------------------------------------------------------- health

    def _heard(self, who: asyncio.Task[None] | None, client: Client) -> None:
        if who is not self._serving or not self._live:
            return
        now = self._clock.now()
        news = self.health.fault is not None or self.health.silent(now)
        news = news or round(client.skew / 60) != round(self.health.skew / 60)
        self.health.heard, self.health.fault, self.health.skew = now, None, client.skew
        if news:
            self.publish()

    def _notice(self, who: asyncio.Task[None] | None, session: Session) -> None:
        if who is self._serving:
            told = [f"{name}: {why}" for name, why in sorted(session.trouble.items())]
            self.health.partial = "; ".join(told)
            self.publish()

    def _failed(self, fault: IsthmusError, *, serving: bool) -> None:
        """The serving connection, or one that would follow it, does not work."""
        why: Fault = fault_of(fault)
        if serving:
            self.health.fault, self._live = why, False
        else:
            self.health.newer = why
        self.publish()

    async def _publish_once_synced(self) -> None:
        """From the first sync on; then time alone may change what is true."""
        while not self.feed.synced:
            with suppress(DeadlineExceeded):
                await self.feed.at(0, seconds=60.0)
        self.health.shown = True
        while True:
            self.publish()
            now = self._clock.now()
            due = self.health.look_again(now)
            await self._clock.sleep(min(1.0, due - now) if due is not None else 1.0)

    async def targets(self) -> tuple[At, ...]:
        """Where the cluster's data plane can be asked whether it lives; nothing stays memoised."""
        async with self._board.subscribe() as watched:
            watched.add(targets, self._board.read(settings).cluster, self.name)
            found: list[tuple[At, ...]] = list((await watched.next()).values())
        return found[0]

    def publish(self) -> None:
        """Bring the cluster's row up to date, and tell that the health may have changed."""
        row = self._cluster() if self.feed.synced else None
        if row is not None and row != self.row:
            change: Change = Put(LINKED, self.name, row)
            self._board.commit([change])
            self.row = row
        self._changed()

    def _cluster(self) -> Cluster:
        linked, ours = self.wanted.value, self._board.read(settings)
        return Cluster(
            trust_domain=linked.trust_domain or self.told.trust_domain or ours.trust_domain,
            cluster_domain=linked.cluster_domain or self.told.cluster_domain or ours.cluster_domain,
            control_plane_namespace=self._namespace(),
            own_name=self.told.cluster if self.told.cluster != linked.name else "",
            usable=self.health.usable(self._clock.now()),
        )

    def _namespace(self) -> str:
        said = self.wanted.value.control_plane_namespace
        return said or self._board.read(settings).control_plane_namespace
