"""Any history of transactions, compactions and restarts: the store agrees with a dictionary."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import Compacted
from isthmus.model.key import Key
from isthmus.store import (
    Committed,
    Compare,
    Delete,
    Event,
    Op,
    Put,
    Record,
    Refused,
    Store,
    Watch,
)
from tests.contract.stores import DURABLE, STORES, Opener

KEYS = [
    Key(resource, namespace, name)
    for resource in ("pods", "services", "services.x")
    for namespace in ("", "a", "a-b")
    for name in ("x", "é")
]
keys = st.sampled_from(KEYS)


class Write(NamedTuple):
    """A transaction; `stale` compares are made wrong on purpose."""

    ops: list[Op]
    compared: list[Key]
    stale: bool


class Compact(NamedTuple):
    """Forget the older `share` of what is kept."""

    share: float


class Reopen(NamedTuple):
    """Close and open again, where that keeps anything."""


ops = st.lists(
    st.builds(Put, keys, st.binary(max_size=3)) | st.builds(Delete, keys),
    max_size=4,
    unique_by=lambda op: op.key,
)
writes = st.builds(Write, ops, st.lists(keys, max_size=2, unique=True), st.booleans())
steps = st.lists(
    st.one_of(writes, writes, writes, st.builds(Compact, st.floats(0, 1)), st.builds(Reopen)),
    max_size=25,
)

State = dict[Key, Record]


class Model:
    """What must be so: the state at each revision, and what happened in it."""

    def __init__(self) -> None:
        self.states: list[State] = [{}]
        self.events: list[Event] = []
        self.floor = 0

    @property
    def revision(self) -> int:
        return len(self.states) - 1

    def write(self, ops: Sequence[Op]) -> None:
        revision, state = self.revision + 1, dict(self.states[-1])
        events: list[Event] = []
        for op in ops:
            old = state.pop(op.key, None)
            if isinstance(op, Put):
                created = old.created if old else revision
                state[op.key] = Record(op.key, op.value, revision, created)
            if old or isinstance(op, Put):
                events.append(Event(revision, op.key, state.get(op.key), old))
        if events:
            self.states.append(state)
            self.events += events


async def play(opener: Opener, steps: Sequence[Write | Compact | Reopen], *, durable: bool) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        waiting = list(steps)
        while True:
            async with opener(Path(folder)) as store:
                assert store.revision == model.revision
                while waiting and not (durable and isinstance(waiting[0], Reopen)):
                    await _step(store, model, waiting.pop(0))
                await _agree(store, model)
            if not waiting:
                return
            waiting.pop(0)


async def _step(store: Store, model: Model, step: Write | Compact | Reopen) -> None:
    match step:
        case Write(ops, compared, stale):
            held = model.states[-1]
            compares = [Compare(key, _revision(held, key) + stale) for key in compared]
            done = await store.txn(compares, ops)
            if stale and compares:
                assert done == Refused({key: held.get(key) for key in compared})
            else:
                model.write(ops)
                assert done == Committed(model.revision)
        case Compact(share):
            model.floor += int((model.revision - model.floor) * share)
            await store.compact(model.floor)
        case Reopen():
            pass


def _revision(state: Mapping[Key, Record], key: Key) -> int:
    return state[key].revision if key in state else 0


async def _agree(store: Store, model: Model) -> None:
    for key in KEYS:
        assert await store.get(key) == model.states[-1].get(key)
    for revision, state in enumerate(model.states):
        if revision < model.floor:
            await _is_forgotten(store, revision)
            continue
        if revision == store.revision or revision:  # 0 asks for the newest
            await _lists_agree(store, revision, state)
        async with store.watch(revision) as watch:
            await _replays(watch, model, revision)


async def _is_forgotten(store: Store, revision: int) -> None:
    with pytest.raises(Compacted):
        async with store.watch(revision) as watch:
            await watch.next()
    if revision:
        with pytest.raises(Compacted):
            await store.list(revision=revision)


async def _lists_agree(store: Store, revision: int, state: State) -> None:
    for resource, namespace in (("", ""), ("services", ""), ("services", "a"), ("", "a")):
        expected = tuple(
            state[key]
            for key in sorted(state)
            if resource in ("", key.resource) and namespace in ("", key.namespace)
        )
        page = await store.list(resource, namespace, revision=revision)
        assert (page.records, page.revision, page.more) == (expected, revision, False)
        found: list[Record] = []
        while True:
            after = found[-1].key if found else None
            page = await store.list(resource, namespace, revision=revision, after=after, limit=3)
            found += page.records
            assert page.remaining in (None, len(expected) - len(found))
            assert page.more == (len(found) < len(expected))
            if not page.more:
                break
        assert tuple(found) == expected


async def _replays(watch: Watch, model: Model, revision: int) -> None:
    """From the state at `revision` the watch leads to the newest, event by event."""
    at, state, events = revision, dict(model.states[revision]), list[Event]()
    while at < model.revision:
        batch = await watch.next()
        assert batch.events
        assert batch.revision >= batch.events[-1].revision > at
        at = batch.revision
        events += batch.events
    for event in events:
        assert event.previous == state.pop(event.key, None)
        if event.record is not None:
            state[event.key] = event.record
    assert state == model.states[-1]
    assert events == [event for event in model.events if event.revision > revision]


@pytest.mark.parametrize("name", list(STORES))
@given(steps=steps)
def test_a_store_agrees_with_a_dictionary(
    name: str, steps: Sequence[Write | Compact | Reopen]
) -> None:
    asyncio.run(play(STORES[name], steps, durable=name in DURABLE))
