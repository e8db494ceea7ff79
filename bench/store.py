"""What the SQLite store costs: group commit, put latency, lists. Run: `python -m bench.store`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Figure, table
from isthmus.aio import breathe
from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Put, Store, codec
from isthmus.store.sqlite import SQLite

WRITERS = 50
PUTS = 40
"""By each of the writers."""
ROUNDS = 3
ROWS = 10_000
SLICE = 0.003
"""Seconds for which the event loop computes at a time, when it is busy."""
SWITCH = 0.001
"""Seconds after which a waiting thread has its turn: under a slice, or the writer may starve."""

VALUE = codec.encode(
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "bench", "uid": "0" * 36},
        "data": {"key": "v" * 1_000},
    }
)


def _key(name: str) -> Key:
    return Key("configmaps", "bench", name)


async def _writer(store: Store, name: str, puts: int, took: list[float]) -> None:
    """Compare-and-swap one key again and again, as an update does."""
    held = 0
    for _ in range(puts):
        start = time.perf_counter()
        done = await store.txn((Compare(_key(name), held),), (Put(_key(name), VALUE),))
        took.append(time.perf_counter() - start)
        assert isinstance(done, Committed)
        held = done.revision


async def _rate(store: Store, round_: str, writers: int, puts: int) -> tuple[float, list[float]]:
    """Transactions per second, and how long each took."""
    took: list[float] = []
    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for index in range(writers):
            group.create_task(_writer(store, f"{round_}-{index}", puts, took))
    return writers * puts / (time.perf_counter() - start), took


async def _busy() -> None:
    """Keep the loop computing in slices, as a settling mesh does."""
    while True:
        end = time.perf_counter() + SLICE
        while time.perf_counter() < end:
            pass
        await breathe()


async def _crowded(store: Store) -> list[float]:
    """How long puts take while the loop computes all the time, as `app` sets threads to switch."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    async with asyncio.TaskGroup() as group:
        busy = group.create_task(_busy())
        _, took = await _rate(store, "busy", WRITERS, 4)
        busy.cancel()
    sys.setswitchinterval(before)
    return took


async def _group_commit(folder: Path) -> Iterator[Figure]:
    store = await SQLite.open(folder / "store.db")
    alone, together = 0.0, 0.0
    latencies: list[float] = []
    for round_ in range(ROUNDS):
        rate, _ = await _rate(store, f"one{round_}", 1, WRITERS * PUTS // 4)
        alone = max(alone, rate)
        rate, took = await _rate(store, f"many{round_}", WRITERS, PUTS)
        together = max(together, rate)
        latencies += took
    crowded = await _crowded(store)
    await store.close()
    return iter(
        (
            Figure("store: 50 writers ÷ 1 writer, synchronous=FULL", together / alone, "×", "≥ 5"),
            Figure("store: puts, 1 writer", alone, "/s"),
            Figure("store: puts, 50 writers", together, "/s"),
            Figure("store: put by 50 writers, median", _ms(latencies, 0.5), "ms"),
            Figure("store: put by 50 writers, 99 %", _ms(latencies, 0.99), "ms"),
            Figure("store: put by 50 writers, busy loop, 99 %", _ms(crowded, 0.99), "ms"),
        )
    )


async def _lists(folder: Path) -> Iterator[Figure]:
    store = await SQLite.open(folder / "lists.db")
    for start in range(0, ROWS, 500):
        puts = [Put(_key(f"r{row:05}"), VALUE) for row in range(start, start + 500)]
        await store.txn((), puts)
    past = store.revision
    for row in range(500):
        await store.txn((), (Put(_key(f"r{row * 20:05}"), VALUE),))
    whole = await _us(store, 0, 0)
    pages = await _us(store, past, 500)
    await store.close()
    reopening = time.perf_counter()
    again = await SQLite.open(folder / "lists.db")
    opened = time.perf_counter() - reopening
    await again.close()
    return iter(
        (
            Figure("store: list of 10,000, per row", whole, "us"),
            Figure("store: 10,000 in pages at a past revision, per row", pages, "us"),
            Figure("store: opening a file of 10,500 changes", opened * 1e3, "ms"),
        )
    )


async def _us(store: Store, revision: int, limit: int) -> float:
    """Microseconds per row of reading the whole list."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        rows, after, more = 0, None, True
        while more:
            page = await store.list("configmaps", revision=revision, after=after, limit=limit)
            rows, more, after = rows + len(page.records), page.more, page.records[-1].key
        best = min(best, (time.perf_counter() - start) / rows * 1e6)
    return best


def _ms(took: list[float], share: float) -> float:
    return sorted(took)[int(len(took) * share)] * 1e3


def _splice() -> float:
    count, start = 20_000, time.perf_counter()
    for revision in range(count):
        codec.with_revision(VALUE, revision)
    return (time.perf_counter() - start) / count * 1e6


async def _measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [*await _group_commit(folder), *await _lists(folder)]
    return [*figures, Figure("store: splicing a resourceVersion in", _splice(), "us", "≤ 1")]


def figures() -> Iterator[Figure]:
    """Group commit, latency, lists, opening, splicing."""
    yield from asyncio.run(_measure())


if __name__ == "__main__":
    print(table(figures()))
