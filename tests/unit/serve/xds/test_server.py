"""The shell, over real connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from isthmus.aio import Clock, ManualClock, SystemClock, breathe
from isthmus.errors import UserFault
from isthmus.serve.xds import Leaf, Limits, XdsServer
from isthmus.serve.xds.machine import PATIENCE
from isthmus.serve.xds.machine.types import CLUSTER as CDS
from isthmus.serve.xds.machine.types import ENDPOINTS as EDS
from isthmus.serve.xds.machine.types import LISTENER as LDS
from isthmus.serve.xds.streams import FIRST, LIMITS
from tests.support.log import ListLog
from tests.support.tls import self_signed
from tests.support.xds import Caller, Mesh, admit, told

LOOPBACK = "127.0.0.1"
OPTIONS = (("grpc.use_local_subchannel_pool", 1),)
Status = grpc.StatusCode


@pytest.fixture(scope="module", autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """One loop for all tests: gRPC tells some of its ends late, and to the loop they began on."""
    yield
    for _ in range(100):
        await breathe()


class Running:
    """A server that serves, its board and a channel to it."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.mesh, self.log = Mesh(), ListLog()
        self.server = XdsServer(
            self.mesh, admit, clock=clock, random=Random(1), log=self.log, limits=limits
        )
        self.port = self.server.bind(LOOPBACK, 0)
        self.channel = self.connect()

    def connect(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"{LOOPBACK}:{self.port}", OPTIONS)

    def caller(self, node: str = "proxy", **how: bool) -> Caller:
        return Caller(self.channel, node=node, **how)


@asynccontextmanager
async def running(limits: Limits = LIMITS, clock: Clock | None = None) -> AsyncIterator[Running]:
    one = Running(limits, clock or SystemClock())
    task = asyncio.get_running_loop().create_task(one.server.run())
    try:
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await one.channel.close()


async def until(what: Callable[[], object]) -> None:
    """Let others run until it holds; the test's own time limit ends a wait in vain."""
    while not what():
        await breathe()


async def end_of(caller: Caller) -> tuple[Any, str]:
    return await caller.call.code(), await caller.call.details()


async def test_a_delta_stream_is_told_what_is_true_and_what_changes() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a")
        caller = one.caller()
        await caller.ask(CDS)
        first = await caller.read()
        assert told(first) == {"a": "1"}
        await caller.ack(first)
        one.mesh.put(CDS, "a", "2").put(CDS, "b")
        second = await caller.read()
        assert told(second) == {"a": "2", "b": "1"}
        await caller.ack(second)
        one.mesh.change(gone=((CDS, "a"),))
        assert list((await caller.read()).removed_resources) == ["a"]


async def test_a_state_of_the_world_stream_likewise() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a")
        caller = one.caller(sotw=True)
        await caller.ask(CDS)
        first = await caller.read()
        assert [each.value for each in first.resources] == [b"a=1"]
        await caller.ack(first)
        one.mesh.put(CDS, "b")
        assert [each.value for each in (await caller.read()).resources] == [b"a=1", b"b=1"]


async def test_a_proxy_of_which_nothing_is_known_waits_until_something_is() -> None:
    async with running() as one:
        caller = one.caller()
        await caller.ask(CDS)
        await until(lambda: len(one.server.streams) == 1)
        [report] = one.server.streams.report().proxies
        assert report.scope == ()
        one.mesh.put(CDS, "a")
        assert told(await caller.read()) == {"a": "1"}


async def test_a_resource_whose_query_fails_is_left_alone_and_others_are_told() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a").put(CDS, "b", "bug")
        caller = one.caller()
        await caller.ask(CDS, initial_resource_versions={"b": "0"})
        first = await caller.read()
        assert (told(first), list(first.removed_resources)) == ({"a": "1"}, [])
        await caller.ack(first)
        # Another that needs nothing but what fails is not kept waiting either.
        other = one.caller("other")
        await other.ask(EDS, resource_names_subscribe=["nothing"])
        assert told(await other.read()) == {"nothing": "absent"}
        one.mesh.put(CDS, "b")
        assert told(await caller.read()) == {"b": "1"}


async def test_cells_are_shared_and_let_go() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a").put(CDS, "b")
        callers = [one.caller(f"p{number}") for number in range(3)]
        for caller in callers:
            await caller.ask(CDS)
            await caller.read()
        hub = one.server.streams.hub
        assert len(hub) == 3  # two clusters and a view
        one.mesh.change(gone=((CDS, "a"),))
        await until(lambda: len(hub) == 2)
        for caller in callers:
            caller.call.cancel()
        await until(lambda: len(one.server.streams) == 0)
        assert len(hub) == 0


