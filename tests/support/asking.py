"""A client of the Destination service, and what it was told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import grpc

from isthmus.proto.linkerd import destination_pb2 as pb

SERVICE = "/io.linkerd.proxy.destination.Destination"
PATIENCE = 30.0
"""Seconds that an answer may take on a busy machine."""

Answer = pb.Update | pb.DestinationProfile
ANSWERS: dict[str, Callable[[bytes], Answer]] = {
    "Get": pb.Update.FromString,
    "GetProfile": pb.DestinationProfile.FromString,
}


def request(path: str, token: object = "") -> bytes:
    """A GetDestination as a proxy sends it; a token that is no text is written as injectors do."""
    text = token if isinstance(token, str) else json.dumps(token) + "\n"
    return pb.GetDestination(path=path, context_token=text).SerializeToString()


class Stream:
    """One open call: everything it was told, in order, and how it ended."""

    def __init__(self, channel: grpc.aio.Channel, rpc: str, body: bytes) -> None:
        ask: Any = channel.unary_stream(f"{SERVICE}/{rpc}", None, ANSWERS[rpc])
        self._call = ask(body)
        self._something = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._read())
        self.told: list[Any] = []
        self.ended: grpc.StatusCode | None = None
        self.text = ""

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                self.told.append(answer)
                self._something.set()
            self.ended = grpc.StatusCode.OK
        except grpc.aio.AioRpcError as fault:
            self.ended, self.text = fault.code(), fault.details() or ""
        self._something.set()

    async def until(self, true: Callable[[Stream], bool]) -> Self:
        """Wait for something; fails when the call ends without it."""
        async with asyncio.timeout(PATIENCE):  # noqa: TID251 - a real server's time
            while not true(self):
                assert self.ended is None, f"{self.ended}: {self.text}; told {self.told}"
                self._something.clear()
                await self._something.wait()
        return self

    async def answered(self) -> Self:
        """Wait for a first answer, or the end."""
        return await self.until(lambda it: bool(it.told) or it.ended is not None)

    async def end(self) -> Self:
        """Wait for the end."""
        return await self.until(lambda it: it.ended is not None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Asker:
    """One connection."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    def ask(self, rpc: str, path: str, token: object = "") -> Stream:
        return Stream(self.channel, rpc, request(path, token))

    def get(self, path: str, token: object = "") -> Stream:
        return self.ask("Get", path, token)

    def profile(self, path: str, token: object = "") -> Stream:
        return self.ask("GetProfile", path, token)


@asynccontextmanager
async def asker(at: str, **options: int) -> AsyncIterator[Asker]:
    """A connection of its own to the server at `host:port`."""
    own = [("grpc.use_local_subchannel_pool", 1), *options.items()]
    async with grpc.aio.insecure_channel(at, options=own) as channel:
        yield Asker(channel)
