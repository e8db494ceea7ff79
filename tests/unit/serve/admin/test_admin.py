"""The admin surface over a real socket: health, metrics, and names it does not answer to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession

from isthmus.aio import breathe
from isthmus.serve.admin import Admin, Reading, registry
from isthmus.serve.admin.server import host_name, is_here

pytestmark = pytest.mark.anyio


class World:
    def __init__(self, **limits: Any) -> None:  # noqa: ANN401  # as Admin takes them
        self.reasons: dict[str, str] = {}
        self.count = 7
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.at = self.socket.getsockname()
        self.url = f"http://127.0.0.1:{self.at[1]}"
        readings = [
            Reading("isthmus_things", "Things.", "gauge", lambda: self.count),
            Reading("isthmus_done_total", "Deeds.", "counter", lambda: self.count),
            Reading(
                "isthmus_asked_total",
                "Questions.",
                "counter",
                lambda: {("get", "200"): 3, ("list", "404"): 4},
                ("verb", "code"),
            ),
        ]

        async def later(_query: object) -> object:
            await breathe()
            return {"count": self.count}

        self.admin = Admin(
            self.socket,
            lambda: self.reasons,
            registry(readings),
            names=["Admin.Example"],
            pages={"/counts": lambda _: {"count": self.count}, "/later": later},
            **limits,
        )


@asynccontextmanager
async def running(admin: Admin) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(admin.run())
        yield
        task.cancel()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    async with running(world.admin):
        yield world


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def test_live(world: World, client: ClientSession) -> None:
    world.reasons["store"] = "down"
    async with client.get(f"{world.url}/live") as answer:
        assert answer.status == 200


async def test_ready_says_why_not(world: World, client: ClientSession) -> None:
    async with client.get(f"{world.url}/ready") as answer:
        assert (answer.status, await answer.json()) == (200, {"ready": True, "reasons": {}})
    world.reasons["store"] = "the disk is full"
    async with client.get(f"{world.url}/ready") as answer:
        assert answer.status == 503
        assert await answer.json() == {"ready": False, "reasons": world.reasons}


async def test_metrics_are_read_when_asked_for(world: World, client: ClientSession) -> None:
    for count in (7, 8):
        world.count = count
        async with client.get(f"{world.url}/metrics") as answer:
            assert answer.status == 200
            text = await answer.text()
            assert f"isthmus_things {count}.0" in text
            assert f"isthmus_done_total {count}.0" in text
            assert 'isthmus_asked_total{code="404",verb="list"} 4.0' in text
            assert "process_resident_memory_bytes" in text


async def test_pages_are_values_as_they_are_when_asked_for(
    world: World, client: ClientSession
) -> None:
    for count in (7, 8):
        world.count = count
        async with client.get(f"{world.url}/counts") as answer:
            assert (answer.status, answer.content_type) == (200, "application/json")
            assert await answer.json() == {"count": count}


async def test_openmetrics_when_asked(world: World, client: ClientSession) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with client.get(f"{world.url}/metrics", headers=accept) as answer:
        assert answer.content_type == "application/openmetrics-text"
        assert (await answer.text()).endswith("# EOF\n")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil", ""])
@pytest.mark.parametrize("path", ["/ready", "/metrics", "/nothing"])
async def test_a_rebound_name_is_refused(
    world: World, client: ClientSession, host: str, path: str
) -> None:
    headers = {"Host": host, "Origin": "http://evil.example"}
    async with client.get(f"{world.url}{path}", headers=headers) as answer:
        assert answer.status == 403
        assert "isthmus_things" not in await answer.text()
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST.", "[::1]:9990", "admin.example:9990"])
async def test_own_names_are_served(world: World, client: ClientSession, host: str) -> None:
    async with client.get(f"{world.url}/ready", headers={"Host": host}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/", 405),
        ("POST", "/ready", 405),
        ("GET", "/../etc/passwd", 404),
        ("HEAD", "/live", 200),
    ],
)
async def test_nothing_else_is_here(
    world: World, client: ClientSession, method: str, path: str, status: int
) -> None:
    async with client.request(method, f"{world.url}{path}") as answer:
        assert answer.status == status
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "name", "here"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:80", "127.0.0.1", True),
        ("[::1]", "::1", True),
        ("::1", "::1", True),
        ("a.localhost:1", "a.localhost", True),
        ("notlocalhost", "notlocalhost", False),
        ("2130706433", "2130706433", False),
        ("[evil]:1", "evil", False),
        ("", "", False),
    ],
)
def test_names(host: str, name: str, here: bool) -> None:
    assert host_name(host) == name
    assert is_here(name) is here


async def test_a_client_that_says_nothing_or_half_a_request_is_closed() -> None:
    world = World(patience=0.2)
    async with running(world.admin):
        for said in (b"", b"GET /live HTTP/1.1\r\nHo"):
            reader, writer = await asyncio.open_connection(*world.at)
            writer.write(said)
            assert await reader.read() == b""
            writer.close()


async def test_connections_are_limited(client: ClientSession) -> None:
    world = World(most=2)
    async with running(world.admin):
        async with client.get(f"{world.url}/live") as answer:
            assert answer.status == 200
        _, second = await asyncio.open_connection(*world.at)
        async with client.get(f"{world.url}/live") as answer:
            assert answer.status == 200  # on the connection that is there
        reader, third = await asyncio.open_connection(*world.at)
        assert await closed(reader)
        third.close()
        second.close()


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_the_dashboard_lets_nothing_in_from_elsewhere(
    world: World, client: ClientSession
) -> None:
    for path, kind in (("/", "html"), ("/dashboard.css", "css"), ("/dashboard.js", "javascript")):
        async with client.get(f"{world.url}{path}") as answer:
            assert answer.status == 200
            assert kind in answer.headers["Content-Type"]
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; ")
            assert "unsafe" not in policy
            assert "http" not in (await answer.text()).replace("http-equiv", "")


async def test_a_page_may_take_its_time(world: World, client: ClientSession) -> None:
    async with client.get(f"{world.url}/later") as answer:
        assert await answer.json() == {"count": 7}
