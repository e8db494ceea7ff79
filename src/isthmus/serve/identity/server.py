"""The gRPC services, behind the front."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final, NoReturn

import grpc
import msgspec
from cryptography import x509
from google.protobuf.wrappers_pb2 import BytesValue, StringValue
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from isthmus.aio import Clock, Log
from isthmus.ca import Issued, Keeper, Realm, Trust, chains, server_leaf, tls
from isthmus.calls import refusal_of, shorten
from isthmus.errors import IsthmusError
from isthmus.proto.linkerd import identity_pb2 as pb
from isthmus.serve.identity.certify import Certifier
from isthmus.serve.identity.contract import Ask, Heard
from isthmus.serve.identity.front import Front

IDENTITY: Final = "io.linkerd.proxy.identity.Identity"
ANCHORS: Final = "isthmus.identity.v1.Anchors"
"""Ours: `Watch`, anything -> a stream of google.protobuf.BytesValue, each the whole PEM bundle."""

WORKLOADS: Final = "isthmus.identity.v1.Workloads"
"""Ours, for hosts' agents: `Leave` and `Stay`, a google.protobuf.StringValue `NS/NAME` of an
ExternalWorkload -> a google.protobuf.BytesValue, JSON: known, behind (see `Heard`)."""

LARGEST: Final = 64 * 1024
"""Bytes of a request."""
WATCHES: Final = 4096
"""Streams of anchors at once: one per host's agent."""
SWEEP: Final = 600.0
"""Seconds between two looks at invitations that may have expired."""
GRACE: Final = 1.0
RENEW_AT: Final = 2 / 3
"""Share of its own certificate's life after which the listener shows a new one."""

_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

Context = grpc.aio.ServicerContext[Any, Any]


class IdentityServer:
    """Serves on `listening`, which it owns, until `run` is cancelled. Make it inside the loop."""

    def __init__(
        self,
        listening: socket.socket,
        certifier: Certifier,
        keeper: Keeper,
        realm: Realm,
        cluster: str,
        *,
        clock: Clock,
        log: Log,
    ) -> None:
        self._certifier = certifier
        self._keeper = keeper
        self._clock = clock
        self._log = log
        self._own = _OwnContext(keeper, (realm.server_name, realm.server_uri(cluster)), clock)
        self.front = Front(listening, self._own.context, realm, clock, log)
        self.heard: Ask = _nobody
        """Who knows of a workload that leaves; whoever has the streams sets it."""
        self._watching = 0
        self.issued = 0
        """Leaves signed."""
        self.refused = 0
        """Requests that got none."""
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=WATCHES + 1024)
        self._add()
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def _add(self) -> None:
        certify = grpc.unary_unary_rpc_method_handler(
            self._certify,
            request_deserializer=pb.CertifyRequest.FromString,
            response_serializer=pb.CertifyResponse.SerializeToString,
        )
        watch: grpc.RpcMethodHandler[bytes, BytesValue] = grpc.unary_stream_rpc_method_handler(
            self._watch, response_serializer=BytesValue.SerializeToString
        )
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(IDENTITY, {"Certify": certify}),
                grpc.method_handlers_generic_handler(ANCHORS, {"Watch": watch}),
                grpc.method_handlers_generic_handler(
                    WORKLOADS,
                    {"Leave": self._telling(leaving=True), "Stay": self._telling(leaving=False)},
                ),
            )
        )

    async def run(self) -> None:
        """Serve until cancelled."""
        self.front.inner = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        await self._health.set(IDENTITY, health_pb2.HealthCheckResponse.SERVING)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.front.run())
                group.create_task(self._sweep())
        finally:
            await self._server.stop(GRACE)

    async def _sweep(self) -> None:
        """Invitations that nobody redeemed do not stay."""
        while True:
            await self._clock.sleep(SWEEP)
            try:
                gone = await self._certifier.sweep()
            except IsthmusError as fault:
                self._log.info("join tokens are not swept", why=fault.message)
            else:
                if gone:
                    self._log.info("join tokens expired", count=gone)

    async def close(self) -> None:
        """Stop what `run` may not have."""
        await self._server.stop(None)

    async def _certify(self, asked: pb.CertifyRequest, context: Context) -> pb.CertifyResponse:
        caller = self.front.caller(context.peer())
        try:
            made = await self._certifier.certify(
                asked.identity, asked.token, asked.certificate_signing_request, caller
            )
        except Exception as fault:  # noqa: BLE001  # the edge: nothing of ours passes it
            self.refused += 1
            await self._abort(context, fault)
        self.issued += 1
        return _answer(made)

    def _telling(self, *, leaving: bool) -> grpc.RpcMethodHandler[StringValue, BytesValue]:
        async def tell(asked: StringValue, context: Context) -> BytesValue:
            caller = self.front.caller(context.peer())
            try:
                await self._certifier.tell(caller, asked.value, leaving=leaving)
                heard = self.heard(asked.value)
            except Exception as fault:  # noqa: BLE001  # the edge: nothing of ours passes it
                await self._abort(context, fault)
            return BytesValue(value=msgspec.json.encode(heard._asdict()))

        return grpc.unary_unary_rpc_method_handler(
            tell,
            request_deserializer=StringValue.FromString,
            response_serializer=BytesValue.SerializeToString,
        )

    async def _watch(self, _asked: bytes, context: Context) -> None:
        """Tell the anchors, now and whenever they change. They are no secret."""
        if self._watching >= WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams of anchors")
        self._watching += 1
        try:
            told = b""
            with self._keeper.now.watch() as changes:
                while True:
                    held = await changes.next()
                    bundle = held.bundle if held is not None else b""
                    if bundle != told:
                        told = bundle
                        await context.write(BytesValue(value=bundle))
        finally:
            self._watching -= 1

    async def _abort(self, context: Context, fault: Exception) -> NoReturn:
        status, text = refusal_of(fault, self._log)
        self._log.info("certificate refused", status=status, why=shorten(text))
        await context.abort(grpc.StatusCode[status], shorten(text))


def _nobody(_path: str) -> Heard:
    """Where there are no streams, nobody is behind."""
    return Heard(known=True, behind=())


def _answer(made: Issued) -> pb.CertifyResponse:
    answer = pb.CertifyResponse(
        leaf_certificate=chains.der(made.leaf),
        intermediate_certificates=[chains.der(each) for each in made.intermediates],
    )
    answer.valid_until.FromDatetime(made.until)
    return answer


class _OwnContext:
    """The listener's own certificate, from the issuer in use, replaced in time."""

    def __init__(self, keeper: Keeper, names: tuple[str, ...], clock: Clock) -> None:
        self._keeper = keeper
        self._names = names
        self._clock = clock
        self._held: tuple[Trust, float, ssl.SSLContext] | None = None

    async def context(self) -> ssl.SSLContext:
        """For the next handshake. Whoever comes first has the CA made."""
        trust = await self._keeper.trust()
        now = self._clock.time()
        if self._held is None or self._held[0] != trust or self._held[1] <= now:
            leaf = server_leaf(trust, self._names, now=self._clock.utc())
            until = now + (leaf.not_after.timestamp() - now) * RENEW_AT
            shown = leaf._replace(certificate=leaf.certificate + _roots(trust))
            # No ALPN: linkerd2-proxy offers none, and h2 is spoken whatever was agreed on.
            made = tls.server(shown, trust.bundle, required=False, alpn=("h2",))
            self._held = (trust, until, made)
        return self._held[2]


def _roots(trust: Trust) -> bytes:
    """The anchor too: an agent that joins knows nothing but its hash."""
    last: x509.Certificate = trust.way[-1]
    return chains.write_pem((last,))
