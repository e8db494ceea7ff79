"""What a real Envoy does while routes and EgressNetworks change under it."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from isthmus.aio import breathe, deadline
from tests.support.compact import Compact
from tests.support.envoy_process import CLOCK
from tests.support.live_envoy import Live, live
from tests.support.meshworld import World
from tests.support.outbound_envoy import Dialled, Way

CART = Dialled("10.96.0.10", 80)
OUT = Dialled("203.0.113.9", 80)
SERVICES = ("cart.shop:80", "till.shop:80", "mug.shop:80")
EDITS = 100
RATE = 500
"""Requests a second, as long as the machine can."""
EACH = 50
"""Requests from one edit to the next."""
PATIENCE = 60.0


@pytest.fixture(scope="module", autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """One loop for all tests: gRPC tells some of its ends late, and to the loop they began on."""
    yield
    for _ in range(100):
        await breathe()


def service(name: str, last: int) -> Compact:
    return {"svc": f"shop/{name}", "ip": f"10.96.0.{last}", "ports": [80]}


def world(*objects: Compact) -> World:
    return World(
        {"ns": "shop"},
        {"ns": "linkerd-egress"},
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"},
        service("cart", 10),
        *objects,
        service_networks=("10.96.0.0/16",),
        cluster_networks=("10.0.0.0/8",),
    )


def split(*backends: tuple[str, int], name: str = "r", **said: object) -> Compact:
    listed = [[one, 80, weight] for one, weight in backends]
    return {"route": f"shop/{name}", "service": "cart", "port": 80, "backends": listed, **said}


async def status(out: Way, to: Dialled, **said: Any) -> int | None:  # noqa: ANN401
    answer = await out.ask(to, **said)
    return answer.status if answer is not None else None


@asynccontextmanager
async def load(out: Way) -> AsyncIterator[asyncio.subprocess.Process]:
    """Requests at a steady rate, from a process of its own."""
    command = ("-m", "tests.support.open_load", str(out.port), CART.ip, str(CART.port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, str(RATE), str(EACH), str(EDITS), stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with deadline(CLOCK, PATIENCE, "a line of the load"):
        return (await process.stdout.readline()).decode().strip()


def edits(dice: Random) -> list[tuple[list[Compact], list[str]]]:
    """Edits of routes and Services that never leave a request without somewhere to go."""
    till, mug = service("till", 11), service("mug", 12)
    old: Mapping[str, object] = {"created": "2020-01-01T00:00:00Z"}
    cycle: list[tuple[list[Compact], list[str]]] = [
        ([split(("cart", 1))], []),
        ([till], []),
        ([split(("cart", 3), ("till", dice.randint(1, 5)))], []),
        ([split(("till", 1))], []),
        ([mug, split(("till", 1), ("mug", 1))], []),
        ([split(("mug", 1), name="first", **old)], []),
        ([split(("mug", 1))], ["route shop/first"]),
        ([], ["svc shop/till"]),
        ([split(("cart", 1), ("mug", 0))], []),
        ([], ["route shop/r"]),
    ]
    return cycle


async def test_edits_of_routes_cost_no_request(tmp_path: Path) -> None:
    dice = Random(7)
    steps = [step for _ in range(EDITS // 10) for step in edits(dice)]
    async with live(tmp_path, world(), *SERVICES) as mesh, load(mesh.way) as clients:
        for applied, gone in steps:
            mesh.world.apply(*applied)
            mesh.world.delete(*gone)
            assert await line(clients) == "round"
        said = json.loads(await line(clients))
        await mesh.settled()
    sys.stdout.write(f"{said}\n")
    apps = {f"p80.{name}.shop.here.internal.trust.mesh.test" for name in ("cart", "till", "mug")}
    assert said["found"].keys() == apps, said
    assert sum(said["found"].values()) == EACH * EDITS


async def egress(mesh: Live, policy: str) -> None:
    await mesh.apply({"egress": "linkerd-egress/all", "policy": policy})


async def test_what_may_leave_changes_in_place(tmp_path: Path) -> None:
    async with live(tmp_path, world(), *SERVICES) as mesh:
        out = mesh.way
        reader, writer = await out.connect(OUT)

        async def again() -> int:
            """One more request on the connection that is open all the time."""
            writer.write(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            return int(head.split(b" ")[1])

        await egress(mesh, "Allow")
        assert await status(out, OUT) == 200
        assert await again() == 200
        await egress(mesh, "Deny")
        assert await again() == 403
        assert await status(out, OUT) == 403
        assert await out.exchange(OUT, b"bytes") == b""
        route = {"route": "shop/r", "egress": "all", "of": "linkerd-egress", "port": 80}
        await mesh.apply({**route, "hosts": ["a.test"]})
        assert await status(out, OUT, host="a.test") == 200
        assert await status(out, OUT, host="b.test") == 403
        await mesh.delete("route shop/r")
        assert await status(out, OUT, host="a.test") == 403
        await egress(mesh, "Allow")
        assert await again() == 200
        writer.close()
        await mesh.delete("egress linkerd-egress/all")
        assert await status(out, OUT) == 200
        assert await out.exchange(OUT, b"bytes") == b"passthrough"


async def test_a_network_of_ones_own_hides_the_global_ones_at_once(tmp_path: Path) -> None:
    async with live(tmp_path, world(), *SERVICES) as mesh:
        await egress(mesh, "Allow")
        assert await status(mesh.way, OUT) == 200
        own: Compact = {"egress": "shop/own", "policy": "Deny", "networks": ["203.0.113.0/24"]}
        await mesh.apply(own)
        assert await status(mesh.way, OUT) == 403
        assert await status(mesh.way, Dialled("198.51.100.1", 80)) == 200
        await mesh.delete("egress shop/own")
        assert await status(mesh.way, OUT) == 200


async def test_a_namespaces_own_route_comes_and_goes(tmp_path: Path) -> None:
    bank: Compact = {"svc": "pay/bank", "ip": "10.96.0.20", "ports": [80]}
    to = Dialled("10.96.0.20", 80)
    mesh = world({"ns": "pay"}, bank, {"route": "pay/r", "service": "bank"}, service("till", 11))
    async with live(tmp_path, mesh, "bank.pay:80", *SERVICES) as running:

        async def asked() -> str:
            answer = await running.way.ask(to)
            assert answer is not None
            return str(json.loads(answer.body)["app"]).partition(".here")[0]

        assert await asked() == "p80.bank.pay"
        own: Compact = {"route": "shop/own", "service": "bank", "of": "pay"}
        await running.apply({**own, "backends": [["till", 80]]})
        assert await asked() == "p80.till.shop"
        await running.delete("route shop/own")
        assert await asked() == "p80.bank.pay"
