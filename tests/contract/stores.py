"""The stores that pass the contract suite: one line each in STORES."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from isthmus.store import Memory, Store
from isthmus.store.sqlite import SQLite

Opener = Callable[[Path], AbstractAsyncContextManager[Store]]
"""A store that may keep files in the folder; opened there again, it goes on if it is durable."""


@asynccontextmanager
async def _memory(_: Path) -> AsyncIterator[Store]:
    store = Memory()
    yield store
    await store.close()


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Store]:
    store = await SQLite.open(folder / "store.db")
    yield store
    await store.close()


DURABLE: Mapping[str, Opener] = {"sqlite": _sqlite}
STORES: Mapping[str, Opener] = {"memory": _memory, **DURABLE}
