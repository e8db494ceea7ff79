"""Bytes from a listener in one namespace to an address in another.

TCP: each accepted connection gets one of its own, chosen by `dial`; half-closes pass through; when
either side fails both are cut. UDP: one socket per client, forgotten after a while, as name
servers are asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from isthmus.aio import Clock, deadline
from isthmus.errors import DeadlineExceeded
from isthmus.lab.network.namespace import Namespace

CHUNK = 64 * 1024
CONNECT = 5.0
"""Seconds that the other side may take to accept."""
MOST = 4096
"""Connections of one relay at a time; more wait to be accepted."""

DATAGRAM = 64 * 1024
CLIENTS = 256
"""UDP clients that are remembered; the oldest is forgotten first."""

Dial = Callable[[], Awaitable[socket.socket]]


def to(namespace: Namespace, host: str, port: int) -> Dial:
    """Connects to one address inside a namespace."""

    async def dial() -> socket.socket:
        return await connect(namespace, host, port)

    return dial


async def connect(namespace: Namespace, host: str, port: int, source: str = "") -> socket.socket:
    """A connected socket inside a namespace, from an address of it; OSError when nobody accepts."""
    made = namespace.socket()
    try:
        if source:
            made.bind((source, 0))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, (host, port))
    except BaseException:
        made.close()
        raise
    return made


class Relay:
    """One listener. `run` until cancelled; it closes the listener."""

    def __init__(self, listening: socket.socket, dial: Dial, clock: Clock) -> None:
        self._listening = listening
        self._dial = dial
        self._clock = clock
        self._room = asyncio.Semaphore(MOST)

    async def run(self) -> None:
        """Accept and carry."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._room.acquire()
                    try:
                        client, _ = await loop.sock_accept(self._listening)
                    except OSError:  # the client left, or no handle is free
                        self._room.release()
                        await self._clock.sleep(0.05)
                        continue
                    group.create_task(self._carry(client))
        finally:
            self._listening.close()

    async def _carry(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError, DeadlineExceeded):
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with deadline(self._clock, CONNECT, "connecting"):
                    server = await self._dial()
                with server:
                    await both_ways(client, server)
        finally:
            self._room.release()


async def both_ways(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes until both sides have said their last."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_one_way(one, other))
            group.create_task(_one_way(other, one))
    except* OSError:  # one side broke off: both are cut when their blocks end
        pass


async def _one_way(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, CHUNK):
        await loop.sock_sendall(target, data)
    target.shutdown(socket.SHUT_WR)


class DatagramRelay:
    """One UDP listener, and a socket towards `target` for each client."""

    def __init__(
        self, listening: socket.socket, inside: Namespace, target: tuple[str, int]
    ) -> None:
        self._listening = listening
        self._inside = inside
        self._target = target
        self._clients: dict[tuple[str, int], socket.socket] = {}

    async def run(self) -> None:
        """Carry until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    data, client = await loop.sock_recvfrom(self._listening, DATAGRAM)
                except OSError:  # what ICMP said of an answer nobody waited for
                    continue
                with contextlib.suppress(OSError):
                    self._towards(client).send(data)
        finally:
            for held in list(self._clients):
                self._forget(held)
            self._listening.close()

    def _towards(self, client: tuple[str, int]) -> socket.socket:
        held = self._clients.get(client)
        if held is None:
            if len(self._clients) >= CLIENTS:
                self._forget(next(iter(self._clients)))
            held = self._inside.socket(kind=socket.SOCK_DGRAM)
            held.connect(self._target)
            self._clients[client] = held
            asyncio.get_running_loop().add_reader(held, self._back, held, client)
        return held

    def _back(self, held: socket.socket, client: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            self._listening.sendto(held.recv(DATAGRAM), client)

    def _forget(self, client: tuple[str, int]) -> None:
        held = self._clients.pop(client)
        asyncio.get_running_loop().remove_reader(held)
        held.close()
