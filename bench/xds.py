"""ADS: what it costs to tell 400 Envoys of one endpoint that has changed.

The proxies are streams of a second process, which answer every response and keep nothing; so the
CPU measured is the server's alone. Each has 100 clusters with their assignments, 20 listeners and
their routes. `python -m bench.xds` prints these figures alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, NamedTuple

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from bench.table import Figure, table
from isthmus.aio import Log, SystemClock
from isthmus.board import Subscription
from isthmus.engine import Database, Put, Table, View, query
from isthmus.serve.xds import Cell, Node, Peer, Proxy, XdsServer
from isthmus.serve.xds.machine.frames import framed
from isthmus.serve.xds.machine.types import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from isthmus.serve.xds.machine.values import Framed
from isthmus.serve.xds.wire import DELTA, SERVICE

STREAMS, CLUSTERS, LISTENERS = 400, 100, 20
ROUNDS: Final = 30
SIZES: Final = {CLUSTER: 900, ENDPOINTS: 800, LISTENER: 1_500, ROUTES: 700}
"""Bytes of a resource, as the Envoy dialect makes them, with ten endpoints."""
NAMES: Final = {
    CLUSTER: tuple(f"p80.web-{number:03}.shop.east.internal" for number in range(CLUSTERS)),
    LISTENER: tuple(f"svc|shop/web-{number:03}:80" for number in range(LISTENERS)),
}
ALL: Final = {**NAMES, ENDPOINTS: NAMES[CLUSTER], ROUTES: NAMES[LISTENER]}


class Names(NamedTuple):
    """The view of all."""

    types: Mapping[str, tuple[str, ...] | None]
    scope: tuple[str, ...] = ("*/*",)


ROWS: Table[tuple[str, str], str] = Table("bench_xds")


@query
def view(_db: View, _asker: str) -> Names:
    """The same for all."""
    return Names(ALL)


@query
def content(db: View, type_url: str, name: str) -> Framed | None:
    """A resource of the usual size, whose version is its row."""
    version = ROWS.get(db, (type_url, name))
    if version is None:
        return None
    clusters = (NAMES[CLUSTER][ALL[type_url].index(name)],) if type_url == ROUTES else ()
    body = version.encode().ljust(SIZES[type_url], b".")
    return framed(name, version, type_url, body, clusters=clusters)


class Dialect:
    """Everybody is told everything."""

    name = "bench"

    def view_query(self, asker: str, /) -> Cell:
        """One view."""
        return (view, asker)

    def resource_query(self, _asker: str, type_url: str, name: str, /) -> Cell | None:
        """One cell per name."""
        return (content, type_url, name)


class Mesh:
    """The board."""

    def __init__(self) -> None:
        self.database = Database()
        self.database.commit(
            Put(ROWS, (url, name), "0") for url, names in ALL.items() for name in names
        )

    def subscribe(self) -> Subscription:
        """Cells to watch."""
        return Subscription(self.database, SystemClock())

    def flip(self, round_: int) -> None:
        """One endpoint of one service changes."""
        self.database.commit([Put(ROWS, (ENDPOINTS, NAMES[CLUSTER][7]), str(round_))])


def admit(_peer: Peer, node: Node) -> Proxy:
    """Everybody."""
    return Proxy(node.id, Dialect(), "all")


class Spent(NamedTuple):
    """What the server has used so far."""

    cpu: float
    kilobytes: int
    at: float


def spent() -> Spent:
    """CPU of this process in seconds, and the memory it holds now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    held = pages * resource.getpagesize() // 1024
    return Spent(usage.ru_utime + usage.ru_stime, held, time.perf_counter())


async def serve(log: Log) -> list[Figure]:
    """Start the server and the proxies, flip, and measure."""
    mesh, clock = Mesh(), SystemClock()
    server = XdsServer(mesh, admit, clock=clock, random=Random(1), log=log)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ads.sock"
        server.bind_unix(path)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(server.run())
            before = spent()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.xds", "--proxies", str(path), env=dict(os.environ)
            )
            await settled(server, STREAMS, clock)
            loaded = spent()
            costs = [await flip(server, mesh, round_, clock) for round_ in range(1, ROUNDS + 1)]
            process.terminate()
            await process.wait()
            running.cancel()
    return figures_of(before, loaded, costs)


