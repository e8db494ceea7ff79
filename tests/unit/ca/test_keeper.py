"""The keeper: made once, found by all, followed while it runs, never lost to a bad file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.aio import ManualClock
from isthmus.ca import Files, Keeper, Material, Trust, trust
from isthmus.ca.keeper import PERIOD
from isthmus.errors import Unavailable, UserFault
from tests.support.log import ListLog
from tests.support.trusts import NOW, ordinary


class Memory:
    """A shelf that tests fill by hand."""

    where = "a test"

    def __init__(self, held: Material | None = None) -> None:
        self.held = held
        self.fault = ""
        self.kept = 0
        self.stir = asyncio.Event()
        self.idle = asyncio.Event()

    async def look(self) -> Material | None:
        await asyncio.sleep(0)  # noqa: TID251  # a store answers later
        if self.fault:
            raise UserFault(self.fault)
        return self.held

    async def keep(self, made: Trust) -> None:
        self.kept += 1
        self.held = self.held or made.material

    async def changed(self) -> None:
        self.idle.set()
        await self.stir.wait()
        self.stir.clear()


def keeper(shelf: Memory) -> Keeper:
    return Keeper(shelf, "isthmus test", ManualClock(), ListLog())


async def test_many_who_ask_first_get_one_ca() -> None:
    shelf = Memory()
    kept = keeper(shelf)
    found = await asyncio.gather(*(kept.trust() for _ in range(20)))
    assert len(set(found)) == 1
    assert shelf.kept == 1


async def test_a_replica_that_was_slower_takes_what_the_other_made() -> None:
    class Raced(Memory):
        async def keep(self, made: Trust) -> None:
            self.held = first.material

    first = ordinary()
    assert (await keeper(Raced()).trust()) == first


async def test_what_lies_there_is_used_and_nothing_made() -> None:
    held = ordinary()
    shelf = Memory(held.material)
    assert await keeper(shelf).trust() == held
    assert shelf.kept == 0


async def test_half_of_it_is_never_completed_by_something_made() -> None:
    shelf = Memory()
    shelf.fault = "the Secret linkerd/x holds no pair"
    with pytest.raises(Unavailable, match="holds no pair"):
        await keeper(shelf).trust()
    assert shelf.kept == 0
    shelf.fault, shelf.held = "", ordinary().material
    assert await keeper(shelf).trust() == trust.read(shelf.held, now=NOW, where="")


async def test_a_swap_is_taken_and_a_bad_one_is_not() -> None:
    first, second = ordinary(), ordinary()
    shelf = Memory(first.material)
    kept = keeper(shelf)
    await kept.load()
    with kept.now.watch() as watch:
        assert await watch.next() == first
        running = asyncio.get_running_loop().create_task(kept.run())
        await shelf.idle.wait()
        shelf.idle.clear()
        shelf.held = second.material._replace(key=first.material.key)
        shelf.stir.set()
        await shelf.idle.wait()
        shelf.idle.clear()
        shelf.held = second.material
        shelf.stir.set()
        assert await watch.next() == second
        running.cancel()


async def test_files_are_followed(tmp_path: Path) -> None:
    clock = ManualClock()
    paths = (tmp_path / "roots.pem", tmp_path / "crt.pem", tmp_path / "key.pem")

    def write(held: Trust) -> None:
        for path, data in zip(paths, held.material, strict=True):
            path.write_bytes(data)

    first, second = ordinary(), trust.make("another", now=clock.utc())
    write(first)
    kept = Keeper(Files(*paths, clock), "x", clock, ListLog())
    await kept.load()
    running = asyncio.get_running_loop().create_task(kept.run())
    await clock.until_waiting(1)
    write(second)
    await clock.turn(PERIOD)
    assert kept.now.value == second
    running.cancel()


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "roots.pem"
    kept = Keeper(Files(gone, gone, gone, ManualClock()), "x", ManualClock(), ListLog())
    with pytest.raises(UserFault, match=r"cannot read .*roots.pem"):
        await kept.load()
