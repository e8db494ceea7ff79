"""The cases of `cases/destination`, over real gRPC.

Most run against an `isthmus server` process, fed through its HTTPS API. Those with `through:
memory` say what an API would not take (two Services with one address), or what another part of
Isthmus does (watching linked clusters): there the server runs here, over tables that are written
directly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Protocol, Self

import grpc
import pytest
import yaml

from isthmus.aio import SystemClock
from isthmus.app import destination
from isthmus.board import Following
from isthmus.engine import Database, Query
from isthmus.mesh.settings import Http2Params
from isthmus.serve.linkerd import GrpcServer, Read
from isthmus.serve.linkerd.topics import Learn
from tests.support.asking import Asker, Stream, asker
from tests.support.expecting import Names, Step
from tests.support.log import ListLog
from tests.support.meshapi import MeshApi, operations
from tests.support.meshworld import MESH, TRUST, World, ports
from tests.support.server import ServerProcess

CASES = Path(__file__).parent / "cases" / "destination"
NAMES = Names(MESH, TRUST)
DEFAULTS: dict[str, Any] = {
    "cluster_domain": "mesh.test",
    "default_opaque_ports": "25,587,3306,4444,5432,6379,9300,11211",
    "ipv6": False,
    "force_opaque_transport": False,
    "zone_weights": False,
    "meshed_http2": None,
}
CALM = 2
"""Fences after which nothing of what was written before is on its way any more."""
PATIENCE = 40
"""Fences until controllers must have done what a case needs of them."""

FENCE = {"svc": "fence/fence", "ports": [1], "opaque": ""}

Case = dict[str, Any]


def load() -> list[Case]:
    """All cases, those of one configuration in a row."""
    found: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        found += yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    for case in found:
        case["config"] = DEFAULTS | case.get("config", {})
    return sorted(found, key=lambda case: json.dumps(case["config"]))


ALL = load()
BY_API = [case for case in ALL if case.get("through") != "memory"]
BY_TABLES = [case for case in ALL if case.get("through") == "memory"]


class Mesh(Protocol):
    """Where objects are written."""

    def apply(self, *objects: dict[str, Any]) -> None: ...

    def delete(self, *names: str) -> None: ...

    def touch(self, *names: str) -> None: ...


class Table:
    """A case on its way: a mesh, a client, and a fence between them."""

    def __init__(self, mesh: Mesh, client: Asker, config: dict[str, Any]) -> None:
        self._mesh = mesh
        self._client = client
        self._path = f"fence.fence.svc.{config['cluster_domain']}:1"
        self._up = False

    async def __aenter__(self) -> Self:
        self._mesh.apply(FENCE)
        while True:
            self._fence = await self._client.profile(self._path).answered()
            if self._fence.ended is None:
                return self
            assert self._fence.ended is grpc.StatusCode.NOT_FOUND  # it is not absorbed yet

    async def __aexit__(self, *_: object) -> None:
        await self._fence.__aexit__(None, None, None)

    async def fence(self) -> None:
        """Write something, and wait until it is told."""
        self._up = not self._up
        self._mesh.apply({**FENCE, "opaque": "1" if self._up else ""})
        await self._fence.until(
            lambda it: bool(it.told) and it.told[-1].opaque_protocol is self._up
        )

    async def run(self, case: Case) -> None:
        self._mesh.apply(*case["objects"])
        for _ in range(CALM):
            await self.fence()
        for ask in case.get("asks", ()):
            await self._conversation(ask, [{"expect": ask["expect"]}])
        if "ask" in case:
            await self._conversation(case["ask"], case["steps"])

    async def _conversation(self, ask: dict[str, Any], steps: list[dict[str, Any]]) -> None:
        async with self._client.ask(ask["rpc"], ask["path"], ask.get("token", "")) as stream:
            step = Step(stream, NAMES)
            await stream.answered()
            for number, each in enumerate(steps):
                if number:
                    step = Step(stream, NAMES)
                    self._do(each["do"])
                await self._settle(stream, step, ask["rpc"], each["expect"], number)

    def _do(self, done: Any) -> None:  # noqa: ANN401 - YAML
        for verb, what in operations(done):
            getattr(self._mesh, verb)(*what)

    async def _settle(
        self, stream: Stream, step: Step, rpc: str, wanted: dict[str, Any], number: int
    ) -> None:
        if stream.ended is None and "end" not in wanted:
            for _ in range(CALM):
                await self.fence()
        faults: list[str] = []
        for _ in range(PATIENCE):
            faults = step.faults(rpc, wanted)
            if not faults:
                return
            await self.fence()
        raise AssertionError(f"step {number}: {'; '.join(faults)}\nwanted {wanted}")


# ------------------------------------------------------------------- through a real server


def flags(config: dict[str, Any], home: Path) -> list[str]:
    """The flags of a server that is configured so."""
    home.mkdir(parents=True, exist_ok=True)
    found = [
        f"--cluster-domain={config['cluster_domain']}",
        f"--trust-domain={TRUST}",
        f"--control-plane-namespace={MESH}",
        f"--default-opaque-ports={config['default_opaque_ports']}",
        f"--ipv6={str(config['ipv6']).lower()}",
        f"--zone-weights={str(config['zone_weights']).lower()}",
    ]
    mode = "transport-header" if config["force_opaque_transport"] else "transparent"
    found.append(f"--transport-mode={mode}")
    if config["meshed_http2"]:
        said = config["meshed_http2"]
        times = {name: {"seconds": said[name]} for name in ("interval", "timeout")}
        path = home / "http2.json"
        path.write_text(json.dumps({"keep_alive": {**times, "while_idle": said["while_idle"]}}))
        found.append(f"--meshed-http2-params={path}")
    return found


class Servers:
    """One server at a time: that of the configuration last asked for."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._config: dict[str, Any] | None = None
        self._open = ExitStack()
        self._running: tuple[str, MeshApi]
        self._numbers = count()

    def of(self, config: dict[str, Any]) -> tuple[str, MeshApi]:
        """Where the Destination service listens, and who writes objects."""
        if config != self._config:
            self.close()
            self._running = self._start(config)
            self._config = config
        return self._running

    def _start(self, config: dict[str, Any]) -> tuple[str, MeshApi]:
        home = self._home / str(next(self._numbers))
        process = ServerProcess(home, "--store", "memory:", *flags(config, home))
        server = self._open.enter_context(process)
        api = MeshApi(server, MESH)
        self._open.callback(api.close)
        return server.endpoints["destination"], api

    def close(self) -> None:
        self._open.close()
        self._config = None


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    """Asynchronous so that all tests share one loop: grpc keeps to the first that it meets."""
    made = Servers(tmp_path_factory.mktemp("destination"))
    yield made
    made.close()


