"""The cases of `cases/inbound`, over real gRPC.

Most run against an `isthmus server` process, fed through its HTTPS API; those with `through:
memory` against the same services over tables that are written directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Protocol

import grpc
import pytest
import yaml

from isthmus.aio import SystemClock, deadline
from isthmus.app import policy
from isthmus.board import Following
from isthmus.engine import Database, Query
from isthmus.proto.linkerd import inbound_pb2 as pb
from isthmus.serve.linkerd import GrpcServer, Read
from isthmus.serve.linkerd.topics import Learn
from tests.support.compact import Compact
from tests.support.log import ListLog
from tests.support.meshapi import MeshApi, operations
from tests.support.meshworld import MESH, TRUST, World
from tests.support.server import PATIENCE, ServerProcess
from tests.support.serverwords import faults, shown

CASES = Path(__file__).parent / "cases" / "inbound"
SERVICE = "/io.linkerd.proxy.inbound.InboundServerPolicies"
CLUSTER = ("10.0.0.0/8", "fd00::/8")
CLOCK = SystemClock()
PAUSE = 0.02

Case = dict[str, Any]


def load() -> list[Case]:
    found: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        found += yaml.safe_load(file.read_text())  # noqa: TID251 - test data
    return found


ALL = load()


class Mesh(Protocol):
    """Where objects are written."""

    def apply(self, *objects: Compact) -> None: ...

    def delete(self, *names: str) -> None: ...


def spec(workload: str, port: int) -> bytes:
    return pb.PortSpec(workload=workload, port=port).SerializeToString()


class Client:
    """A proxy that asks."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._one: Any = channel.unary_unary(f"{SERVICE}/GetPort", None, pb.Server.FromString)
        self._all: Any = channel.unary_stream(f"{SERVICE}/WatchPort", None, pb.Server.FromString)

    async def get(self, workload: str, port: int) -> pb.Server | str:
        """The answer, or the name of a status."""
        try:
            found: pb.Server = await self._one(spec(workload, port), timeout=PATIENCE)
        except grpc.aio.AioRpcError as fault:
            return str(fault.code().name)
        return found

    @asynccontextmanager
    async def watch(self, workload: str, port: int) -> AsyncIterator[AsyncIterator[pb.Server]]:
        call = self._all(spec(workload, port))
        try:
            yield aiter(call)
        finally:
            call.cancel()


async def run(mesh: Mesh, client: Client, case: Case) -> None:
    mesh.apply(*case["objects"])
    await fence(mesh, client)
    for workload, port, wanted in case.get("asks", ()):
        if "code" in wanted:
            assert await client.get(workload, port) == wanted["code"], (workload, port)
        else:
            await agree(client, workload, port, wanted)
    if "watch" in case:
        await conversation(mesh, client, case)


FENCES = count()


async def fence(mesh: Mesh, client: Client) -> None:
    """Wait until all that was written is known: a pod that nobody asked for before is."""
    name = f"fence-{next(FENCES)}"
    mesh.apply({"pod": f"fence/{name}", "ip": "10.9.9.9", "meshed": True})
    async with deadline(CLOCK, PATIENCE, "the fence"):
        while await client.get(f"fence:{name}", 1) == "NOT_FOUND":
            await CLOCK.sleep(PAUSE)


async def agree(client: Client, workload: str, port: int, wanted: dict[str, Any]) -> None:
    """Both calls say what is wanted."""
    found = await client.get(workload, port)
    assert isinstance(found, pb.Server), found
    wrong = list(faults(shown(found, CLUSTER), wanted))
    assert not wrong, "\n".join(wrong)
    async with client.watch(workload, port) as told:
        assert await anext(told) == found


async def conversation(mesh: Mesh, client: Client, case: Case) -> None:
    workload, port = case["watch"]
    async with client.watch(workload, port) as told:
        for step in case["steps"]:
            for verb, what in operations(step.get("do", {})):
                getattr(mesh, verb)(*what)
            await settle(told, step["expect"])


async def settle(told: AsyncIterator[pb.Server], wanted: dict[str, Any]) -> None:
    wrong: list[str] = []
    try:
        async with deadline(CLOCK, PATIENCE, "what is wanted"):
            while True:
                wrong = list(faults(shown(await anext(told), CLUSTER), wanted))
                if not wrong:
                    return
    except TimeoutError as late:
        raise AssertionError("\n".join(wrong)) from late


# ------------------------------------------------------------------- through a real server


@pytest.fixture(scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[str, MeshApi]]:
    """Where policies are asked for, and who writes objects.

    Asynchronous so that all tests share one loop: grpc keeps to the first that it meets.
    """
    flags = [
        "--cluster-domain=mesh.test",
        f"--trust-domain={TRUST}",
        f"--control-plane-namespace={MESH}",
        f"--cluster-networks={','.join(CLUSTER)}",
    ]
    home = tmp_path_factory.mktemp("inbound")
    with ServerProcess(home, "--store", "memory:", *flags) as server:
        api = MeshApi(server, MESH)
        yield server.endpoints["policy"], api
        api.close()


def named(through: str) -> list[Any]:
    some = (case for case in ALL if case.get("through", "api") == through)
    return [pytest.param(case, id=case["case"]) for case in some]


@asynccontextmanager
async def connected(at: str) -> AsyncIterator[Client]:
    own = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(at, options=own) as channel:
        yield Client(channel)


@pytest.mark.parametrize("case", named("api"))
async def test_through_the_api(case: Case, running: tuple[str, MeshApi]) -> None:
    at, api = running
    try:
        async with connected(at) as client:
            await run(api, client, case)
    finally:
        api.clear()


# -------------------------------------------------------------------- through tables


class Tables(World):
    """Tables, written directly, as a board."""

    @property
    def database(self) -> Database:
        return self.db

    @property
    def read(self) -> Read:
        return self.db.read

    def follow(self, told: Learn, query: Query[..., object], /, *key: object) -> Following:
        return Following(self.db, SystemClock(), told, query, *key)


@pytest.mark.parametrize("case", named("memory"))
@pytest.mark.usefixtures("running")
async def test_through_tables(case: Case) -> None:
    tables = Tables(cluster_networks=CLUSTER)
    made = GrpcServer(
        policy.services(), tables, clock=SystemClock(), random=Random(1), log=ListLog()
    )
    at = f"127.0.0.1:{made.bind('127.0.0.1', 0)}"
    task = asyncio.get_running_loop().create_task(made.run())
    try:
        async with connected(at) as client:
            await run(tables, client, case)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case["case"] for case in ALL]
    assert len(set(names)) == len(names)