async def test_rejections_are_logged_published_and_reported() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a")
        caller = one.caller("pod.ns")
        await caller.ask(CDS)
        await caller.ack(await caller.read(), error="port is odd")
        with one.server.streams.nacked.watch() as watch:
            while not (nacked := await watch.next()):
                pass
        assert [(each.proxy, each.name, each.version, each.message) for each in nacked] == [
            ("pod.ns", "a", "1", "port is odd")
        ]
        assert nacked[0].origin == "o"
        [line] = [line for line in one.log.lines if line.event == "resource rejected"]
        assert (line.fields["resource"], line.fields["message"]) == ("a", "port is odd")
        [report] = one.server.streams.report().proxies
        assert (report.proxy, report.node, report.agent) == ("pod.ns", "pod.ns", "test")
        [clusters] = report.types
        assert (clusters.type, clusters.error) == ("Cluster", "port is odd")
        assert [each.name for each in clusters.rejected] == ["a"]
        assert one.server.streams.rejections == {CDS: 1}
        caller.call.cancel()
        await until(lambda: one.server.streams.nacked.value == ())


async def test_a_rejection_is_withdrawn_when_the_new_content_is_accepted() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a")
        caller = one.caller()
        await caller.ask(CDS)
        await caller.ack(await caller.read(), error="no")
        await until(lambda: one.server.streams.nacked.value)
        one.mesh.put(CDS, "a", "2")
        await caller.ack(await caller.read())
        await until(lambda: not one.server.streams.nacked.value)


async def test_who_is_behind_is_known() -> None:
    async with running() as one:
        one.mesh.put(EDS, "a")
        caller = one.caller()
        await caller.ask(EDS, resource_names_subscribe=["a"])
        response = await caller.read()
        assert one.server.streams.behind(EDS, "a") == ("proxy",)
        await caller.ack(response)
        await until(lambda: not one.server.streams.behind(EDS, "a"))


async def test_a_refused_proxy_is_told_why() -> None:
    async with running() as one:
        caller = one.caller("evil")
        await caller.ask(CDS)
        assert await end_of(caller) == (Status.PERMISSION_DENIED, "evil is not let in")
        assert one.server.streams.refused == {"PERMISSION_DENIED": 1}
        assert len(one.server.streams) == 0


async def test_what_is_no_request_ends_its_stream_alone() -> None:
    async with running() as one:
        one.mesh.put(CDS, "a")
        good, bad, nameless = one.caller("good"), one.caller("bad"), one.caller("")
        await good.ask(CDS)
        first = await good.read()
        await bad.ask(CDS)
        await bad.read()
        await bad.call.write(b"\xff\xff\xff")
        code, text = await end_of(bad)
        assert (code, text) == (Status.INVALID_ARGUMENT, "bytes that are no DeltaDiscoveryRequest")
        await nameless.ask(CDS)
        assert (await end_of(nameless))[0] is Status.INVALID_ARGUMENT
        await good.ack(first)
        one.mesh.put(CDS, "a", "2")
        assert told(await good.read()) == {"a": "2"}


async def test_who_leaves_before_a_word_is_no_error() -> None:
    async with running() as one:
        caller = one.caller()
        await caller.call.done_writing()
        assert (await end_of(caller))[0] is Status.OK
        assert one.log.events() == []


async def test_who_says_nothing_is_sent_away() -> None:
    clock = ManualClock()
    async with running(clock=clock) as one:
        caller = one.caller()
        await caller.call.wait_for_connection()
        await until(lambda: clock.waiting)
        clock.advance(FIRST)
        assert (await end_of(caller))[0] is Status.DEADLINE_EXCEEDED


async def test_who_does_not_answer_is_sent_away() -> None:
    clock = ManualClock()
    async with running(clock=clock) as one:
        one.mesh.put(CDS, "a")
        caller = one.caller()
        await caller.ask(CDS)
        await caller.read()
        await until(lambda: one.server.streams.messages and clock.waiting == 1)
        clock.advance(PATIENCE)
        code, text = await end_of(caller)
        assert (code, text) == (Status.DEADLINE_EXCEEDED, f"no answer to a response with {CDS}")


async def test_a_proxy_that_does_not_read_costs_one_value_and_stops_nobody() -> None:
    # linkerd2 11480, consul 11924
    async with running() as one:
        one.mesh.put(EDS, "a")
        slow, quick = one.caller("slow"), one.caller("quick")
        for caller in (slow, quick):
            await caller.ask(EDS, resource_names_subscribe=["a"])
        response = await quick.read()
        await quick.ack(response)
        for version in range(2, 102):
            one.mesh.put(EDS, "a", str(version))
            await quick.ack(await quick.read())
        await slow.ack(await slow.read())
        assert told(await slow.read()) == {"a": "101"}


