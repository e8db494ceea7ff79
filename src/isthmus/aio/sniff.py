"""One port for several protocols, as on Consul's server port 8300.

The first byte says what comes: 0x16 opens a TLS handshake record (RFC 8446, 5.1), anything else
is the first byte of a plain protocol, which stays unread. Inside TLS, the protocol (ALPN) and the
server name (SNI) that the client asked for say more.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from isthmus.aio.clock import Clock
from isthmus.aio.deadline import deadline
from isthmus.aio.supervise import Log, describe, foreseen
from isthmus.errors import PeerFault

TLS_HANDSHAKE = 0x16


class Arrival(NamedTuple):
    """A connection whose protocol is known. The handler may leave closing it to the listener."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    first: int
    """The first byte on the wire, still to be read if it was a plain one."""
    alpn: str | None = None
    """The application protocol agreed on within TLS."""
    server_name: str | None = None
    """The server name the client asked for within TLS."""

    @property
    def encrypted(self) -> bool:
        return self.first == TLS_HANDSHAKE


Handler = Callable[[Arrival], Awaitable[None]]


class SniffingListener:
    """Accepts on one listening socket; tells TLS from plain; hands each arrival to `handler`.

    `tls` is None on a port that speaks no TLS. At most `limit` connections are open at once, more
    wait in the kernel. A peer has `patience` seconds for its first byte and again for its
    handshake. What goes wrong with one connection ends that one only.
    """

    def __init__(
        self,
        listening: socket.socket,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None,
        clock: Clock,
        log: Log,
        limit: int = 4096,
        patience: float = 10.0,
    ) -> None:
        self._listening = listening
        self._handler = handler
        self._tls = tls
        self._clock = clock
        self._log = log
        self._free = asyncio.Semaphore(limit)
        self._patience = patience
        self._names: WeakKeyDictionary[ssl.SSLObject, str] = WeakKeyDictionary()
        if tls is not None:
            self._remember_names(tls)

    async def run(self) -> None:
        """Accept until cancelled; then end every connection and close the listening socket."""
        self._listening.setblocking(False)
        try:
            async with asyncio.TaskGroup() as connections:
                while True:
                    await self._free.acquire()
                    accepted = await self._accept()
                    task = connections.create_task(self._serve(accepted))
                    task.add_done_callback(lambda _: self._free.release())
        finally:
            self._listening.close()

    async def _accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError as error:  # out of descriptors, or the peer left already
                self._log.warning("accept failed", error=describe(error))
                await self._clock.sleep(0.1)
            else:
                return accepted

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            arrival = await self._open(accepted)
            try:
                await self._handler(arrival)
            finally:
                arrival.writer.close()
        except Exception as error:  # noqa: BLE001  # one connection's fault stays its own
            if foreseen(error):
                self._log.info("connection failed", error=describe(error))
            else:
                self._log.warning("connection failed", error=describe(error), exc_info=error)

    async def _open(self, accepted: socket.socket) -> Arrival:
        try:
            async with deadline(self._clock, self._patience, "the first byte of a connection"):
                first = await peek(accepted)
        except BaseException:
            accepted.close()  # from here on a transport owns it, and closes it itself
            raise
        if first != TLS_HANDSHAKE:
            return Arrival(*await _streams(accepted, None), first)
        if self._tls is None:
            accepted.close()
            raise PeerFault("a TLS handshake on a port that speaks no TLS")
        async with deadline(self._clock, self._patience, "a TLS handshake"):
            reader, writer = await _streams(accepted, self._tls)
        encrypted: ssl.SSLObject = writer.get_extra_info("ssl_object")
        alpn = encrypted.selected_alpn_protocol()
        return Arrival(reader, writer, first, alpn, self._names.get(encrypted))

    def _remember_names(self, tls: ssl.SSLContext) -> None:
        """Note the name each client asks for, then do what the context did before."""
        before = tls.sni_callback

        def note(encrypted: ssl.SSLObject, name: str, context: ssl.SSLContext) -> int | None:
            if name:  # None when the client named nobody, whatever the annotation says
                self._names[encrypted] = name
            return before(encrypted, name, context) if before is not None else None

        tls.sni_callback = note


async def peek(accepted: socket.socket) -> int:
    """Wait for the first byte and leave it unread.

    Raises:
        PeerFault: the peer left without a word.
    """
    loop = asyncio.get_running_loop()
    accepted.setblocking(False)
    readable = asyncio.Event()
    loop.add_reader(accepted.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(accepted.fileno())
    first = accepted.recv(1, socket.MSG_PEEK)
    if not first:
        raise PeerFault("the peer closed the connection before its first byte")
    return first[0]


async def _streams(
    accepted: socket.socket, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=tls)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
