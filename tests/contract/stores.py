"""The stores that pass the contract suite: one line each in STORES."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from isthmus.store import Memory, Store

Opener = Callable[[Path], AbstractAsyncContextManager[Store]]
"""A store that may keep files in the folder; opened there again, it goes on if it is durable."""


@asynccontextmanager
async def _memory(_: Path) -> AsyncIterator[Store]:
    store = Memory()
    yield store
    await store.close()


STORES: Mapping[str, Opener] = {"memory": _memory}
DURABLE: Mapping[str, Opener] = {}
