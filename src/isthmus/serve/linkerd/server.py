"""The listener on grpc.aio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from isthmus.aio import Clock, Log
from isthmus.calls import bind
from isthmus.serve.linkerd.method import Method, Service
from isthmus.serve.linkerd.streams import Streams
from isthmus.serve.linkerd.topics import Board

LARGEST: Final = 2 << 20
"""Bytes of a request."""
STREAMS: Final = 32_768
"""Open calls of one connection. A proxy before us puts all its clients' calls on few of them."""
PENDING: Final = 20_000
"""Calls that may wait for the loop: a whole mesh asks within a second after a restart.
gRPC's own limit of a thousand ends the others at random, with a status that looks final."""

SPREAD: Final = 1.0
"""Seconds over which streams end when the server stops, so that not all clients ask at once."""
GRACE: Final = 2.0
"""Seconds after which whatever is still open is cut."""

# A connection has no maximum age: streams are long, and clients ask anew by themselves.
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a taken port must be told, not shared
    ("grpc.max_concurrent_streams", STREAMS),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.server.max_pending_requests", PENDING),
    ("grpc.server.max_pending_requests_hard_limit", PENDING * 3 // 2),
    # A client that vanished without a word is found out.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Proxies ping every few seconds, on quiet connections too; gRPC would send them away.
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


class GrpcServer:
    """Serves services, by their full names, on one port. Plain text: TLS is somebody else's part.

    Make it inside the loop, `bind` it, then `run` it until it is cancelled.
    """

    def __init__(
        self,
        services: Mapping[str, Service],
        board: Board,
        *,
        clock: Clock,
        random: Random,
        log: Log,
    ) -> None:
        self._clock = clock
        self._random = random
        self.streams = Streams(board, log)
        self._server = grpc.aio.server(options=_OPTIONS)
        for name, methods in services.items():
            self._add(name, methods)
        self._health = health.aio.HealthServicer()
        self._names = tuple(services)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    def _add(self, name: str, methods: Service) -> None:
        handlers = {method: self._handler(method, what) for method, what in methods.items()}
        generic = grpc.method_handlers_generic_handler(name, handlers)
        self._server.add_generic_rpc_handlers((generic,))

    def _handler(self, name: str, method: Method) -> grpc.RpcMethodHandler[bytes, bytes]:
        if method.unary:
            return grpc.unary_unary_rpc_method_handler(self.streams.answer(name, method))
        return grpc.unary_stream_rpc_method_handler(self.streams.handler(name, method))

    def bind(self, host: str, port: int) -> int:
        """Listen at an IP address; return the port. Nobody is answered before `run`.

        Raises:
            UserFault: the address cannot be had.
        """
        return bind(self._server, host, port)

    async def run(self) -> None:
        """Serve until cancelled; then let streams end, spread over a moment."""
        await self._server.start()
        for name in self._names:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        try:
            await asyncio.Event().wait()
        finally:
            await self._drain()

    async def _drain(self) -> None:
        """Say goodbye to every connection, and end each stream with OK at a moment of its own."""
        await self._health.enter_graceful_shutdown()
        for live in self.streams.close():
            self._clock.call_later(self._random.uniform(0.0, SPREAD), live.end)
        await self._server.stop(GRACE)

    async def close(self) -> None:
        """Give the port back, if `run` did not."""
        await self._server.stop(None)
