"""Readiness: what stands in its way, and that what cannot be done does not hold it up for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from isthmus.aio import ManualClock
from isthmus.app import announce, certificates
from isthmus.app.means import Means
from isthmus.app.parts import intakes
from isthmus.app.readiness import MOMENT, PATIENCE, Readiness
from isthmus.board import Board
from isthmus.config import resolve
from isthmus.config.values import HostPort
from isthmus.engine import Database
from isthmus.errors import Unavailable
from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Memory, Op, Refused
from isthmus.store.objects import Objects
from tests.support.log import ListLog

pytestmark = pytest.mark.anyio


class FullDisk(Memory):
    """Reads; writes when it is allowed to."""

    full = True

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Committed | Refused:
        if self.full:
            raise Unavailable("no space is left")
        return await super().txn(compares, ops)


class World:
    def __init__(self, home: Path) -> None:
        self.clock, self.log = ManualClock(), ListLog()
        self.config = resolve({"data_dir": str(home), "cluster": "east"}, {"HOME": "/nowhere"})
        self.store = FullDisk()
        self.means = Means(self.clock, Random(1), self.log)
        self.board = Board(
            Database(), "east", self.store, intakes(),
            clock=self.clock, random=Random(1), log=self.log,
        )  # fmt: skip
        self.stopping = False
        self.readiness = Readiness(
            self.config, self.means, self.store, self.board, lambda: self.stopping
        )

    async def announce(self, group: asyncio.TaskGroup) -> None:
        held, _ = certificates.load(self.config, self.clock)
        objects = Objects(self.store, clock=self.clock, random=Random(1))
        endpoints = {"kube": HostPort("127.0.0.1", 6443)}
        await self.readiness.announce(group, objects, endpoints, held)


async def test_a_store_that_cannot_write_does_not_hide_one_that_can_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with asyncio.TaskGroup() as group:
        board = group.create_task(world.board.run())
        announcing = group.create_task(world.announce(group))
        await world.clock.turn(1)
        assert world.readiness.reasons() == {"server": "starting"}
        await world.clock.turn(2 * MOMENT)
        assert announcing.done()
        assert world.readiness.reasons() == {}
        assert world.log.events().count("still trying") == 2
        assert (tmp_path / "kubeconfig").exists()

        world.store.full = False
        await world.clock.turn(60)
        assert await world.store.get(Key("configmaps", "linkerd", announce.CONFIG_MAP))
        board.cancel()


async def test_a_first_sync_that_takes_long_is_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(world.readiness.settled())
        await world.clock.turn(PATIENCE * 2.5)
        assert not waiting.done()
        assert world.log.events() == ["still waiting"] * 2
        assert world.readiness.reasons()["board"] == "the first sync is not done"
        board = group.create_task(world.board.run())
        await world.clock.turn(1)
        assert waiting.done()
        board.cancel()


async def test_a_store_that_fails_later_is_a_reason(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with asyncio.TaskGroup() as group:
        board = group.create_task(world.board.run())
        await world.clock.turn(1)
        await world.store.close()
        await world.clock.turn(1)
        assert "closed" in world.readiness.reasons()["store"]
        board.cancel()


async def test_who_stops_is_not_ready(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.stopping = True
    assert world.readiness.reasons() == {"server": "stopping"}
