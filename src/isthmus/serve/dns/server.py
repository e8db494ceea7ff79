"""The sockets of cluster DNS, and what bounds them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from isthmus.aio import Clock, Gate, Visit
from isthmus.serve.dns.machine import Frames, Resolver, Transport

AT_ONCE: Final = 32
"""Packets that are answered before the loop's other tasks have a turn."""
CONNECTIONS: Final = 512
EACH: Final = 64
"""Connections in all, and from one address."""
IDLE: Final = 10.0
"""Seconds that a connection may be silent (RFC 7766, section 6.2.3)."""
DATAGRAM: Final = 65535
BUFFER: Final = 8192
"""Bytes that are read at once from a connection."""


class DnsServer:
    """Answers on a bound UDP socket and a listening TCP socket, both not blocking.

    What comes while we are busy waits in the kernel, and is lost when that is full, which is how
    DNS sheds load: there is no queue here.
    """

    def __init__(
        self, resolver: Resolver, datagrams: socket.socket, listening: socket.socket, clock: Clock
    ) -> None:
        self.resolver = resolver
        self.gate = Gate(CONNECTIONS, EACH, EACH)
        self._datagrams = datagrams
        self._listening = listening
        self._clock = clock
        self.connections: set[Connection] = set()

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, sock=self._listening)
        loop.add_reader(self._datagrams, self._readable)
        try:
            async with server:
                await asyncio.Event().wait()
        finally:
            loop.remove_reader(self._datagrams)
            for connection in tuple(self.connections):
                connection.abort()

    def _readable(self) -> None:
        for _ in range(AT_ONCE):
            try:
                packet, sender = self._datagrams.recvfrom(DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # what ICMP said of an answer that nobody waited for
                continue
            answer = self.resolver.answer(packet, Transport.UDP)
            if answer is not None:
                # A full buffer or a forged sender loses this answer, and the client asks again.
                with contextlib.suppress(OSError):
                    self._datagrams.sendto(answer, sender)

    def _accept(self) -> asyncio.BufferedProtocol:
        return Connection(self.resolver, self.gate, self._clock, self.connections)


class Connection(asyncio.BufferedProtocol):
    """One TCP connection: questions are answered in their order."""

    def __init__(
        self, resolver: Resolver, gate: Gate, clock: Clock, among: set[Connection]
    ) -> None:
        self._resolver = resolver
        self._gate = gate
        self._clock = clock
        self._among = among
        self._frames = Frames()
        self._visit: Visit | None = None
        self._transport: asyncio.Transport | None = None
        self._heard = clock.now()
        self._full = False
        self._over = False
        self._turn: asyncio.Handle | None = None
        self._buffer = bytearray(BUFFER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._visit = self._gate.enter(str(peer[0]) if peer else "")
        if self._visit is None:
            transport.abort()
            return
        self._visit.greet()  # there are no strangers here: nobody says who they are
        self._among.add(self)
        self._clock.call_later(IDLE, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._among.discard(self)
        if self._visit is not None:
            self._visit.leave()

    @property
    def stuck(self) -> bool:
        """Its client does not take the answers: it is not read from until that does."""
        return self._full

    def abort(self) -> None:
        """End it, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def _look(self) -> None:
        """Leave who was silent, or does not read; look again later at all others."""
        if self._over:
            return
        left = self._heard + IDLE - self._clock.now()
        if left <= 0:
            self.abort()
        else:
            self._clock.call_later(left, self._look)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.feed(bytes(self._buffer[:nbytes]))
        self._work()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._work()

    def _work(self) -> None:
        """Answer some; read no more while others wait to be answered, or answers to be read."""
        transport = self._transport
        if transport is None or self._over or self._full or self._turn is not None:
            return
        more = self._answer(transport)
        if self._frames.broken:
            transport.close()
        elif not more:
            transport.resume_reading()
        else:
            transport.pause_reading()
            self._turn = asyncio.get_running_loop().call_soon(self._go_on)

    def _answer(self, transport: asyncio.Transport) -> bool:
        """Whether to go on later."""
        for done, message in enumerate(self._frames.take(), 1):
            self._heard = self._clock.now()
            answer = self._resolver.answer(message, Transport.TCP)
            if answer is None:
                self.abort()
                return False
            transport.write(Frames.frame(answer))  # may turn out to have filled it
            if done == AT_ONCE or self._full:
                return True
        return False

    def _go_on(self) -> None:
        self._turn = None
        self._work()
