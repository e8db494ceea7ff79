"""What clients are told of a port, over real gRPC: `OutboundPolicies` of linkerd2-proxy's API.

The cases are those of `tests/unit/mesh/cases/outbound.yaml` and of `cases/outbound`. Most run
against an `isthmus server` process, fed through its HTTPS API; those with dates of objects, or
with what an API would not take (`through: memory`), against the same service over tables that are
written directly. Every first ask keeps a Watch open, which must be led to what later asks want.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Protocol

import grpc
import pytest
import yaml

from isthmus.aio import SystemClock, deadline
from isthmus.app import policy
from isthmus.proto.linkerd import net_pb2
from isthmus.proto.linkerd import outbound_pb2 as pb
from isthmus.serve.linkerd import GrpcServer
from tests.interop.test_inbound_cases import Tables
from tests.support import policywords
from tests.support.compact import Compact
from tests.support.log import ListLog
from tests.support.meshapi import MeshApi
from tests.support.meshworld import DOMAIN, MESH, TRUST
from tests.support.outbound_words import differences
from tests.support.server import PATIENCE, ServerProcess

TESTS = Path(__file__).parents[1]
FILES = (TESTS / "unit/mesh/cases/outbound.yaml", TESTS / "interop/cases/outbound/wire.yaml")
SERVICE = "/io.linkerd.proxy.outbound.OutboundPolicies"
INSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")
CLOCK = SystemClock()
PAUSE = 0.02

NOT_BY_API = frozenset(
    {
        "addresses-that-are-nobodys",
        "backends-that-cannot-be",
        "calls-names-and-bytes-to-a-network",
    }
)
"""What an API refuses: addresses of a family that it has not, backends left out or portless."""

Case = dict[str, Any]
Ask = Mapping[str, Any]
"""`by` (a namespace) or `workload`, then `to`, `name` or `raw`; then `is` or `code`."""


def load() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for file in FILES:
        some = yaml.safe_load(file.read_text())  # noqa: TID251 - test data
        assert not found.keys() & some.keys()
        found |= some
    return found


ALL = load()


def by_api(name: str) -> bool:
    """Whether an API takes the objects of a case and gives them the dates that they need."""
    return name not in NOT_BY_API and "created" not in str(ALL[name]["objects"])


class Mesh(Protocol):
    """Where objects are written."""

    def apply(self, *objects: Compact) -> None: ...

    def delete(self, *names: str) -> None: ...


def spec(ask: Ask) -> pb.TrafficSpec:
    workload = ask.get("workload", f"{ask.get('by', 'mill')}:a")
    if "raw" in ask:
        return pb.TrafficSpec(source_workload=workload, **ask["raw"])
    if "name" in ask:
        return pb.TrafficSpec(source_workload=workload, authority=ask["name"])
    ip, port = dialled(ask)
    address = ip_address(ip)
    high, low = divmod(int(address), 1 << 64)
    wire = net_pb2.IPAddress(ipv6=net_pb2.IPv6(first=high, last=low))
    if address.version == 4:
        wire = net_pb2.IPAddress(ipv4=int(address))
    to = net_pb2.TcpAddress(ip=wire, port=port)
    return pb.TrafficSpec(source_workload=workload, addr=to)


def dialled(ask: Ask) -> tuple[str, int]:
    host, _, port = ask["to"].rpartition(":")
    return host.strip("[]"), int(port)


class Client:
    """A proxy that asks, and its Watches."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        answer = pb.OutboundPolicy.FromString
        self._one: Any = channel.unary_unary(f"{SERVICE}/Get", None, answer)
        self._all: Any = channel.unary_stream(f"{SERVICE}/Watch", None, answer)
        self._open: dict[bytes, Any] = {}
        self._last: dict[bytes, pb.OutboundPolicy] = {}

    async def get(self, said: pb.TrafficSpec) -> pb.OutboundPolicy | str:
        """The answer, or the name of a status."""
        try:
            found: pb.OutboundPolicy = await self._one(said.SerializeToString(), timeout=PATIENCE)
        except grpc.aio.AioRpcError as fault:
            return str(fault.code().name)
        return found

    async def told(self, said: pb.TrafficSpec) -> pb.OutboundPolicy:
        """What a Watch, which is opened once, was told last."""
        key = said.SerializeToString()
        if key not in self._open:
            self._open[key] = self._all(key)
            await self.more(said)
        return self._last[key]

    async def more(self, said: pb.TrafficSpec) -> None:
        """Wait for the next message of a Watch."""
        key = said.SerializeToString()
        self._last[key] = await anext(aiter(self._open[key]))

    def close(self) -> None:
        for each in self._open.values():
            each.cancel()


