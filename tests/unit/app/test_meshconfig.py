"""The ConfigMap that says what a cluster's mesh is called and trusts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from isthmus import __version__
from isthmus.aio import Latest, ManualClock
from isthmus.app import announce, meshconfig
from isthmus.ca import Trust, chains, trust
from isthmus.config import ServerConfig, resolve
from isthmus.model.key import Key
from isthmus.store import Memory
from isthmus.store.codec import document
from isthmus.store.objects import Objects

KEY = Key("configmaps", "linkerd", "linkerd-config")


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    return resolve({"data_dir": str(tmp_path), "cluster": "east"}, {"HOME": "/nowhere"})


async def held(store: Memory) -> dict[str, Any]:
    record = await store.get(KEY)
    assert record is not None
    return document(record.value, record.revision)


async def values(store: Memory) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((await held(store))["data"]["values"])  # noqa: TID251
    return read


@pytest.mark.anyio
async def test_it_tells_the_names_and_follows_the_trust(config: ServerConfig) -> None:
    store, clock = Memory(), ManualClock()
    objects = Objects(store, clock=clock, random=Random(1))
    now: Latest[Trust | None] = Latest(None)
    await announce.publish(objects, config, {})
    task = asyncio.get_running_loop().create_task(meshconfig.follow(objects, config, now))
    await clock.turn(0)
    assert await values(store) == {
        "clusterName": "east",
        "clusterDomain": "cluster.local",
        "clusterNetworks": ",".join(map(str, config.cluster_networks)),
        "linkerdVersion": __version__,
        "identityTrustDomain": "cluster.local",
        "identityTrustAnchorsPEM": "",
        "identityIssuerPEM": "",
    }
    for name in ("one", "two"):
        made = trust.make(name, now=clock.utc())
        now.set(made)
        await clock.turn(0)
        said = await values(store)
        assert said["identityTrustAnchorsPEM"] == made.bundle.decode()
        issuer = chains.read_pem(said["identityIssuerPEM"].encode(), "the test")
        assert issuer == (made.issuer,)
        assert "PRIVATE" not in str(await held(store))
    task.cancel()


@pytest.mark.anyio
async def test_one_that_somebody_else_wrote_is_left_alone(config: ServerConfig) -> None:
    store, clock = Memory(), ManualClock()
    objects = Objects(store, clock=clock, random=Random(1))
    await announce.publish(objects, config, {})
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "linkerd-config", "namespace": "linkerd"},
        "data": {"values": "clusterDomain: x"},
    }
    await objects.create(announce.kind("ConfigMap"), theirs)
    await meshconfig.write(objects, config, trust.make("one", now=clock.utc()))
    assert (await held(store))["data"] == theirs["data"]