@pytest.mark.parametrize("case", BY_API, ids=lambda case: case["case"])
async def test_through_the_api(case: Case, servers: Servers) -> None:
    at, api = servers.of(case["config"])
    try:
        async with asker(at) as client, Table(api, client, case["config"]) as table:
            await table.run(case)
    finally:
        api.clear(but="fence")


# -------------------------------------------------------------------- through tables


class Tables(World):
    """Tables, written directly, as a board."""

    def __init__(self, config: dict[str, Any]) -> None:
        ping = config["meshed_http2"]
        super().__init__(
            cluster_domain=config["cluster_domain"],
            default_opaque_ports=ports(config["default_opaque_ports"]),
            ipv6=config["ipv6"],
            zone_weights=config["zone_weights"],
            transport_header=config["force_opaque_transport"],
            meshed_http2=ping
            and Http2Params(ping["interval"] * 1000, ping["timeout"] * 1000, ping["while_idle"]),
        )

    @property
    def database(self) -> Database:
        return self.db

    @property
    def read(self) -> Read:
        return self.db.read

    def follow(self, told: Learn, query: Query[..., object], /, *key: object) -> Following:
        return Following(self.db, SystemClock(), told, query, *key)

    def touch(self, *names: str) -> None:
        """Rows are facts: an object that was written unchanged has the same."""


@asynccontextmanager
async def serving(tables: Tables) -> AsyncIterator[str]:
    services = {destination.NAME: destination.service()}
    server = GrpcServer(services, tables, clock=SystemClock(), random=Random(1), log=ListLog())
    port = server.bind("127.0.0.1", 0)
    task = asyncio.get_running_loop().create_task(server.run())
    try:
        yield f"127.0.0.1:{port}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("case", BY_TABLES, ids=lambda case: case["case"])
async def test_through_tables(case: Case, servers: Servers) -> None:
    servers.close()
    tables = Tables(case["config"])
    async with (
        serving(tables) as at,
        asker(at) as client,
        Table(tables, client, case["config"]) as table,
    ):
        await table.run(case)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case["case"] for case in ALL]
    assert len(set(names)) == len(names)