async def settled(server: XdsServer, streams: int, clock: SystemClock) -> None:
    """Wait until all proxies have everything."""
    wanted = {CLUSTER: CLUSTERS, ENDPOINTS: CLUSTERS, LISTENER: LISTENERS, ROUTES: LISTENERS}
    while True:
        reports = server.streams.report().proxies
        done = [{kind.type_url: kind.acked for kind in one.types} == wanted for one in reports]
        if sum(done) == streams:
            return
        await clock.sleep(0.2)


async def flip(
    server: XdsServer, mesh: Mesh, round_: int, clock: SystemClock
) -> tuple[float, float]:
    """CPU and time, in seconds, from a change until the last proxy has accepted it."""
    before = spent()
    mesh.flip(round_)
    while server.streams.behind(ENDPOINTS, NAMES[CLUSTER][7]):
        await clock.sleep(0.05)
    after = spent()
    return after.cpu - before.cpu, after.at - before.at


def figures_of(before: Spent, loaded: Spent, costs: Sequence[tuple[float, float]]) -> list[Figure]:
    """The table's lines."""
    cpu, wall = (median(column) for column in zip(*costs, strict=True))
    held = (loaded.kilobytes - before.kilobytes) / STREAMS
    resources = CLUSTERS * 2 + LISTENERS * 2
    return [
        Figure("xds: one endpoint to 400 streams, CPU per ACKed update", cpu / STREAMS * 1e6, "us"),
        Figure("xds: one endpoint to 400 streams, to the last ACK", wall * 1e3, "ms"),
        Figure("xds: CPU to load 400 streams", loaded.cpu - before.cpu, "s"),
        Figure(f"xds: memory of a stream with {resources} resources", held, "KiB"),
    ]


# ---------------------------------------------------------------- the proxies' process


async def proxies(path: str) -> None:
    """400 Envoys, as far as a server can tell."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(STREAMS):
            tasks.create_task(one_proxy(path, number))


async def one_proxy(path: str, number: int) -> None:
    """A connection with one stream, which accepts everything at once."""
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
    async with grpc.aio.insecure_channel(f"unix:{path}", options) as channel:
        call: Any = channel.stream_stream(f"/{SERVICE}/{DELTA}")()
        first = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER)
        first.node.id = f"proxy-{number}"
        await call.write(first.SerializeToString())
        children = {CLUSTER: ENDPOINTS, LISTENER: ROUTES}
        while (data := await call.read()) is not grpc.aio.EOF:
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            url, nonce = response.type_url, response.nonce
            ack = discovery_pb2.DeltaDiscoveryRequest(type_url=url, response_nonce=nonce)
            await call.write(ack.SerializeToString())
            child = children.pop(url, None)
            if child is not None:
                names = [one.name for one in response.resources]
                more = discovery_pb2.DeltaDiscoveryRequest(type_url=child)
                more.resource_names_subscribe.extend(names)
                await call.write(more.SerializeToString())
            if child == ENDPOINTS:
                await call.write(
                    discovery_pb2.DeltaDiscoveryRequest(type_url=LISTENER).SerializeToString()
                )


def figures() -> list[Figure]:
    """What `make bench` prints. In a process of its own, whose memory nobody used before."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.xds", "--figures"], stdout=subprocess.PIPE, check=True
    )
    return [Figure(*each) for each in json.loads(done.stdout)]


class Quiet:
    """Nobody reads a bench's log."""

    def info(self, event: str, /, **fields: object) -> None:
        """Drop it."""

    def warning(self, event: str, /, **fields: object) -> None:
        """Show it: something went wrong."""
        print(event, fields, file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--proxies"]:
        asyncio.run(proxies(sys.argv[2]))
    elif sys.argv[1:2] == ["--figures"]:
        print(json.dumps(asyncio.run(serve(Quiet()))))
    else:
        print(table(figures()))
