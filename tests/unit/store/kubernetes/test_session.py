from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiohttp import web

from isthmus.aio import SystemClock
from isthmus.errors import Forbidden, MethodNotAllowed, TooLarge, Unauthenticated
from isthmus.model.key import Key
from isthmus.store.kubernetes import Bounds, Client, Means, Session, Told, View
from isthmus.store.kubernetes.objects import BOUNDS
from isthmus.store.kubernetes.session import onward
from tests.support.fakeapi import Act, FakeApi, service, status

CLOCK = SystemClock()
PATIENCE = 20.0
SERVICES = "/api/v1/services"
SERVERS = "/apis/policy.linkerd.io/v1beta3/servers"


class One:
    """A view and a session over a fake API."""

    def __init__(self, client: Client, bounds: Bounds = BOUNDS) -> None:
        self.view = View(CLOCK, bounds)
        self.heard = 0
        told = Told(self.hear, lambda: None)
        self.session = Session(client, self.view, Means(CLOCK, Random(1)), told, bounds=bounds)

    def hear(self) -> None:
        self.heard += 1

    def names(self, resource: str = "services") -> list[str]:
        live = self.view._timeline.live  # noqa: SLF001  # what a list would say, without waiting
        return sorted(key.name for key in live if key.resource == resource)

    async def until(self, names: list[str], resource: str = "services") -> None:
        async with asyncio.timeout(PATIENCE):  # noqa: TID251  # real sockets
            while self.names(resource) != names:  # noqa: ASYNC110  # a store tells by watches
                await asyncio.sleep(0.01)  # noqa: TID251


@asynccontextmanager
async def following(api: FakeApi, bounds: Bounds = BOUNDS) -> AsyncIterator[One]:
    async with Client(api.access, CLOCK) as client:
        one = One(client, bounds)
        staged = await one.session.sync()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.session.run(staged))
            await one.view.list(limit=1)  # which waits until it is shown
            yield one
            task.cancel()


def refusing(code: int) -> Act:
    async def act(_request: web.Request) -> web.StreamResponse:
        return status(code)

    return act


async def test_everything_is_listed_in_pages_and_followed(api: FakeApi) -> None:
    api.page = 2
    for name in "abcde":
        api.put(service(name))
    async with following(api) as one:
        assert one.names() == list("abcde")
        api.put(service("f"))
        api.delete("shop/a")
        await one.until(list("bcdef"))
        revision = one.view.revision
        api.put(service("b", managedFields=[{"manager": "somebody"}]))
        api.put(service("g"))
        await one.until(list("bcdefg"))
        assert one.view.revision == revision + 1  # who manages fields is no news
        page = await one.view.list("services")
        assert [each.key.name for each in page.records] == list("bcdefg")
        assert b"managedFields" not in page.records[0].value
        with pytest.raises(MethodNotAllowed):
            await one.view.txn((), ())


async def test_a_kind_that_is_forbidden_or_missing_stops_no_other(api: FakeApi) -> None:
    api.act["/apis/batch/v1/jobs"] = refusing(403)
    api.act[SERVERS] = refusing(404)
    api.act["/api/v1/namespaces"] = refusing(403)  # as usual: nobody misses it
    api.put(service("a"))
    async with following(api) as one:
        assert one.names() == ["a"]
        assert set(one.session.trouble) == {"jobs.batch", "servers.policy.linkerd.io"}


async def test_without_services_there_is_no_view(api: FakeApi) -> None:
    api.act[SERVICES] = refusing(403)
    async with Client(api.access, CLOCK) as client:
        with pytest.raises(Forbidden):
            await One(client).session.sync()


async def test_an_older_version_of_a_kind_is_read_as_ours(api: FakeApi) -> None:
    api.act[SERVERS] = refusing(404)
    old = SERVERS.replace("v1beta3", "v1beta1")
    spec = {"podSelector": {}, "port": 80}
    api.objects[old] = {"shop/s": {"metadata": {"name": "s", "namespace": "shop"}, "spec": spec}}
    async with following(api) as one:
        page = await one.view.list("servers.policy.linkerd.io")
        assert b'"apiVersion":"policy.linkerd.io/v1beta3"' in page.records[0].value


