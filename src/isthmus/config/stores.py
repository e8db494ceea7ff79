"""Where a cluster's objects live: the `--store` URL as a value."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from isthmus.config.values import HostPort, host_port, path

PREFIX = re.compile(r"(/[A-Za-z0-9._-]{1,63})+")
CONTEXT_LIMIT = 253


class MemoryStore(msgspec.Struct, frozen=True):
    """`memory:`: gone when the process ends."""


class SqliteStore(msgspec.Struct, frozen=True):
    """`sqlite:[path]`: one file; without a path, `isthmus.db` in the data directory."""

    path: Path


class EtcdStore(msgspec.Struct, frozen=True):
    """`etcd://host:port[,host:port][/prefix]`: keys start with the prefix.

    Without one it is `/isthmus/CLUSTER`, so that clusters may share an etcd.
    """

    endpoints: tuple[HostPort, ...]
    prefix: str


class KubernetesStore(msgspec.Struct, frozen=True):
    """`kubernetes:[context]`: the API of a kubeconfig's context, or of the cluster around us."""

    context: str | None


StoreConfig = MemoryStore | SqliteStore | EtcdStore | KubernetesStore


def store(text: str, *, cluster: str, data_dir: Path, home: str | None) -> StoreConfig:
    """Read a store URL.

    Raises:
        ValueError: with a half-line that says what is wrong.
    """
    scheme, colon, rest = text.partition(":")
    match scheme if colon else "":
        case "memory" if not rest:
            return MemoryStore()
        case "sqlite":
            return SqliteStore(path(rest, home) if rest else data_dir / "isthmus.db")
        case "etcd" if rest.startswith("//"):
            return _etcd(text, rest.removeprefix("//"), cluster)
        case "kubernetes" if len(rest) <= CONTEXT_LIMIT:
            return KubernetesStore(rest or None)
        case _:
            raise ValueError(
                f"{text!r} is not a store: memory:, sqlite:[PATH], "
                "etcd://HOST:PORT[,HOST:PORT][/PREFIX] or kubernetes:[CONTEXT]"
            )


def _etcd(text: str, rest: str, cluster: str) -> EtcdStore:
    hosts, slash, prefix = rest.partition("/")
    prefix = slash + prefix.rstrip("/") if prefix else f"/isthmus/{cluster}"
    if not PREFIX.fullmatch(prefix):
        raise ValueError(f"{text!r} has a prefix of other characters than letters, digits, . _ -")
    endpoints = tuple(host_port(host, lowest=1) for host in hosts.split(","))
    return EtcdStore(endpoints, prefix)
