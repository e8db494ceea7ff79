"""The Destination service: what a change costs that clients are told, against bare grpc.aio.

1,000 Get and 1,000 GetProfile streams on 1,000 connections over 200 Services; one endpoint of one
Service comes and goes 1,000 times, each time when the clients have heard of the last. The bare
server sends as many messages of the same average size to as many streams when it is told to. Each
server runs in a process of its own (`bench._destination_server`); this one is the clients.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench._destination_server import SERVICES
from bench._http2 import Call, Connection
from bench.table import Figure
from isthmus.proto.linkerd import destination_pb2 as pb

CONNECTIONS = 1_000
FLIPS = 1_000
STORM = 4_000
PATIENCE = 120.0

SERVICE = "/io.linkerd.proxy.destination.Destination"


class Stats(NamedTuple):
    """Seconds of processor time, and bytes of memory."""

    busy: float
    resident: float


class Server:
    """A running server, and the orders that it takes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        assert process.stdin is not None
        self._in, self._out = process.stdin, process.stdout
        self.port = int(self._out.readline())

    def order(self, word: str) -> None:
        """Have it do something."""
        self._in.write(f"{word}\n")
        self._in.flush()

    def stats(self) -> Stats:
        """What it has used so far."""
        self.order("stats")
        busy, resident = self._out.readline().split()
        return Stats(float(busy), float(resident))


@contextmanager
def serving(how: str, size: int = 0) -> Iterator[Server]:
    """A server of its own process."""
    command = [sys.executable, "-m", "bench._destination_server", how, str(size)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Server(process)
        finally:
            process.communicate("")


def _giver(made: Connection) -> Callable[[], Connection]:
    """Gives a protocol that there is already."""
    return lambda: made


class Clients:
    """Connections, and when how many messages had come."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: list[Connection] = []
        self._heard = 0
        self._wanted = 0
        self._done = asyncio.Event()

    async def open(self, number: int, methods: tuple[str, ...]) -> None:
        """So many connections at once, each with one call of each method; their first answers."""
        self._want(number * len(methods))
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            for each in range(number):
                name = f"s{each % SERVICES}.bench.svc.cluster.local:80"
                request = pb.GetDestination(path=name).SerializeToString()
                made = Connection([Call(f"{SERVICE}/{m}", request) for m in methods], self._hear)
                self._connections.append(made)
                group.create_task(loop.create_connection(_giver(made), "127.0.0.1", self._port))
        await self.all()

    def _want(self, messages: int) -> None:
        self._wanted = self._heard + messages
        self._done.clear()

    def _hear(self, _call: int) -> None:
        self._heard += 1
        if self._heard == self._wanted:
            self._done.set()

    async def all(self) -> None:
        """Wait for all messages that are wanted."""
        async with asyncio.timeout(PATIENCE):  # noqa: TID251  # a bench measures real time
            await self._done.wait()

    async def flip(self, server: Server) -> float:
        """Seconds from the order until the last client has heard of it."""
        start = time.perf_counter()
        self._want(CONNECTIONS // SERVICES)
        server.order("flip")
        await self.all()
        return time.perf_counter() - start

    @property
    def bytes(self) -> int:
        """Bytes of all messages so far."""
        return sum(each.bytes for each in self._connections)

    @property
    def refused(self) -> int:
        """Calls that were ended."""
        return sum(each.refused for each in self._connections)

    def close(self) -> None:
        for each in self._connections:
            each.close()


class Run(NamedTuple):
    """What one server made of the flips."""

    per_message: float
    per_stream: float
    last: list[float]
    size: float


async def flips(how: str, size: int = 0) -> Run:
    """The flips against one server."""
    with serving(how, size) as server:
        before = server.stats()
        clients = Clients(server.port)
        await clients.open(CONNECTIONS, ("Get", "GetProfile"))
        opened = server.stats()
        for _ in range(50):
            await clients.flip(server)
        start, read = server.stats(), clients.bytes
        last = [await clients.flip(server) for _ in range(FLIPS)]
        end = server.stats()
        messages = FLIPS * CONNECTIONS // SERVICES
        run = Run(
            (end.busy - start.busy) / messages,
            (opened.resident - before.resident) / (2 * CONNECTIONS),
            last,
            (clients.bytes - read) / messages,
        )
        clients.close()
    return run


async def storm() -> list[Figure]:
    """4,000 clients that come at once, twice: what they had is gone, and all ask anew."""
    took, refused, cost = 0.0, 0, 0.0
    with serving("ours") as server:
        for _ in range(2):
            clients = Clients(server.port)
            start, before = time.perf_counter(), server.stats().busy
            await clients.open(STORM, ("Get",))
            took = time.perf_counter() - start
            cost = server.stats().busy - before
            refused += clients.refused
            clients.close()
    return [
        Figure(f"{STORM:,} clients that reconnect at once: refused", refused, "", "0"),
        Figure("  until the last has its answer", took, "s"),
        Figure("  processor time per client", cost / STORM * 1e6, "us"),
    ]


async def measured() -> list[Figure]:
    """Every figure; the two servers take turns, and the better of their runs counts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard) if soft < hard else (soft, hard))
    ours = [await flips("ours")]
    bare = [await flips("bare", round(ours[0].size))]
    shell = await flips("shell", round(ours[0].size))
    ours.append(await flips("ours"))
    bare.append(await flips("bare", round(ours[0].size)))
    mine, floor = (min(each.per_message for each in runs) for runs in (ours, bare))
    best = min(ours, key=lambda run: run.per_message)
    last = sorted(best.last)
    return [
        Figure("Destination: processor time per message", mine * 1e6, "us"),
        Figure("  the same, bare grpc.aio", floor * 1e6, "us"),
        Figure("  ratio", mine / floor, "", "≤ 1.5"),
        Figure("  ratio of the server without the mesh", shell.per_message / floor, "", "≤ 1.5"),
        Figure("  until the last of 5 clients has it, median", statistics.median(last) * 1e3, "ms"),
        Figure("  the same, 99 of 100", last[len(last) * 99 // 100] * 1e3, "ms"),
        Figure(
            "  the same, median, bare",
            statistics.median(bare[0].last) * 1e3,
            "ms",
        ),
        Figure("  memory per stream", best.per_stream / 1024, "KiB", "≤ 60"),
        Figure("  memory per stream, bare", bare[0].per_stream / 1024, "KiB"),
        *await storm(),
    ]


def figures() -> Iterator[Figure]:
    """What `make bench` prints of the Destination service."""
    yield from asyncio.run(measured())
