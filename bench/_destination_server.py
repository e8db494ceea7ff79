"""The server of `bench.destination`: reads orders from stdin, one line each.

    python -m bench._destination_server ours|shell|bare SIZE

`ours` is the Destination service over tables; `shell` is the same server without the mesh: it tells
SIZE bytes from a table; `bare` is nothing but grpc.aio, which writes SIZE bytes. Orders: `flip`
(the Get streams of the first service are told something else), `stats` (prints seconds of
processor time, and bytes of memory).
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import grpc
import msgspec
import structlog

from isthmus.aio import SystemClock
from isthmus.app import destination, limits
from isthmus.board import Following
from isthmus.engine import Database, Put, Query, Table, View, query
from isthmus.mesh import SOURCES
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.serve.linkerd import GrpcServer, Method, Read, Service

SERVICES = 200
ENDPOINTS = 5
SLICES = "endpointslices.discovery.k8s.io"

Document = dict[str, object]


class Tables:
    """200 Services of five meshed pods each, as a board."""

    def __init__(self) -> None:
        self._database = Database()
        self._database.commit([Put(SETTINGS, WHOLE, MeshSettings())])
        for number in range(SERVICES):
            self._service(number)
        self._there = True
        self._flipped = [msgspec.json.encode(_slice(0, ready=ready)) for ready in (False, True)]

    @property
    def read(self) -> Read:
        return self._database.read

    def follow(
        self,
        told: Callable[[Any], None],
        query: Query[..., Any],
        /,
        *key: Any,  # noqa: ANN401
    ) -> Following:
        return Following(self._database, SystemClock(), told, query, *key)

    def flip(self) -> None:
        """One endpoint of the first Service comes or goes."""
        self._there = not self._there
        self._write(SLICES, "s0-x", self._flipped[self._there])

    def _service(self, number: int) -> None:
        ports = [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]
        spec = {"clusterIP": f"10.96.{number}.1", "clusterIPs": [f"10.96.{number}.1"]}
        self._put("services", _document(f"s{number}", spec={**spec, "ports": ports}))
        for each in range(ENDPOINTS):
            self._put("pods", _pod(number, each))
        self._put(SLICES, _slice(number, ready=True))

    def _put(self, resource_name: str, document: Document) -> None:
        metadata = document["metadata"]
        assert isinstance(metadata, dict)
        self._write(resource_name, metadata["name"], msgspec.json.encode(document))

    def _write(self, resource_name: str, name: str, stored: bytes) -> None:
        """As the board does it with what the store holds."""
        source = SOURCES[resource_name]
        row = source.row(stored)
        self._database.commit([Put(source.table, ObjectKey("default", "bench", name), row)])


def _document(name: str, labels: dict[str, str] | None = None, **rest: object) -> Document:
    metadata = {"name": name, "namespace": "bench", "uid": name, "labels": labels or {}}
    return {"metadata": metadata, **rest}


def _pod(number: int, each: int) -> Document:
    listen = [{"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:4143"}]
    containers = [{"name": "linkerd-proxy", "image": "x", "env": listen}]
    ip = f"10.{number}.0.{each}"
    return _document(
        f"s{number}-{each}",
        {"linkerd.io/control-plane-ns": "linkerd", "app": f"s{number}"},
        spec={"containers": containers, "serviceAccountName": f"s{number}"},
        status={"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]},
    )


def _slice(number: int, *, ready: bool) -> Document:
    endpoints = [
        {
            "addresses": [f"10.{number}.0.{each}"],
            "conditions": {"ready": ready or each > 0},
            "targetRef": {"kind": "Pod", "namespace": "bench", "name": f"s{number}-{each}"},
            "zone": "z1",
        }
        for each in range(ENDPOINTS)
    ]
    return _document(
        f"s{number}-x",
        {"kubernetes.io/service-name": f"s{number}"},
        addressType="IPv4",
        ports=[{"name": "", "port": 8080, "protocol": "TCP"}],
        endpoints=endpoints,
    )


WORDS: Table[str, bytes] = Table("bench_words")


@query
def word(db: View, key: str) -> bytes:
    """The bytes under a key."""
    return WORDS.get(db, key) or b"nothing"


def _name(_read: Read, request: bytes) -> str:
    return pb.GetDestination.FromString(request).path.partition(".")[0]


def _nothing(_read: Read, _request: bytes) -> str:
    return ""


WORDS_CALLS: Service = {
    "Get": Method(_name, word, destination.whole),
    "GetProfile": Method(_nothing, word, destination.whole),
}


class Words(Tables):
    """The server without the mesh: a message of so many bytes per service."""

    def __init__(self, size: int) -> None:
        self._database = Database()
        self._size = size
        self._there = True

    def flip(self) -> None:
        self._there = not self._there
        text = (b"x" if self._there else b"y") * self._size
        self._database.commit([Put(WORDS, "s0", text)])


class Bare:
    """grpc.aio and nothing else: a first message, and one more whenever it is told to."""

    def __init__(self, size: int) -> None:
        self._payload = b"x" * size
        self._waiting: set[asyncio.Event] = set()
        options = [
            ("grpc.server.max_pending_requests", 20_000),
            ("grpc.server.max_pending_requests_hard_limit", 30_000),
        ]
        self.server = grpc.aio.server(options=options)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Get": grpc.unary_stream_rpc_method_handler(self._get),
            "GetProfile": grpc.unary_stream_rpc_method_handler(self._idle),
        }
        generic = grpc.method_handlers_generic_handler(destination.NAME, handlers)
        self.server.add_generic_rpc_handlers((generic,))

    def flip(self) -> None:
        for each in self._waiting:
            each.set()

    async def _get(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.write(self._payload)
        woken = asyncio.Event()
        if pb.GetDestination.FromString(request).path.startswith("s0."):
            self._waiting.add(woken)
        try:
            while True:
                await woken.wait()
                woken.clear()
                await context.write(self._payload)
        finally:
            self._waiting.discard(woken)

    async def _idle(self, _request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.write(self._payload)
        await asyncio.Event().wait()


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def obey(flipped: Tables | Bare) -> None:
    """Orders, until there are none."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while order := await reader.readline():
        if order == b"flip\n":
            flipped.flip()
        else:
            print(time.process_time(), resident(), flush=True)


async def main(how: str, size: int) -> None:
    """Serve until stdin ends."""
    limits.raise_file_limit()
    limits.let_threads_in()
    if how == "bare":
        bare = Bare(size)
        print(bare.server.add_insecure_port("127.0.0.1:0"), flush=True)
        await bare.server.start()
        limits.settle_memory()
        await obey(bare)
        os._exit(0)  # grpc would print a traceback for each call that is open
    tables = Tables() if how == "ours" else Words(size)
    calls = destination.service() if how == "ours" else WORDS_CALLS
    services = {destination.NAME: calls}
    log = structlog.get_logger()
    server = GrpcServer(services, tables, clock=SystemClock(), random=Random(1), log=log)
    print(server.bind("127.0.0.1", 0), flush=True)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(server.run())
        limits.settle_memory()
        await obey(tables)
        running.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
