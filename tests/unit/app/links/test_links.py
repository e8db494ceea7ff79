"""Links to fake APIs, some of them hostile: real sockets, one process."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from isthmus.aio import SystemClock
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.links import LINKS_BY_CLUSTER, Reached
from tests.support.fakeapi import Act, FakeApi, service, status
from tests.support.linkworld import HERE, LinkWorld

SERVICES = "/api/v1/services"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi().serving() as made:
        yield made


@pytest.fixture
async def world() -> AsyncIterator[LinkWorld]:
    async with LinkWorld().running() as made:
        yield made


async def redirect(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "http://169.254.169.254/latest"})


async def junk(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x00" * 1000)


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while request.transport is not None and not request.transport.is_closing():
        await response.write(b"[" * 65_536)
        await asyncio.sleep(0.01)  # noqa: TID251  # who has left must be noticed
    return response


async def silence(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


@pytest.mark.parametrize(
    ("act", "reasons"),
    [
        (redirect, {"BadAnswers"}),
        (junk, {"BadAnswers"}),
        (endless, {"TooMuch", "Connecting"}),
        (silence, {"Connecting", "TooSlow"}),
    ],
)
async def test_a_hostile_api_hurts_only_its_own_link(
    api: FakeApi, world: LinkWorld, act: Act, reasons: set[str]
) -> None:
    async with FakeApi().serving() as bad:
        bad.act["*"] = act
        await world.link("bad", bad.kubeconfig())
        await world.until_health("bad", lambda it: it.reason in reasons)
        api.put(service("web"))
        await world.link("good", api.kubeconfig())
        await world.until_health("good", lambda it: it.state is Reached.SYNCED)
        assert world.has("good", "web")
        api.put(service("more"))
        await world.until(lambda: world.has("good", "more"))
        health = world.health("bad")
        assert health is not None
        assert health.state in (Reached.CONNECTING, Reached.REFUSED)
        assert LINKED.get(world.db, "bad") is None


async def test_what_a_cluster_says_of_itself_is_told(api: FakeApi, world: LinkWorld) -> None:
    async def config(_request: web.Request) -> web.StreamResponse:
        values = "clusterName: east-1\nidentityTrustDomain: east.test\nclusterDomain: east.local\n"
        return web.json_response({"data": {"values": values}})

    api.act["/api/v1/namespaces/linkerd/configmaps/linkerd-config"] = config
    await world.link("east", api.kubeconfig())
    await world.until_health("east", lambda it: it.state is Reached.SYNCED)
    row = LINKED.get(world.db, "east")
    assert row is not None
    assert (row.own_name, row.trust_domain, row.cluster_domain) == (
        "east-1",
        "east.test",
        "east.local",
    )
    assert row.control_plane_namespace == "linkerd"


async def test_newer_credentials_take_over_when_they_have_synced(
    api: FakeApi, world: LinkWorld
) -> None:
    """Also those of another cluster of this name: its objects become the difference."""
    api.put(service("old"))
    api.put(service("both"))
    await world.link("east", api.kubeconfig())
    await world.until_health("east", lambda it: it.state is Reached.SYNCED)
    async with FakeApi().serving() as other:
        other.put(service("both"))
        other.put(service("new"))
        other.tokens = {"later"}
        await world.secret("east", other.kubeconfig("later?"))
        told = await world.until_health("east", lambda it: it.reason == "CredentialsRejected")
        assert told.state is Reached.SYNCED
        api.put(service("meanwhile"))  # the connection before goes on
        await world.until(lambda: world.has("east", "meanwhile"))
        await world.secret("east", other.kubeconfig("later"))
        await world.until(lambda: world.has("east", "new"))
        assert world.has("east", "both")
        assert not world.has("east", "old")
        await world.until_health("east", lambda it: it.reason == "Synced")
        before = api.asked["/version"]
        await world.until(lambda: other.asked["/version"] >= 3)
        assert api.asked["/version"] <= before + 1  # nobody asks the old one any more


async def test_a_secret_that_is_gone_ends_access_and_keeps_what_was_seen(
    api: FakeApi, world: LinkWorld
) -> None:
    api.put(service("web"))
    await world.link("east", api.kubeconfig())
    await world.until_health("east", lambda it: it.state is Reached.SYNCED)
    await world.unsecret("east")
    told = await world.until_health("east", lambda it: it.reason == "SecretNotFound")
    assert told.state is Reached.REFUSED
    assert world.has("east", "web")
    await world.secret("east", api.kubeconfig())
    await world.until_health("east", lambda it: it.state is Reached.SYNCED)


async def test_two_links_of_one_name_and_what_follows_when_the_first_goes(
    api: FakeApi, world: LinkWorld
) -> None:
    api.put(service("web"))
    await world.link("east", api.kubeconfig())
    await world.until_health("east", lambda it: it.state is Reached.SYNCED)
    await world.link("twin", api.kubeconfig(), cluster="east", secret="cluster-credentials-twin")
    told = await world.until_health("twin", lambda it: it.reason == "DuplicateCluster")
    assert "linkerd-multicluster/east" in told.message
    assert len(LINKS_BY_CLUSTER.get(world.db, (HERE, "east"))) == 2
    await world.unlink("east")
    await world.until_health("twin", lambda it: it.state is Reached.SYNCED)
    assert world.has("east", "web")
    assert world.health("east") is None
    await world.unlink("twin")
    await world.until(lambda: not world.has("east", "web"))
    await world.until(lambda: world.health("twin") is None)
    assert LINKED.get(world.db, "east") is None


async def test_a_clock_an_hour_ahead_is_said_and_does_no_harm(
    api: FakeApi, world: LinkWorld
) -> None:
    async def ahead(_request: web.Request) -> web.StreamResponse:
        return web.json_response({}, headers={"Date": "Fri, 01 Jan 2100 00:00:00 GMT"})

    api.act["/version"] = ahead
    await world.link("east", api.kubeconfig())
    told = await world.until_health("east", lambda it: it.reason == "ClockSkew")
    assert told.state is Reached.SYNCED


async def test_a_token_is_renewed_in_its_secrets_and_taken_up(
    api: FakeApi, world: LinkWorld
) -> None:
    old, new = token(-50, 20), token(0, 3600)
    asked = "/api/v1/namespaces/mc/serviceaccounts/reader/token"
    bodies = []

    async def request(req: web.Request) -> web.StreamResponse:
        bodies.append((req.headers["Authorization"], await req.json()))
        if len(bodies) == 1:
            return status(500)
        api.tokens.add(new)
        return web.json_response({"status": {"token": new}}, status=201)

    api.tokens = {old}
    api.act[asked] = request
    api.put(service("web"))
    await world.link("east", api.kubeconfig(old))
    told = await world.until_health("east", lambda it: it.reason == "RenewalFailing")
    assert "the token ends in" in told.message
    await world.until(lambda: len(bodies) == 2)
    assert bodies[0][0] == f"Bearer {old}"
    assert bodies[0][1]["spec"] == {"expirationSeconds": 600}
    await world.until_health("east", lambda it: it.reason == "Synced")
    watcher = world.links.watchers["east"]

    def taken_up() -> bool:
        access = watcher.access.value
        return access is not None and access.token == new

    await world.until(taken_up)
    assert new in await world.kubeconfig("east")
    assert old not in await world.kubeconfig("east")


def token(issued: float, lives: float) -> str:
    """An unsigned token of an account; seconds from now."""
    now = SystemClock().time()
    account = "system:serviceaccount:mc:reader"
    claims = {"sub": account, "iat": now + issued, "exp": now + lives}
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.sig"