async def run(mesh: Mesh, client: Client, case: Case) -> None:
    mesh.apply(*case["objects"])
    await fence(mesh, client)
    for ask in case["asks"]:
        await check(client, ask)
    for step in case.get("then", ()):
        mesh.apply(*step.get("apply", ()))
        mesh.delete(*step.get("delete", ()))
        for ask in step["asks"]:
            await settle(client, ask)


FENCES = count(1)


async def fence(mesh: Mesh, client: Client) -> None:
    """Wait until all that was written is known: a Service that nobody asked for before is."""
    number = next(FENCES)
    ip = f"10.96.200.{number}"
    mesh.apply({"svc": f"fence/fence-{number}", "ip": ip, "ports": [1]})
    async with deadline(CLOCK, PATIENCE, "the fence"):
        while not _of_service(await client.get(spec({"to": f"{ip}:1"}))):
            await CLOCK.sleep(PAUSE)


def _of_service(found: pb.OutboundPolicy | str) -> bool:
    """Networks may claim any address, but a Service's."""
    return isinstance(found, pb.OutboundPolicy) and found.metadata.resource.kind == "Service"


def wrong(ask: Ask, found: pb.OutboundPolicy) -> list[str]:
    at = dialled(ask) if "to" in ask else None
    return differences(ask["is"], policywords.policy(found, at), ask.get("to", ask.get("name")))


async def check(client: Client, ask: Ask) -> None:
    """Both calls say what is wanted, or refuse as is wanted."""
    refused = "NOT_FOUND" if ask.get("is") == "nothing" else ask.get("code")
    found = await client.get(spec(ask))
    if refused is not None:
        assert found == refused, ask
        return
    assert isinstance(found, pb.OutboundPolicy), (ask, found)
    faults = wrong(ask, found)
    assert not faults, "\n".join(faults)
    assert await client.told(spec(ask)) == found


async def settle(client: Client, ask: Ask) -> None:
    """The Watch is led there, and a new question is answered so."""
    faults: list[str] = []
    try:
        async with deadline(CLOCK, PATIENCE, "what is wanted"):
            while True:
                found = await client.told(spec(ask))
                faults = wrong(ask, found)
                if not faults and await client.get(spec(ask)) == found:
                    return
                await client.more(spec(ask))
    except TimeoutError as late:
        raise AssertionError("\n".join(faults)) from late


# ------------------------------------------------------------------- through a real server


@pytest.fixture(scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[str, MeshApi]]:
    """Where policies are asked for, and who writes objects.

    Asynchronous so that all tests share one loop: grpc keeps to the first that it meets.
    """
    flags = [
        f"--cluster-domain={DOMAIN}",
        f"--trust-domain={TRUST}",
        f"--control-plane-namespace={MESH}",
        f"--cluster-networks={','.join(INSIDE)}",
        "--default-opaque-ports=25,587,3306,4444,5432,6379,9300,11211",
    ]
    home = tmp_path_factory.mktemp("outbound")
    with ServerProcess(home, "--store", "memory:", *flags) as server:
        api = MeshApi(server, MESH)
        yield server.endpoints["policy"], api
        api.close()


@asynccontextmanager
async def asking(at: str) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(connected_channel(at))
        client = Client(channel)
        stack.callback(client.close)
        yield client


@asynccontextmanager
async def connected_channel(at: str) -> AsyncIterator[grpc.aio.Channel]:
    own = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(at, options=own) as channel:
        yield channel


@pytest.mark.parametrize("name", [each for each in ALL if by_api(each)])
async def test_through_the_api(name: str, running: tuple[str, MeshApi]) -> None:
    at, api = running
    try:
        async with asking(at) as client:
            await run(api, client, ALL[name])
    finally:
        api.clear()


# -------------------------------------------------------------------- through tables


@pytest.mark.parametrize("name", [each for each in ALL if not by_api(each)])
@pytest.mark.usefixtures("running")
async def test_through_tables(name: str) -> None:
    tables = Tables(cluster_networks=INSIDE)
    made = GrpcServer(
        policy.services(), tables, clock=SystemClock(), random=Random(1), log=ListLog()
    )
    at = f"127.0.0.1:{made.bind('127.0.0.1', 0)}"
    task = asyncio.get_running_loop().create_task(made.run())
    try:
        async with asking(at) as client:
            await run(tables, client, ALL[name])
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
