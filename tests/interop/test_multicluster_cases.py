"""The cases of `cases/multicluster`: controllers over a real store, streams over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from isthmus.aio import SystemClock
from isthmus.app import destination
from isthmus.board import Following
from isthmus.engine import Query
from isthmus.serve.linkerd import GrpcServer, Read
from isthmus.serve.linkerd.topics import Learn
from tests.support.asking import Asker, Stream, asker
from tests.support.expecting import Names, Step
from tests.support.linked import MESH, LinkedWorld
from tests.support.linkedcases import faults
from tests.support.log import ListLog

CASES = Path(__file__).parent / "cases" / "multicluster"
NAMES = Names(MESH, "cluster.local")

Case = dict[str, Any]


def load() -> list[Case]:
    """All cases."""
    found: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        found += yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    return found


ALL = load()


class Tables:
    """The tables of a world, as a board."""

    def __init__(self, world: LinkedWorld) -> None:
        self.database = world.db

    @property
    def read(self) -> Read:
        return self.database.read

    def follow(self, told: Learn, query: Query[..., object], /, *key: object) -> Following:
        return Following(self.database, SystemClock(), told, query, *key)


@asynccontextmanager
async def serving(world: LinkedWorld) -> AsyncIterator[Asker]:
    services = {destination.NAME: destination.service()}
    clock = SystemClock()
    server = GrpcServer(services, Tables(world), clock=clock, random=Random(1), log=ListLog())
    port = server.bind("127.0.0.1", 0)
    task = asyncio.get_running_loop().create_task(server.run())
    try:
        async with asker(f"127.0.0.1:{port}") as client:
            yield client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Story:
    """A case on its way."""

    def __init__(self, world: LinkedWorld, client: Asker, case: Case) -> None:
        self._world = world
        self._client = client
        self._case = case
        self._streams: dict[str, Stream] = {}
        self._running = True
        self._unheard: set[str] = set()

    async def run(self, open_calls: AsyncExitStack) -> None:
        await self._world.start()
        for link in self._case["links"]:
            await self._link(link)
        await self._world.apply(*self._case["objects"])
        await self._sync()
        asks = {name for step in self._case["steps"] for name in step.get("do", {}).get("ask", {})}
        for number, step in enumerate(self._case["steps"]):
            if number == 0 and asks:
                await self._world.settle()
            await self._do(step.get("do", {}), open_calls)
            writes = await self._world.settle() if self._running else 0
            await self._check(step.get("expect", {}), writes, number)

    async def _link(self, said: Case) -> None:
        more = {key: said[key] for key in ("name", "gateway", "annotations") if key in said}
        domain = {"targetClusterDomain": said["domain"]} if "domain" in said else {}
        await self._world.link(said["to"], **more, **said.get("spec", {}), **domain)

    async def _sync(self) -> None:
        """As watchers do; a cluster is linked by its first Link."""
        for link in self._case["links"]:
            if link["to"] not in self._unheard:
                facts = {key: link[key] for key in ("trust", "domain") if key in link}
                self._world.sync(link["to"], **facts)

    async def _do(self, done: Case, open_calls: AsyncExitStack) -> None:
        for verb, what in done.items():
            await getattr(self, f"_{verb}")(what)
        for name, path in done.get("ask", {}).items():
            stream = await open_calls.enter_async_context(self._client.get(path))
            self._streams[name] = stream

    async def _apply(self, what: list[Any]) -> None:
        await self._world.apply(*what)

    async def _delete(self, what: list[str]) -> None:
        await self._world.delete(*what)

    async def _labels(self, what: Case) -> None:
        for name, patch in what.items():
            await self._world.metadata(name, {"labels": patch})

    async def _annotations(self, what: Case) -> None:
        for name, patch in what.items():
            await self._world.metadata(name, {"annotations": patch})

    async def _relink(self, what: Case) -> None:
        for name, patch in what.items():
            await self._world.relink(name, **patch)

    async def _unlink(self, what: list[str]) -> None:
        for name in what:
            await self._world.unlink(name)

    async def _health(self, what: Case) -> None:
        for name, said in what.items():
            self._world.health(name, **said)

    async def _resolve(self, what: Case) -> None:
        for host, ips in what.items():
            self._world.resolve(host, *ips)

    async def _wait(self, seconds: float) -> None:
        self._world.here.clock.advance(seconds)

    async def _stop(self, _: object) -> None:
        self._running = False
        for link in self._case["links"]:
            self._world.lose(link["to"])

    async def _start(self, _: object) -> None:
        self._running = True
        await self._world.settle()
        await self._sync()

    async def _down(self, what: list[str]) -> None:
        self._unheard.update(what)
        self._world.silent.update(what)

    async def _up(self, what: list[str]) -> None:
        self._unheard.difference_update(what)
        await self._sync()

    async def _ask(self, _: object) -> None:
        """Done last."""

    # ------------------------------------------------------------------------- checking

    async def _check(self, wanted: Case, writes: int, number: int) -> None:
        found = [fault async for fault in faults(self._world, wanted, writes)]
        for name, said in wanted.get("streams", {}).items():
            found += [f"stream {name}: {each}" for each in await self._stream(name, said)]
        assert not found, f"step {number}: {'; '.join(found)}"

    async def _stream(self, name: str, said: Case) -> list[str]:
        stream = self._streams[name]
        if "error" in said:
            await stream.end()
            return [] if stream.ended and stream.ended.name == said["error"] else [stream.text]
        step = Step(stream, NAMES, begin=0)
        await stream.until(lambda _: not step.faults("Get", {"state": said["live"]}))
        wanted = {key: said[key] for key in ("set_labels",) if key in said}
        if "endpoint" in said:
            wanted["add"] = {said["endpoint"]["addr"]: said["endpoint"]}
        none = any(each.HasField("no_endpoints") for each in stream.told)
        told = ["was told of emptiness"] if none and said.get("never") == "no_endpoints" else []
        return told + (step.faults("Get", wanted) if wanted else [])


@pytest.mark.anyio
@pytest.mark.parametrize("case", ALL, ids=lambda case: case["case"])
async def test_as_told(case: Case) -> None:
    world = LinkedWorld()
    async with serving(world) as client, AsyncExitStack() as open_calls:
        await Story(world, client, case).run(open_calls)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case["case"] for case in ALL]
    assert len(set(names)) == len(names)
