"""The listener in front of gRPC: TLS for everybody, plain text for loopback alone.

grpcio demands ALPN of every TLS client, and linkerd2-proxy offers none on its control connections;
nor can grpcio ask for a client certificate without insisting on one. So TLS ends here, and bytes go
on to a gRPC server on a loopback port of its own. That server sees each connection come from a port
of ours; the front knows which certificate was shown on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import Clock, Log, deadline
from isthmus.aio.pipe import Streams, carry
from isthmus.aio.sniff import TLS_HANDSHAKE, peek
from isthmus.aio.supervise import describe, foreseen
from isthmus.ca import Realm, chains
from isthmus.errors import PeerFault
from isthmus.serve.identity.certify import key_hash
from isthmus.serve.identity.contract import NOBODY, Caller

PATIENCE: Final = 10.0
"""Seconds for a first byte, and again for a handshake."""
FAREWELL: Final = 1.0
"""Seconds that a peer gets to answer the end of TLS."""
MOST: Final = 4096
"""Connections at once."""

Context = Callable[[], Awaitable[ssl.SSLContext]]


class Front:
    """Accepts, tells TLS from plain text, and carries bytes to `inner`, a loopback port."""

    def __init__(
        self,
        listening: socket.socket,
        context: Context,
        realm: Realm,
        clock: Clock,
        log: Log,
    ) -> None:
        self._listening = listening
        self._context = context
        self._realm = realm
        self._clock = clock
        self._log = log
        self._free = asyncio.Semaphore(MOST)
        self._callers: dict[str, Caller] = {}
        self._plain = ip_address(listening.getsockname()[0]).is_loopback
        self.inner = 0

    def caller(self, peer: str) -> Caller:
        """Who is behind a connection that gRPC sees as `peer`."""
        return self._callers.get(peer, NOBODY)

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        async with asyncio.TaskGroup() as group:
            while True:
                await self._free.acquire()
                try:
                    accepted, _ = await loop.sock_accept(self._listening)
                except OSError as fault:  # no handle is free, or the peer left
                    self._free.release()
                    self._log.warning("accept failed", error=describe(fault))
                    await self._clock.sleep(0.1)
                    continue
                group.create_task(self._serve(accepted))

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            await self._pass(accepted)
        except Exception as fault:  # noqa: BLE001  # one connection's fault stays its own
            trace = None if foreseen(fault) else fault
            self._log.info("connection failed", error=describe(fault), exc_info=trace)
        finally:
            self._free.release()

    async def _pass(self, accepted: socket.socket) -> None:
        try:
            context = await self._choose(accepted)
        except BaseException:
            accepted.close()  # from here on a transport owns it
            raise
        async with deadline(self._clock, PATIENCE, "a TLS handshake"):
            outer = await _streams(accepted, context)
        try:
            inner = Streams(*await asyncio.open_connection("127.0.0.1", self.inner))
        except OSError:
            outer.writer.close()
            raise
        host, port = inner.writer.get_extra_info("sockname")
        peer = f"ipv4:{host}:{port}"
        self._callers[peer] = self._who(outer)
        try:
            await carry(outer, inner)
        finally:
            del self._callers[peer]
            with contextlib.suppress(OSError):
                await outer.writer.wait_closed()

    async def _choose(self, accepted: socket.socket) -> ssl.SSLContext | None:
        async with deadline(self._clock, PATIENCE, "the first byte of a connection"):
            first = await peek(accepted)
        if first == TLS_HANDSHAKE:
            return await self._context()
        if not self._plain:
            raise PeerFault("plain text on a listener that is not on loopback")
        return None

    def _who(self, outer: Streams) -> Caller:
        """The host whose certificate TLS has verified; those of workloads mean nothing here."""
        encrypted: ssl.SSLObject | None = outer.writer.get_extra_info("ssl_object")
        shown = encrypted.getpeercert(binary_form=True) if encrypted is not None else None
        if shown is None:
            return NOBODY
        certificate = x509.load_der_x509_certificate(shown)
        uris, key = chains.uris(certificate), certificate.public_key()
        host = self._realm.host(uris[0]) if len(uris) == 1 else None
        if host is None or chains.dns_names(certificate):
            return NOBODY
        return Caller(host, key_hash(key)) if isinstance(key, ec.EllipticCurvePublicKey) else NOBODY


async def _streams(accepted: socket.socket, context: ssl.SSLContext | None) -> Streams:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, accepted, ssl=context, ssl_shutdown_timeout=FAREWELL if context else None
    )
    return Streams(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
