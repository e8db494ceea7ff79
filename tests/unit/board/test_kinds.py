"""The live registry over a real board: as new as the tables, and telling what goes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from random import Random

import pytest

from isthmus.aio import ManualClock, breathe
from isthmus.board import Board, Intake, Intakes, LiveKinds
from isthmus.board.kinds import retired
from isthmus.engine import Database
from isthmus.mesh import SOURCES
from isthmus.mesh.definitions import RESOURCE
from isthmus.model.key import Key
from isthmus.model.registry import BUILT_IN
from isthmus.store import Memory
from isthmus.store.codec import encode
from isthmus.store.contract import Delete, Op, Put
from tests.support.log import ListLog
from tests.unit.model.crd.widgets import definition, version

pytestmark = pytest.mark.anyio

NAME = "widgets.shop.example.com"
KEY = Key(RESOURCE, "", NAME)


def put(uid: str, *, versions: int = 1) -> Put:
    document = definition(*[version(f"v{n}", storage=n == 1) for n in range(1, versions + 1)])
    meta = {**document["metadata"], "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return Put(KEY, encode({**document, "metadata": meta}))


async def test_the_registry_follows_the_store() -> None:
    clock, store = ManualClock(), Memory()
    intakes = Intakes({RESOURCE: Intake(*SOURCES[RESOURCE])})
    board = Board(Database(), "here", store, intakes, clock=clock, random=Random(1), log=ListLog())
    kinds = LiveKinds(board, "here")
    told: list[Collection[str]] = []
    kinds.on_retire(told.append)

    async def write(op: Op) -> None:
        await store.txn([], [op])
        async with asyncio.TaskGroup() as fence:
            fence.create_task(board.at(store.revision))
            await clock.turn(0.2)
        for _ in range(20):
            await breathe()

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(each.run()) for each in (board, kinds)]
        await board.at(0)
        assert kinds.now is BUILT_IN
        await write(put("one"))
        assert kinds.by_key_resource(NAME) is not None
        held = kinds.now
        assert kinds.now is held
        await write(put("one"))  # nothing of it is another
        assert told == []
        await write(put("one", versions=2))
        assert told == [{NAME}]
        await write(put("two", versions=2))
        assert told == [{NAME}] * 2
        await write(Delete(KEY))
        assert told == [{NAME}] * 3
        assert kinds.now is BUILT_IN
        assert kinds.by_key_resource(NAME) is None
        for task in running:
            task.cancel()


def test_built_in_kinds_never_retire() -> None:
    assert retired(BUILT_IN, BUILT_IN) == frozenset()
