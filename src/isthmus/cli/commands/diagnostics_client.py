"""A client of the Destination service: asks as linkerd2-proxy does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

import click
import grpc

from isthmus.aio import Clock, SystemClock
from isthmus.errors import IsthmusError
from isthmus.proto.linkerd import destination_pb2 as pb

M = TypeVar("M", pb.Update, pb.DestinationProfile)
T = TypeVar("T")

SERVICE = "/io.linkerd.proxy.destination.Destination"
AGAIN = 1.0
"""Seconds before a stream that ended is asked for again."""
FINAL = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION})
"""Asking again would not help."""

_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 16 << 20))


class ApiError(Exception):
    """The server's refusal."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def whole(self) -> str:
        """With its code, as Go programs write it."""
        return f"rpc error: code = {go_name(self.code)} desc = {self.text}"


def go_name(code: grpc.StatusCode) -> str:
    """`InvalidArgument` for INVALID_ARGUMENT."""
    if code is grpc.StatusCode.CANCELLED:
        return "Canceled"
    return "OK" if code is grpc.StatusCode.OK else code.name.title().replace("_", "")


class Client:
    """One connection."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._token = token

    async def get(self, path: str, seconds: float | None = None) -> AsyncIterator[pb.Update]:
        """The updates of one Get, until its end or for so many seconds."""
        async for update in self._ask("Get", "http:", path, pb.Update.FromString, seconds):
            yield update

    async def profile(
        self, path: str, seconds: float | None = None
    ) -> AsyncIterator[pb.DestinationProfile]:
        """The answers of one GetProfile."""
        read = pb.DestinationProfile.FromString
        async for answer in self._ask("GetProfile", "", path, read, seconds):
            yield answer

    async def _ask(
        self, name: str, scheme: str, path: str, read: Callable[[bytes], M], seconds: float | None
    ) -> AsyncIterator[M]:
        request = pb.GetDestination(scheme=scheme, path=path, context_token=self._token)
        call = self._channel.unary_stream(
            f"{SERVICE}/{name}",
            request_serializer=pb.GetDestination.SerializeToString,
            response_deserializer=read,
        )
        try:
            async for answer in call(request, timeout=seconds):
                yield answer
        except grpc.aio.AioRpcError as fault:
            if seconds is None or fault.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise ApiError(fault.code(), fault.details() or "") from None


@asynccontextmanager
async def connected(at: str, token: str) -> AsyncIterator[Client]:
    """A client of the server at `host:port`."""
    async with grpc.aio.insecure_channel(at, options=_OPTIONS) as channel:
        yield Client(channel, token)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work; the first error of a group is the error."""
    try:
        return asyncio.run(work)
    except* ApiError as group:
        fault = _first(group)
    raise fault


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def fail(text: str) -> NoReturn:
    """Say it as linkerd does; exit code 1."""
    click.echo(f"Destination API error: {text}", err=True)
    raise SystemExit(1)


async def follow(
    where: Callable[[], str],
    token: str,
    ask: Callable[[Client], AsyncIterator[M]],
    show: Callable[[M], None],
    *,
    clock: Clock | None = None,
) -> None:
    """Show every answer, and ask again whenever the stream ends: the server may have restarted.

    A refusal of the first question is raised, and one that is final at any time.
    """
    clock, asked = clock or SystemClock(), False
    while True:
        why = "the server ended the stream"
        try:
            async with connected(where(), token) as client:
                async for answer in ask(client):
                    asked = True
                    show(answer)
        except ApiError as fault:
            if not asked or fault.code in FINAL:
                raise
            why = fault.text
        except IsthmusError as fault:
            if not asked:
                raise
            why = fault.message
        click.echo(f"{why}; asking again", err=True)
        await clock.sleep(AGAIN)
