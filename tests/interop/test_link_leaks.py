"""Links that come and go leave nothing behind: no cell, no task, no file, no memory."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from isthmus.mesh.links import Reached
from tests.support.fakeapi import FakeApi, service
from tests.support.linkworld import LinkWorld

LINKS = 100
ROUNDS = 5
SERVICES = 20


class Counted(dict[str, int]):
    """What may leak, now."""

    @classmethod
    def now(cls, world: LinkWorld) -> Counted:
        gc.collect()
        return cls(
            cells=world.db.stats.cells,
            tasks=len(asyncio.all_tasks()),
            files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208  # a number, not paths
        )


def resident() -> int:
    """Bytes of memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def settled(world: LinkWorld) -> Counted:
    """What there is before anything is linked: one link has come and gone, for caches."""
    await world.until(lambda: world.board.synced)
    return Counted.now(world)


async def one_round(world: LinkWorld, api: FakeApi) -> None:
    names = [f"cluster-{number:03}" for number in range(LINKS)]
    for name in names:
        await world.link(name, api.kubeconfig())

    def synced() -> bool:
        found = [world.health(name) for name in names]
        return all(each is not None and each.state is Reached.SYNCED for each in found)

    await world.until(synced, seconds=240)
    assert world.has(names[-1], f"service-{SERVICES - 1}")
    for name in names:
        await world.unlink(name)
    await world.until(lambda: not world.links.watchers, seconds=60)


@pytest.mark.timeout(1200)
async def test_five_rounds_of_a_hundred_links_leave_nothing() -> None:
    async with FakeApi().serving() as api, LinkWorld().running() as world:
        for number in range(SERVICES):
            api.put(service(f"service-{number}"))
        before = await settled(world)
        sizes = []
        for _ in range(ROUNDS):
            await one_round(world, api)
            await world.until(lambda: Counted.now(world) == before, seconds=60)
            sizes.append(resident())
        assert (sizes[-1] - sizes[1]) / sizes[1] < 0.01, sizes
