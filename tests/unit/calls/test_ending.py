"""How calls end, as a client of a real server sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from isthmus.calls import Context, Refused, bind, guarded, shorten
from isthmus.errors import NotFound, UserFault
from tests.support.log import ListLog


@asynccontextmanager
async def failing(fault: Exception, log: ListLog) -> AsyncIterator[int]:
    """A server whose one call ends with `fault`; the port."""

    async def handle(_request: bytes, _context: Context) -> bytes:
        raise fault

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        guarded(handle, log)
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", {"Fail": handler}),))
    port = bind(server, "127.0.0.1", 0)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def told(fault: Exception, log: ListLog) -> tuple[str, str | None]:
    async with (
        failing(fault, log) as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/s/Fail")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"", timeout=30)
    return caught.value.code().name, caught.value.details()


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        (Refused("RESOURCE_EXHAUSTED", "too many"), "RESOURCE_EXHAUSTED", "too many"),
        (NotFound("no such Service"), "NOT_FOUND", "no such Service"),
        (
            ExceptionGroup("both", [NotFound("one"), Refused("UNAVAILABLE", "two")]),
            "NOT_FOUND",
            "one",
        ),
        (Refused("UNAVAILABLE", "two\nlines"), "UNAVAILABLE", "two lines"),
    ],
    ids=["refused", "one of the tree", "a group of such", "more than a line"],
)
async def test_what_was_foreseen_is_told(fault: Exception, status: str, text: str) -> None:
    log = ListLog()
    assert await told(fault, log) == (status, text)
    assert log.lines == []


@pytest.mark.parametrize(
    "fault",
    [ValueError("a secret"), ExceptionGroup("both", [NotFound("one"), ValueError("a secret")])],
    ids=["alone", "in a group"],
)
async def test_a_bug_is_logged_and_told_as_a_number(fault: Exception) -> None:
    log = ListLog()
    status, text = await told(fault, log)
    (line,) = log.lines
    assert (status, text) == ("INTERNAL", f"internal error {line.fields['id']}")
    assert line.fields["exc_info"] is fault


def test_a_long_text_is_cut() -> None:
    assert shorten("x" * 300) == "x" * 253 + "..."
    assert shorten("x" * 256) == "x" * 256


async def test_an_address_that_is_taken() -> None:
    options = [("grpc.so_reuseport", 0)]
    first, second = grpc.aio.server(options=options), grpc.aio.server(options=options)
    port = bind(first, "127.0.0.1", 0)
    with pytest.raises(UserFault, match=f"the address 127.0.0.1:{port} cannot be used"):
        bind(second, "127.0.0.1", port)
    for server in (first, second):
        await server.stop(None)
