"""A control plane's links in one process: real store, board and watchers, real time."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from isthmus.aio import SystemClock
from isthmus.app.links import Links, Place, remote
from isthmus.app.means import Means
from isthmus.board import Board, Intake, Intakes
from isthmus.engine import Database, Put
from isthmus.mesh import ALSO, CENSUS, SOURCES, facts
from isthmus.mesh.links import LINK_HEALTH, LinkHealth
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.mesh.tables import SERVICES
from isthmus.model.key import ObjectKey
from isthmus.model.registry import BUILT_IN
from isthmus.store import Memory
from isthmus.store.objects import Objects
from tests.support.linking import NAMESPACE, link_of
from tests.support.log import ListLog

HERE = "here"
PATIENCE = 30.0
LINK = BUILT_IN.by_kind("multicluster.linkerd.io", "Link")
SECRET = BUILT_IN.by_kind("", "Secret")


class LinkWorld:
    """`async with world.running()`, then write Links and Secrets."""

    def __init__(self, home: Path | None = None) -> None:
        clock = SystemClock()
        self.log = ListLog()
        self.means = Means(clock, Random(1), self.log)
        self.store = Memory(clock=clock)
        self.objects = Objects(self.store, clock=clock, random=Random(2))
        self.db = Database()
        self.db.commit([Put(SETTINGS, WHOLE, MeshSettings(cluster=HERE))])
        where = Intakes(_intakes(SOURCES), Intake(CENSUS, facts), _intakes(ALSO))
        self.board = Board(
            self.db, HERE, self.store, where, clock=clock, random=Random(3), log=self.log
        )
        place = Place(self.board, self.store, self.objects, remote(where), self.means, home)
        self.links = Links(HERE, place)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LinkWorld]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.board.run()), group.create_task(self.links.run())]
            yield self
            for task in tasks:
                task.cancel()

    async def link(self, name: str, kubeconfig: object, **more: Any) -> None:  # noqa: ANN401
        assert LINK is not None
        await self.secret(name, kubeconfig)
        document = {"apiVersion": LINK.api_version(), "kind": "Link", **link_of(name, **more)}
        await self.objects.create(LINK, document)

    async def secret(self, name: str, kubeconfig: object) -> None:
        """Create or replace the Secret of a Link."""
        assert SECRET is not None
        text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        secret = f"cluster-credentials-{name}"
        if await self.store.get(SECRET.key(NAMESPACE, secret)) is None:
            meta = {"name": secret, "namespace": NAMESPACE}
            kind = "mirror.linkerd.io/remote-kubeconfig"
            document = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
            await self.objects.create(SECRET, {**document, "type": kind, "data": data})
        else:
            await self.objects.update(
                SECRET, NAMESPACE, secret, lambda held: {**held, "data": data}
            )

    async def unsecret(self, name: str) -> None:
        assert SECRET is not None
        await self.objects.delete(SECRET, NAMESPACE, f"cluster-credentials-{name}")

    async def kubeconfig(self, name: str) -> str:
        """What a Link's Secret holds now."""
        assert SECRET is not None
        held = await self.objects.get(SECRET, NAMESPACE, f"cluster-credentials-{name}")
        return base64.b64decode(held.document["data"]["kubeconfig"]).decode()

    async def unlink(self, name: str) -> None:
        assert LINK is not None
        await self.objects.delete(LINK, NAMESPACE, name)
        await self.unsecret(name)

    def health(self, name: str) -> LinkHealth | None:
        return LINK_HEALTH.get(self.db, ObjectKey(HERE, NAMESPACE, name))

    def has(self, cluster: str, name: str, namespace: str = "shop") -> bool:
        """Whether a Service of a cluster is in the tables."""
        return SERVICES.get(self.db, ObjectKey(cluster, namespace, name)) is not None

    async def until(self, true: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait for something that real tasks do."""
        async with asyncio.timeout(seconds):  # noqa: TID251  # real time
            while not true():  # noqa: ASYNC110  # any state may be asked for
                await asyncio.sleep(0.02)  # noqa: TID251  # real time

    async def until_health(self, name: str, true: Callable[[LinkHealth], bool]) -> LinkHealth:
        def found() -> bool:
            health = self.health(name)
            return health is not None and true(health)

        try:
            await self.until(found)
        except TimeoutError:
            raise AssertionError(f"{name}: {self.health(name)}") from None
        health = self.health(name)
        assert health is not None
        return health


def _intakes(sources: Any) -> dict[str, Intake]:  # noqa: ANN401
    return {name: Intake(*source) for name, source in sources.items()}