async def test_a_watch_whose_place_is_lost_becomes_a_difference(api: FakeApi) -> None:
    api.put(service("a"))
    api.put(service("b"))
    async with following(api) as one:
        created = await one.view.get(Key("services", "shop", "a"))
        del api.objects[SERVICES]["shop/b"]  # unseen: restored from a backup
        api.put_back(5)
        api.put(service("c"))
        await one.until(["a", "c"])
        assert await one.view.get(Key("services", "shop", "a")) == created


async def test_credentials_that_end_end_the_session(api: FakeApi) -> None:
    api.put(service("a"))
    async with Client(api.access, CLOCK) as client:
        one = One(client)
        staged = await one.session.sync()
        api.tokens.clear()
        with pytest.raises(Unauthenticated):
            await one.session.run(staged)
        assert one.names() == ["a"]


async def test_junk_hurts_nothing_but_itself(api: FakeApi) -> None:
    junk: list[object] = [
        "text", None, 7, [], {}, {"metadata": None}, {"metadata": {"name": 7}},
        {"metadata": {"name": "x"}}, {"metadata": {"name": "a/b", "namespace": "shop"}},
        {"metadata": {"name": "x", "namespace": "../up"}},
        {"metadata": {"name": "x\n", "namespace": "shop"}},
        {"metadata": {"name": "x" * 300, "namespace": "shop"}},
        {"metadata": {"name": "x", "namespace": ["shop"]}},
    ]  # fmt: skip
    api.put(service("good"))

    async def act(request: web.Request) -> web.StreamResponse:
        if not request.query.get("watch"):
            items = [*junk, *api.objects[SERVICES].values()]
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        for each in junk:
            line = json.dumps({"type": "ADDED", "object": each})
            await response.write(line.encode() + b"\n")
        line = json.dumps({"type": "ADDED", "object": service("more")})
        await response.write(line.encode() + b"\n")
        await asyncio.Event().wait()
        return response

    api.act[SERVICES] = act
    async with following(api) as one:
        assert one.names() == ["good"]
        api.put(service("other"), "/api/v1/endpoints")
        await one.until(["other"], "endpoints")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"items": 7}', b"[" * 100_000])
async def test_a_list_that_is_none_leaves_a_kind_out(api: FakeApi, body: bytes) -> None:
    async def act(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    api.act["/api/v1/endpoints"] = act
    api.put(service("a"))
    async with following(api) as one:
        assert one.names() == ["a"]
        assert "endpoints" in one.session.trouble


async def test_more_than_fits_is_refused_and_large_pages_are_asked_for_in_parts(
    api: FakeApi,
) -> None:
    for number in range(40):
        api.put(service(f"s{number:02}", annotations={"big": "x" * 10_000}))
    async with following(api, Bounds(objects=100, bytes=2**20, page=100_000)) as one:
        assert len(one.names()) == 40
    async with Client(api.access, CLOCK) as client:
        for bounds in (Bounds(10, 2**20, 2**20), Bounds(1000, 50_000, 2**20)):
            with pytest.raises(TooLarge):
                await One(client, bounds).session.sync()


async def test_an_endless_list_ends(api: FakeApi) -> None:
    async def act(_request: web.Request) -> web.StreamResponse:
        same = [service(f"s{number}") for number in range(100)]
        return web.json_response({"metadata": {"continue": "more"}, "items": same})

    api.act[SERVICES] = act
    async with Client(api.access, CLOCK) as client:
        with pytest.raises(TooLarge):
            await One(client, Bounds(1000, 100_000, 2**20)).session.sync()


def test_versions_go_on_or_the_place_is_lost() -> None:
    assert onward("5", "7") == "7"
    assert onward("5", "") == "5"
    assert onward("abc", "abd") == "abd"
    with pytest.raises(Exception, match="put back"):
        onward("7", "5")
