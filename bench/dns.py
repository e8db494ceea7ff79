"""Cluster DNS: what an answer costs that was given before, one that is new, and one of nobody."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence

from dns import message

from bench.table import Figure
from isthmus.aio import SystemClock
from isthmus.engine import Change, Database, Put
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.mesh.tables import SOURCES
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Document
from isthmus.serve.dns import DnsServer, Resolver
from isthmus.serve.dns.machine import Transport
from isthmus.store.codec import encode

HERE = "here"
MANY = 1000
ROUNDS = 50_000
SOME = 5_000
LOAD = 40_000
IN_FLIGHT = 64


def put(resource: str, namespace: str, name: str, document: Document) -> Change:
    """The row of an object."""
    source = SOURCES[resource]
    whole = {"metadata": {"name": name, "namespace": namespace}, **document}
    return Put(source.table, ObjectKey(HERE, namespace, name), source.row(encode(whole)))


def mesh() -> Database:
    """A thousand Services, and a headless one with a hundred endpoints."""
    db = Database()
    db.commit([Put(SETTINGS, WHOLE, MeshSettings(cluster=HERE))])
    db.commit(
        put("services", "shop", f"s{n}", {"spec": {"clusterIP": f"10.96.{n >> 8}.{n & 255}"}})
        for n in range(MANY)
    )
    part = {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(100)],
    }
    labels = {"metadata": {"labels": {"kubernetes.io/service-name": "db"}}}
    db.commit(
        [
            put("services", "shop", "db", {"spec": {"clusterIP": "None"}}),
            put("endpointslices.discovery.k8s.io", "shop", "db-1", {**part, **labels}),
        ]
    )
    return db


def asked(name: str) -> bytes:
    """A question, as a pod asks it."""
    return message.make_query(f"{name}.shop.svc.cluster.local", "A", use_edns=0).to_wire()


def cost(resolver: Resolver, packets: Sequence[bytes]) -> float:
    """Microseconds for each of the packets."""
    start = time.perf_counter()
    for packet in packets:
        resolver.answer(packet, Transport.UDP)
    return (time.perf_counter() - start) / len(packets) * 1e6


def served(resolver: Resolver) -> float:
    """Answers a second over UDP on loopback, client and server sharing one loop and one core."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    datagrams.setblocking(False)
    with datagrams, socket.create_server(("127.0.0.1", 0)) as listening:
        server = DnsServer(resolver, datagrams, listening, SystemClock())
        return asyncio.run(_load(server, datagrams.getsockname()))


async def _load(server: DnsServer, at: tuple[str, int]) -> float:
    packets = [asked(f"s{n}") for n in range(MANY)]
    async with asyncio.TaskGroup() as group:
        running = group.create_task(server.run())
        client = Client(packets)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: client, remote_addr=at)
        start = time.perf_counter()
        await client.done.wait()
        spent = time.perf_counter() - start
        running.cancel()
    return LOAD / spent


def _nowhere(packet: bytes) -> None:
    raise AssertionError(packet)


class Client(asyncio.DatagramProtocol):
    """Keeps some questions in flight."""

    def __init__(self, packets: Sequence[bytes]) -> None:
        self._packets = packets
        self._answered = 0
        self._send: Callable[[bytes], None] = _nowhere
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.DatagramTransport)
        self._send = transport.sendto
        for packet in self._packets[:IN_FLIGHT]:
            self._send(packet)

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._answered += 1
        if self._answered == LOAD:
            self.done.set()
        else:
            self._send(self._packets[self._answered % len(self._packets)])


def figures() -> list[Figure]:
    """Costs without sockets, then with."""
    resolver = Resolver(mesh().read)
    known = [asked("s7")] * ROUNDS
    cold = cost(resolver, [asked(f"s{n}") for n in range(MANY)])
    large = cost(resolver, [asked("db")])
    cost(resolver, known[:1])
    return [
        Figure("dns: a known answer", cost(resolver, known), "us", "≤ 20"),
        Figure("dns: a new answer", cold, "us"),
        Figure("dns: a new answer of 100 endpoints", large, "us"),
        Figure("dns: a known answer of 100 endpoints", cost(resolver, [asked("db")] * SOME), "us"),
        Figure("dns: nobody's name", cost(resolver, [asked(f"x{n}") for n in range(SOME)]), "us"),
        Figure("dns: over UDP, client included", served(resolver), "1/s", "≥ 10,000"),
    ]
