"""The Kubernetes API: what lists, watches and writes cost, over real sockets.

The server runs in a process of its own (`bench._kube_server`); this one is the clients. `python -m
bench kube` prints these figures alone.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from bench.table import Figure, table

PODS = 10_000
WATCHERS = 500
ROUNDS = 60
WRITES = 600
WRITERS = 16

LIST = "/api/v1/namespaces/bench/pods"
WATCH = f"{LIST}?watch=true&resourceVersion="
HEAD = b"HTTP/1.1 200"


class Server(NamedTuple):
    """A running server."""

    port: int
    process: subprocess.Popen[str]
    tls: ssl.SSLContext | None

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    @property
    def busy(self) -> float:
        """Seconds of processor time that it took so far."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / 100

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection with room for large answers."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=2**20)


@asynccontextmanager
async def serving(how: str, where: str, pods: int) -> AsyncIterator[Server]:
    """A server with so many Pods, plain or over TLS, on the memory or the SQLite store."""
    command = [sys.executable, "-m", "bench._kube_server", how, where, str(pods)]
    process = subprocess.Popen(  # noqa: ASYNC220  # nothing else runs yet
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port, authority = process.stdout.readline().split()
    tls = ssl.create_default_context(cafile=authority) if how == "tls" else None
    try:
        yield Server(int(port), process, tls)
    finally:
        process.communicate("")


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The body of a response."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"chunked" not in head:
        size = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        body = await reader.readexactly(int(size))
        assert head.startswith(b"HTTP/1.1 2"), body
        return body
    parts = []
    while chunk := await _chunk(reader):
        parts.append(chunk)
    return b"".join(parts)


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\r\n"), 16)
    chunk = await reader.readexactly(size)
    await reader.readexactly(2)
    return chunk


# ------------------------------------------------------------------------------------ lists


async def lists(how: str) -> Iterator[Figure]:
    """LIST of all Pods, the best of five."""
    async with serving(how, "memory", PODS) as server:
        reader, writer = await server.connect()
        best, size = float("inf"), 0
        for _ in range(5):
            start = time.perf_counter()
            writer.write(request("GET", LIST))
            size = len(await answer(reader))
            best = min(best, time.perf_counter() - start)
        writer.close()
    name = f"LIST of {PODS:,} Pods, {how}"
    return iter([Figure(name, size / best / 2**20, "MiB/s"), Figure(name, best * 1000, "ms")])


# ---------------------------------------------------------------------------------- watches


async def watches(how: str, aim: str) -> list[Figure]:
    """Memory of idle watchers, and events to all of them."""
    async with serving(how, "memory", 1) as server:
        warm = [await _watch(server) for _ in range(20)]
        before = server.resident
        watchers = [await _watch(server) for _ in range(WATCHERS)]
        each = (server.resident - before) / WATCHERS
        rate, cost = await _events(server, watchers)
        for _, writer in (*warm, *watchers):
            writer.close()
    return [
        Figure(f"memory per idle watcher, {how}", each / 1024, "KiB", aim),
        Figure(f"events to {WATCHERS} watchers, {how}", rate, "events/s"),
        Figure(f"processor time per event and watcher, {how}", cost * 1e6, "us"),
    ]


async def _watch(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await server.connect()
    writer.write(request("GET", WATCH + "1"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(HEAD), head
    return reader, writer


async def _events(
    server: Server, watchers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
) -> tuple[float, float]:
    """Events delivered per second, and the server's seconds for each."""
    reader, writer = await server.connect()
    path = f"{LIST}/web-6d5f9c7b8-00000"
    writer.write(request("GET", path))
    document = json.loads(await answer(reader))
    document["metadata"].pop("resourceVersion")
    busy, start = server.busy, time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for each, _ in watchers:
            tasks.create_task(_read(each, ROUNDS))
        for number in range(ROUNDS):
            document["metadata"]["labels"]["round"] = str(number)
            writer.write(request("PUT", path, json.dumps(document).encode()))
            await answer(reader)
    took = time.perf_counter() - start
    writer.close()
    told = ROUNDS * len(watchers)
    return told / took, (server.busy - busy) / told


async def _read(reader: asyncio.StreamReader, events: int) -> None:
    while events > 0:
        events -= (await _chunk(reader)).count(b"\n")


# ----------------------------------------------------------------------------------- writes


async def writes(where: str) -> list[Figure]:
    """PUTs of different ConfigMaps, by one client and by several."""
    found = []
    async with serving("plain", where, 0) as server:
        await asyncio.gather(*(_create(server, number) for number in range(WRITERS)))
        for writers in (1, WRITERS):
            start = time.perf_counter()
            each = WRITES // writers
            await asyncio.gather(*(_put(server, number, each) for number in range(writers)))
            rate = each * writers / (time.perf_counter() - start)
            found.append(Figure(f"PUT by {writers}, {where}", rate, "PUT/s"))
    return found


async def _create(server: Server, number: int) -> None:
    await _send(server, "POST", "/api/v1/namespaces/bench/configmaps", [_body(number, 0)])


async def _put(server: Server, number: int, times: int) -> None:
    path = f"/api/v1/namespaces/bench/configmaps/c{number}"
    await _send(server, "PUT", path, [_body(number, n + 1) for n in range(times)])


def _body(number: int, value: int) -> bytes:
    data = {f"key-{n}": "x" * 40 for n in range(10)} | {"value": str(value)}
    return json.dumps({"metadata": {"name": f"c{number}"}, "data": data}).encode()


async def _send(server: Server, method: str, path: str, bodies: list[bytes]) -> None:
    reader, writer = await server.connect()
    for body in bodies:
        writer.write(request(method, path, body))
        await answer(reader)
    writer.close()


# -------------------------------------------------------------------------------------- all


async def measured() -> list[Figure]:
    """Every figure, one server after the other."""
    return [
        *await lists("plain"),
        *await lists("tls"),
        *await watches("plain", "≤ 16"),
        *await watches("tls", "≤ 56"),
        *await writes("memory"),
        *await writes("sqlite"),
    ]


def figures() -> Iterator[Figure]:
    """What `make bench` prints of the Kubernetes API."""
    yield from asyncio.run(measured())


if __name__ == "__main__":
    print(table(figures()))
