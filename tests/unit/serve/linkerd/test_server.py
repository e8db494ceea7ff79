"""The shell, over real connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from isthmus.aio import SystemClock, breathe
from isthmus.errors import UserFault
from isthmus.serve.linkerd import GrpcServer
from tests.support.log import ListLog
from tests.unit.serve.linkerd.board import CALLS, SERVICE, Words, call

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module", autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """All tests of this module share a loop: grpc tells of ended calls a little later."""
    yield  # noqa: PT022 - an async fixture that ends at once holds no loop


class Running:
    """A server that serves, its board and a channel to it."""

    def __init__(self, words: Words, log: ListLog) -> None:
        self.words, self.log = words, log
        self.server = make(words, log)
        self.port = self.server.bind(LOOPBACK, 0)
        self.channel = self.connect()

    def connect(self, **options: int) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(
            f"{LOOPBACK}:{self.port}", [("grpc.use_local_subchannel_pool", 1), *options.items()]
        )

    def watch(self, what: bytes | str) -> Any:  # noqa: ANN401 - grpc's own
        text = what.encode() if isinstance(what, str) else what
        return call(self.channel)(text, timeout=30)


def make(words: Words, log: ListLog) -> GrpcServer:
    services = {SERVICE: CALLS}
    return GrpcServer(services, words, clock=SystemClock(), random=Random(1), log=log)


@asynccontextmanager
async def running() -> AsyncIterator[Running]:
    one = Running(Words(), ListLog())
    task = asyncio.get_running_loop().create_task(one.server.run())
    try:
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await one.channel.close()


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await breathe()


async def refused(answers: Any) -> tuple[str, str]:  # noqa: ANN401 - grpc's own
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answers.read()
    return caught.value.code().name, caught.value.details() or ""


async def test_a_stream_begins_with_what_is_true_and_follows_it() -> None:
    async with running() as one:
        one.words.put(a="x")
        answers = one.watch("a")
        assert await answers.read() == b"x"
        one.words.put(a="y", b="other")
        assert await answers.read() == b"y"
        one.words.put(a=None)
        assert await answers.read() == b""


async def test_counts_tell_what_happened() -> None:
    async with running() as one:
        answers = one.watch("a")
        await answers.read()
        assert one.server.streams.live == {"Watch": 1}
        await refused(one.watch("refuse NOT_FOUND gone"))
        answers.cancel()
        await until(lambda: not one.server.streams.live)
        assert one.server.streams.opened == {"Watch": 1}
        assert one.server.streams.messages == {"Watch": 1}
        assert one.server.streams.refused == {("Watch", "NOT_FOUND"): 1}


@pytest.mark.parametrize("status", ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"])
async def test_a_refusal_is_a_status_with_its_text(status: str) -> None:
    async with running() as one:
        assert await refused(one.watch(f"refuse {status} because of x")) == (status, "because of x")


async def test_errors_of_ours_are_mapped_by_what_they_say() -> None:
    async with running() as one:
        assert await refused(one.watch("later")) == ("UNAVAILABLE", "not now")
        assert await refused(one.watch("group")) == ("UNAVAILABLE", "not now")


async def test_long_and_odd_texts_fit_a_trailer() -> None:
    async with running() as one:
        _, text = await refused(one.watch("refuse NOT_FOUND a\nb\0" + "c" * 100_000))
        assert text.startswith("a b c")
        assert len(text) == 256


async def test_a_bug_is_a_number_to_the_client_and_a_traceback_to_us() -> None:
    async with running() as one:
        one.words.put(a="bug")
        code, text = await refused(one.watch("a"))
        assert code == "INTERNAL"
        assert "secret" not in text
        [event] = one.log.lines
        assert str(event.fields["id"]) in text
        assert isinstance(event.fields["exc_info"], LookupError)


async def test_a_query_that_begins_to_fail_leaves_clients_what_they_have() -> None:
    async with running() as one:
        one.words.put(a="x")
        answers = one.watch("a")
        assert await answers.read() == b"x"
        one.words.put(a="bug")
        one.words.put(a="y")
        assert await answers.read() == b"y"


async def test_a_request_that_is_too_large_ends_alone() -> None:
    async with running() as one:
        other = one.watch("a")
        await other.read()
        assert (await refused(one.watch(b"x" * (3 << 20))))[0] == "RESOURCE_EXHAUSTED"
        one.words.put(a="x")
        assert await other.read() == b"x"


async def test_a_method_that_is_not_served() -> None:
    async with running() as one:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(one.channel, "Nothing")(b"").read()
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_deadline_of_the_client_ends_its_stream() -> None:
    async with running() as one:
        answers = call(one.channel)(b"a", timeout=0.3)
        await answers.read()
        assert (await refused(answers))[0] == "DEADLINE_EXCEEDED"
        await until(lambda: not one.server.streams.live)


async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    async with running() as one:
        before = one.words.database.stats.cells
        for _ in range(20):
            answers = one.watch("a")
            await answers.read()
            answers.cancel()
        await until(lambda: not one.server.streams.live)
        assert one.words.database.stats.cells <= before + 1  # one is kept for who asks next


async def test_a_client_that_does_not_read_holds_nobody_and_finds_the_newest() -> None:
    """Its window is full after a few messages; from then on it costs one value."""
    async with running() as one:
        narrow = one.connect(**{"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 65_535})
        slow = call(narrow)(b"a", timeout=30)
        quick = one.watch("a")
        assert await slow.read() == b""
        assert await quick.read() == b""
        text = ""
        for number in range(200):
            text = f"{number:03}" + "." * 20_000
            one.words.put(a=text)
            assert await quick.read() == text.encode()
        got = [await slow.read()]
        while got[-1] != text.encode():
            got.append(await slow.read())
        await narrow.close()
        assert len(got) < 20


async def test_when_the_server_stops_streams_end_with_ok() -> None:
    one = Running(Words(), ListLog())
    task = asyncio.get_running_loop().create_task(one.server.run())
    answers = [one.watch("a") for _ in range(30)]
    for each in answers:
        assert await each.read() == b""
    task.cancel()
    for each in answers:
        assert await each.read() is grpc.aio.EOF
        assert await each.code() is grpc.StatusCode.OK
    await asyncio.gather(task, return_exceptions=True)
    await one.channel.close()


async def test_a_stream_that_is_stuck_is_cut_when_the_server_stops() -> None:
    one = Running(Words(), ListLog())
    task = asyncio.get_running_loop().create_task(one.server.run())
    answers = one.watch("a")
    assert await answers.read() == b""
    one.words.put(a="." * 500_000)
    await until(lambda: one.server.streams.messages["Watch"] == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not one.server.streams.live
    await one.channel.close()


async def test_health_and_reflection_are_served() -> None:
    async with running() as one:
        health = health_pb2_grpc.HealthStub(one.channel)
        for name in ("", SERVICE):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(one.channel)
        asked = [reflection_pb2.ServerReflectionRequest(list_services="")]
        [answer] = [each async for each in reflection.ServerReflectionInfo(iter(asked))]
        listed = {each.name for each in answer.list_services_response.service}
        assert {SERVICE, "grpc.health.v1.Health"} < listed


async def test_a_taken_port_is_told() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        server = make(Words(), ListLog())
        with pytest.raises(UserFault, match="cannot be used"):
            server.bind(LOOPBACK, other.getsockname()[1])
        await server.close()


async def test_two_servers_do_not_share_a_port() -> None:
    async with running() as one:
        server = make(Words(), ListLog())
        with pytest.raises(UserFault, match="cannot be used"):
            server.bind(LOOPBACK, one.port)
        await server.close()
