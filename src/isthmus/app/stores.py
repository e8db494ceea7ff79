"""The store that `--store` names."""

from __future__ import annotations

from typing import assert_never

from isthmus.aio import Clock
from isthmus.config import EtcdStore, KubernetesStore, MemoryStore, SqliteStore, StoreConfig
from isthmus.errors import UserFault
from isthmus.store import Memory
from isthmus.store.contract import Store
from isthmus.store.sqlite import SQLite


async def open_store(config: StoreConfig, *, clock: Clock) -> Store:
    """Open it.

    Raises:
        UserFault: this version does not have it.
        Unavailable: its file cannot be used; says which, why, and what to do.
    """
    match config:
        case MemoryStore():
            return Memory(clock=clock)
        case SqliteStore(path=path):
            return await SQLite.open(path, clock=clock)
        case EtcdStore():
            raise _unavailable("etcd://")
        case KubernetesStore():
            raise _unavailable("kubernetes:")
        case _:
            assert_never(config)


def _unavailable(scheme: str) -> UserFault:
    return UserFault(f"--store {scheme} is not yet in this version; use sqlite:[PATH] or memory:")
