"""Keys, and short ways of asking a store."""

from __future__ import annotations

from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Event, Op, Record, Store, Watch

A = Key("services", "faces", "a")
B = Key("services", "faces", "b")
C = Key("services", "smiles", "c")
NODE = Key("nodes", "", "n1")
ROUTE = Key("httproutes.gateway.networking.k8s.io", "faces", "r")


async def write(store: Store, *ops: Op, when: tuple[Compare, ...] = ()) -> int:
    done = await store.txn(when, ops)
    assert isinstance(done, Committed)
    return done.revision


async def collect(watch: Watch, until: int) -> list[Event]:
    events: list[Event] = []
    while True:
        batch = await watch.next()
        events += batch.events
        if batch.revision >= until:
            return events


def values(records: tuple[Record, ...]) -> dict[str, bytes]:
    return {record.key.name: record.value for record in records}
