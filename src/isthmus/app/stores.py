"""The store that `--store` names."""

from __future__ import annotations

from typing import assert_never

from isthmus.aio import Clock
from isthmus.config import EtcdStore, KubernetesStore, MemoryStore, SqliteStore, StoreConfig
from isthmus.errors import UserFault
from isthmus.store import Memory
from isthmus.store.contract import Store


async def open_store(config: StoreConfig, *, clock: Clock) -> Store:
    """Open it.

    Raises:
        UserFault: it is not of this version, or its file cannot be used (which, and what to do).
    """
    match config:
        case MemoryStore():
            return Memory(clock=clock)
        case SqliteStore():
            raise _unavailable("sqlite:")
        case EtcdStore():
            raise _unavailable("etcd://")
        case KubernetesStore():
            raise _unavailable("kubernetes:")
        case _:
            assert_never(config)


def _unavailable(scheme: str) -> UserFault:
    return UserFault(f"--store {scheme} is not yet in this version; use sqlite:[PATH] or memory:")
