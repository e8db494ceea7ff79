"""A process that writes to a durable store and watches it, made to be killed at any moment.

It tells each fact on its own line of standard output, once it knows it:

    ready REVISION                      the store is open
    wrote REVISION KEY VALUE ...        a transaction was acknowledged ("-" for a delete)
    saw REVISION REVISION KEY VALUE ... a batch of the watch: up to which revision, then its events
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random

from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Delete, Op, Put, Store
from tests.contract.stores import DURABLE

WRITERS = 6
KEYS = 4


def tell(*words: object) -> None:
    """One line in one write, so that only the last line can be cut by the kill."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def key(writer: int, index: int) -> Key:
    return Key("pods", f"w{writer}", f"k{index}")


async def write(store: Store, writer: int, chance: Random) -> None:
    """Write for ever: one to three own keys at a time, compared with what is there."""
    count = 0
    while True:
        keys = [key(writer, index) for index in chance.sample(range(KEYS), chance.randint(1, 3))]
        records = [await store.get(each) for each in keys]
        compares = [
            Compare(each, record.revision if record else 0)
            for each, record in zip(keys, records, strict=True)
        ]
        count += 1
        value = f"{os.getpid()}.{count}"
        ops: list[Op] = [Put(each, value.encode()) for each in keys]
        if records[0] is not None and chance.random() < 0.2:
            ops[0] = Delete(keys[0])
        done = await store.txn(compares, ops)
        assert isinstance(done, Committed), "nobody else writes these keys"
        words = [word for op in ops for word in (f"{op.key.namespace}/{op.key.name}", _value(op))]
        tell("wrote", done.revision, *words)


def _value(op: Op) -> str:
    return op.value.decode() if isinstance(op, Put) else "-"


async def follow(store: Store, since: int) -> None:
    async with store.watch(since) as watch:
        while True:
            batch = await watch.next()
            words: list[object] = []
            for event in batch.events:
                value = event.record.value.decode() if event.record else "-"
                words += [event.revision, f"{event.key.namespace}/{event.key.name}", value]
            tell("saw", batch.revision, *words)


async def main(name: str, folder: str, seed: int, since: int) -> None:
    async with DURABLE[name](Path(folder)) as store:
        tell("ready", store.revision)
        chance = Random(seed)
        if chance.random() < 0.3:
            await store.compact(since)
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(store, since))
            for writer in range(WRITERS):
                group.create_task(write(store, writer, Random(f"{seed} {writer}")))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