@pytest.mark.parametrize(
    ("limits", "nodes"),
    [
        (Limits(streams=2), ("a", "b", "c")),
        (Limits(per_peer=2), ("a", "b", "c")),
        (Limits(per_proxy=2), ("a", "a", "a")),
    ],
)
async def test_there_are_limits(limits: Limits, nodes: tuple[str, ...]) -> None:
    # consul 15753: whatever kind they are of, all streams count, and leave room when they end.
    async with running(limits) as one:
        one.mesh.put(CDS, "x")
        *callers, last = [one.caller(node) for node in nodes]
        for caller in callers:
            await caller.ask(CDS)
            await caller.read()
        await last.ask(CDS)
        assert (await end_of(last))[0] is Status.RESOURCE_EXHAUSTED
        callers[0].call.cancel()
        await until(lambda: len(one.server.streams) == 1)
        again = one.caller(nodes[0])
        await again.ask(CDS)
        await again.read()


async def test_a_fault_of_ours_is_told_as_a_number() -> None:
    async with running() as one:
        one.server.streams.admit = lambda _peer, _node: 1 // 0  # type: ignore[assignment,return-value]
        caller = one.caller()
        await caller.ask(CDS)
        code, text = await end_of(caller)
        assert code is Status.INTERNAL
        [line] = [line for line in one.log.lines if line.event == "internal error"]
        assert text == f"internal error {line.fields['id']}"


async def test_the_end_ends_streams_with_ok_and_refuses_new_ones() -> None:
    one = Running(LIMITS, SystemClock())
    task = asyncio.get_running_loop().create_task(one.server.run())
    one.mesh.put(CDS, "a")
    caller = one.caller()
    await caller.ask(CDS)
    await caller.read()
    late = one.caller("late")
    await late.call.wait_for_connection()
    await until(lambda: one.server.streams.arrived == 2)
    task.cancel()
    await until(lambda: one.server.streams.closing)
    await late.ask(CDS)
    assert (await end_of(caller))[0] is Status.OK
    assert (await end_of(late))[0] is Status.UNAVAILABLE
    await asyncio.gather(task, return_exceptions=True)
    await one.channel.close()


async def test_it_says_that_it_is_healthy() -> None:
    async with running() as one:
        name = "envoy.service.discovery.v3.AggregatedDiscoveryService"
        stub = health_pb2_grpc.HealthStub(one.channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=name), wait_for_ready=True)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_taken_port_and_a_bad_path_are_told(tmp_path: Path) -> None:
    server = Running(LIMITS, SystemClock()).server
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserFault, match=f"127.0.0.1:{port} cannot be used"):
            server.bind(LOOPBACK, port)
    with pytest.raises(UserFault, match="cannot be used"):
        server.bind_unix(tmp_path / "no" / "such" / "folder")
    await server.close()


async def test_a_unix_socket_is_served(tmp_path: Path) -> None:
    path = tmp_path / "ads.sock"
    one = Running(LIMITS, SystemClock())
    one.server.bind_unix(path)
    task = asyncio.get_running_loop().create_task(one.server.run())
    one.mesh.put(CDS, "a")
    async with grpc.aio.insecure_channel(f"unix:{path}", OPTIONS) as channel:
        caller = Caller(channel)
        await caller.ask(CDS)
        assert told(await caller.read()) == {"a": "1"}
        [report] = one.server.streams.report().proxies
        assert (report.peer, report.identities) == ("unix:", ())
        caller.call.cancel()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await one.channel.close()


async def test_mutual_tls_tells_identities_and_renewed_certificates_count(tmp_path: Path) -> None:
    leaves: list[Leaf] = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        cert, key = self_signed(folder, "server.test", f"leaf-{number}")
        leaves.append(Leaf(key.read_bytes(), cert.read_bytes(), b""))
    roots = leaves[0].chain + leaves[1].chain
    leaves = [leaf._replace(roots=roots) for leaf in leaves]
    held = [leaves[0]]
    one = Running(LIMITS, SystemClock())
    port = one.server.bind(LOOPBACK, 0, lambda: held[0])
    task = asyncio.get_running_loop().create_task(one.server.run())
    one.mesh.put(CDS, "a")
    for now in (leaves[0], leaves[1], leaves[1]):
        held[0] = now
        credentials = grpc.ssl_channel_credentials(now.chain, leaves[0].key, leaves[0].chain)
        options = (*OPTIONS, ("grpc.ssl_target_name_override", "server.test"))
        async with grpc.aio.secure_channel(f"{LOOPBACK}:{port}", credentials, options) as channel:
            caller = Caller(channel)
            await caller.ask(LDS)
            await caller.ask(CDS)
            await caller.read()
            [report] = one.server.streams.report().proxies
            assert report.identities == ("server.test", "leaf-0")
            caller.call.cancel()
        await until(lambda: len(one.server.streams) == 0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await one.channel.close()
