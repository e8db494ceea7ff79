"""A control plane that starts while the clusters it links are away."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.app.links.kept import path_of, read, whose
from isthmus.app.links.kubeconfig import access_of
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.links import Reached
from tests.support.fakeapi import FakeApi, service
from tests.support.linkworld import LinkWorld

STALENESS = "multicluster.isthmus.dev/staleness"


async def seen(home: Path) -> dict[str, Any]:
    """A cluster with the Service `web` was linked; its kubeconfig, and nobody answers there now."""
    async with FakeApi().serving() as api:
        await watched(home, api)
        return dict(api.kubeconfig())


async def watched(home: Path, api: FakeApi, *, answered: bool = False, **at: object) -> None:
    """A control plane saw the Service `web`, kept that, and ended."""
    owner = whose(access_of(json.dumps(api.kubeconfig()).encode()))
    async with LinkWorld(home).running() as world:
        api.put(service("web"))
        await world.link("east", api.kubeconfig(), **at)
        await world.until(lambda: world.has("east", "web"))

        def written() -> bool:
            found = read(path_of(home, "east"), "east", owner)
            if found is None:
                return False
            return len(found.objects) == 1 and found.kept.answered is answered

        await world.until(written)


async def test_what_was_seen_before_a_start_is_shown_as_stale(tmp_path: Path) -> None:
    config = await seen(tmp_path)
    world = LinkWorld(tmp_path)
    await world.link("east", config)
    async with world.running():
        told = await world.until_health("east", lambda it: it.reason == "Unreachable")
        assert told.state is Reached.STALE
        await world.links.settled()
        assert world.has("east", "web")
        row = LINKED.get(world.db, "east")
        assert row is not None
        assert row.usable


@pytest.mark.parametrize("said", ["drop", "drain-after: 1ms"])
async def test_how_stale_it_may_be_is_the_links_word(tmp_path: Path, said: str) -> None:
    config = await seen(tmp_path)
    world = LinkWorld(tmp_path)
    await world.link("east", config, annotations={STALENESS: said})
    async with world.running():
        await world.until(lambda: world.has("east", "web"))
        await world.links.settled()
        row = LINKED.get(world.db, "east")
        assert row is not None
        assert not row.usable


async def test_another_cluster_of_that_name_is_not_taken_for_it(tmp_path: Path) -> None:
    await seen(tmp_path)
    async with FakeApi().serving() as other:
        config = other.kubeconfig()
    world = LinkWorld(tmp_path)
    await world.link("east", config)
    async with world.running():
        told = await world.until_health("east", lambda it: it.reason == "Unreachable")
        assert told.state is Reached.CONNECTING
        assert not world.has("east", "web")


async def test_a_spoilt_file_is_said_and_ignored(tmp_path: Path) -> None:
    config = await seen(tmp_path)
    path = path_of(tmp_path, "east")
    path.write_bytes(path.read_bytes()[:-1])
    world = LinkWorld(tmp_path)
    await world.link("east", config)
    async with world.running():
        told = await world.until_health("east", lambda it: it.reason == "Unreachable")
        assert told.state is Reached.CONNECTING
        assert "the kept view of a linked cluster is ignored" in world.log.events()


async def test_the_file_goes_with_the_link(tmp_path: Path) -> None:
    config = await seen(tmp_path)
    world = LinkWorld(tmp_path)
    await world.link("east", config)
    async with world.running():
        await world.until(lambda: world.has("east", "web"))
        await world.unlink("east")
        await world.until(lambda: not path_of(tmp_path, "east").exists())
        assert not world.has("east", "web")


async def test_the_file_of_a_link_that_went_meanwhile_goes_at_the_start(tmp_path: Path) -> None:
    await seen(tmp_path)
    async with LinkWorld(tmp_path).running() as world:
        await world.links.settled()
        assert not path_of(tmp_path, "east").exists()


@pytest.mark.parametrize("said", ["keep", "drop"])
async def test_a_cluster_that_answers_is_shown_as_it_is_now(tmp_path: Path, said: str) -> None:
    """What waits for `settled` never tells the view before, nor that it is too old."""
    async with FakeApi().serving() as api:
        config = api.kubeconfig()
        await watched(tmp_path, api)
        api.put(service("new"))
        api.delete("shop/web")
        world = LinkWorld(tmp_path)
        await world.link("east", config, annotations={STALENESS: said})
        async with world.running():
            await world.links.settled()
            assert world.has("east", "new")
            assert not world.has("east", "web")
            row = LINKED.get(world.db, "east")
            assert row is not None
            assert row.usable
            told = world.health("east")
            assert told is not None
            assert told.state is Reached.SYNCED


async def test_a_data_plane_that_answered_before_the_start_is_believed_silent(
    tmp_path: Path,
) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with FakeApi().serving() as api:
        config = api.kubeconfig()
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as gateway:
            port = str(gateway.sockets[0].getsockname()[1])
            at = {"gatewayAddress": "127.0.0.1", "gatewayPort": port, "probeSpec": {"port": port}}
            await watched(tmp_path, api, answered=True, **at)
    world = LinkWorld(tmp_path)
    await world.link("east", config, **at)
    async with world.running():
        await world.until_health("east", lambda it: it.state is Reached.DEAD)
        row = LINKED.get(world.db, "east")
        assert row is not None
        assert not row.usable
