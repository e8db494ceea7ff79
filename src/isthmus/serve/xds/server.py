"""The listener on grpc.aio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from isthmus.aio import Clock, Log
from isthmus.board import Subscription
from isthmus.calls import bind
from isthmus.errors import UserFault
from isthmus.serve.xds.contract import Admit
from isthmus.serve.xds.hub import Hub
from isthmus.serve.xds.streams import LIMITS, Limits, Streams
from isthmus.serve.xds.wire import SERVICE

LARGEST: Final = 8 << 20
"""Bytes of a request: a proxy that comes back lists all that it has."""
PENDING: Final = 20_000
"""Calls that may wait for the loop: a whole mesh comes back within a second after a restart.
gRPC's own limit of a thousand ends the others at random."""
SPREAD: Final = 1.0
"""Seconds over which streams end when the server stops, so that not all proxies ask at once."""
GRACE: Final = 2.0
"""Seconds after which whatever is still open is cut."""

_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a taken port must be told, not shared
    ("grpc.max_concurrent_streams", 1_024),  # a proxy needs one; an agent may carry a host's
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", -1),
    ("grpc.server.max_pending_requests", PENDING),
    ("grpc.server.max_pending_requests_hard_limit", PENDING * 3 // 2),
    # A proxy that vanished without a word is found out.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Proxies ping too, on quiet connections; gRPC would send them away.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


class Leaf(NamedTuple):
    """The server's certificate and whom it believes. All PEM."""

    key: bytes
    chain: bytes
    roots: bytes
    """Anchors of the proxies' certificates."""


class Board(Protocol):
    """Where truth comes from."""

    def subscribe(self) -> Subscription:
        """Cells to watch."""


class XdsServer:
    """Serves ADS on any number of addresses.

    Make it inside the loop, `bind` it, then `run` it until it is cancelled.
    """

    def __init__(
        self,
        board: Board,
        admit: Admit,
        *,
        clock: Clock,
        random: Random,
        log: Log,
        limits: Limits = LIMITS,
    ) -> None:
        self._clock = clock
        self._random = random
        self._hub = Hub(board.subscribe())
        self.streams = Streams(self._hub, admit, limits=limits, clock=clock, log=log)
        self._server = grpc.aio.server(options=_OPTIONS)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            method: grpc.stream_stream_rpc_method_handler(handler)
            for method, handler in self.streams.handlers().items()
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def bind(self, host: str, port: int, leaf: Callable[[], Leaf] | None = None) -> int:
        """Listen at an IP address; return the port. Nobody is answered before `run`.

        With a `leaf`, TLS that demands a certificate of every proxy; it is asked at each handshake,
        in a thread of gRPC's, so that a renewed one counts at once. Without, plain text: for
        loopback only.

        Raises:
            UserFault: the address cannot be had.
        """
        return bind(self._server, host, port, None if leaf is None else credentials(leaf))

    def bind_unix(self, path: Path) -> None:
        """Listen at a unix socket: whoever may open the file is a peer without identity.

        Raises:
            UserFault: the path cannot be used.
        """
        try:
            self._server.add_insecure_port(f"unix:{path}")
        except RuntimeError as fault:
            raise UserFault(f"the socket {path} cannot be used") from fault

    async def run(self) -> None:
        """Serve until cancelled; then let streams end, spread over a moment."""
        async with asyncio.TaskGroup() as tasks:
            hub = tasks.create_task(self._hub.run())
            await self._server.start()
            await self._health.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
            try:
                await asyncio.Event().wait()
            finally:
                await self._drain()
                hub.cancel()

    async def _drain(self) -> None:
        """Say goodbye to every connection, and end each stream with OK at a moment of its own."""
        await self._health.enter_graceful_shutdown()
        for link in self.streams.close():
            self._clock.call_later(self._random.uniform(0.0, SPREAD), link.end)
        await self._server.stop(GRACE)

    async def close(self) -> None:
        """Give the addresses back, if `run` did not."""
        await self._server.stop(None)


def credentials(leaf: Callable[[], Leaf]) -> grpc.ServerCredentials:
    """Mutual TLS whose certificate and anchors are asked for at each handshake."""
    held = [leaf()]

    def fetch() -> Any:  # noqa: ANN401  # the stubs forget that None means: as before
        now = leaf()
        if now == held[0]:
            return None
        held[0] = now
        return _configuration(now)

    first = _configuration(held[0])
    return grpc.dynamic_ssl_server_credentials(first, fetch, require_client_authentication=True)


def _configuration(leaf: Leaf) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(leaf.key, leaf.chain)], leaf.roots)
