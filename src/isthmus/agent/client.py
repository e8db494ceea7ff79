"""The identity service, as a client sees it."""

from __future__ import annotations

from typing import Any, Final

import grpc
import msgspec
from google.protobuf.wrappers_pb2 import BytesValue, StringValue

from isthmus.agent.contract import Means
from isthmus.agent.credential import Answer
from isthmus.aio import Backoff, Latest
from isthmus.errors import DeadlineExceeded, PeerFault, Unauthenticated, Unavailable
from isthmus.proto.linkerd import identity_pb2 as pb

PATIENCE: Final = 10.0
"""Seconds for one certificate."""
LARGEST: Final = 512 * 1024
"""Bytes of an answer."""
BACKOFF: Final = Backoff(first=0.2, most=5.0)

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # The path of a socket is no server's name.
    ("grpc.default_authority", "identity"),
)


class _Heard(msgspec.Struct):
    known: bool
    behind: list[str]


class IdentityClient:
    """Asks over `target`, a socket of this host: TLS is the tunnel's."""

    def __init__(self, target: str, means: Means) -> None:
        self._clock, self._random, self._log = means
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._certify: Any = self._channel.unary_unary(
            "/io.linkerd.proxy.identity.Identity/Certify",
            pb.CertifyRequest.SerializeToString,
            pb.CertifyResponse.FromString,
        )
        self._watch: Any = self._channel.unary_stream(
            "/isthmus.identity.v1.Anchors/Watch", None, BytesValue.FromString
        )
        self._tell: Any = {
            leaving: self._channel.unary_unary(
                f"/isthmus.identity.v1.Workloads/{'Leave' if leaving else 'Stay'}",
                StringValue.SerializeToString,
                BytesValue.FromString,
            )
            for leaving in (True, False)
        }
        self.anchors: Latest[bytes] = Latest(b"")
        """The bundle that the control plane told last."""

    async def certify(self, identity: str, token: bytes, csr: bytes) -> Answer:
        """See `Certifying`.

        Raises:
            Unauthenticated: it refuses; says why.
            Unavailable, DeadlineExceeded: it does not answer, or has no issuer.
        """
        asked = pb.CertifyRequest(identity=identity, token=token, certificate_signing_request=csr)
        try:
            answer: pb.CertifyResponse = await self._certify(asked, timeout=PATIENCE)
        except grpc.aio.AioRpcError as fault:
            raise _understood(fault) from fault
        return Answer(answer.leaf_certificate, tuple(answer.intermediate_certificates))

    async def tell(self, path: str, *, leaving: bool) -> bool:
        """Say that an ExternalWorkload (`NS/NAME`) leaves, or is there; whether all proxies know.

        Raises:
            Unauthenticated: it refuses; says why.
            Unavailable, DeadlineExceeded, PeerFault: it does not answer, or not sensibly.
        """
        try:
            answer = await self._tell[leaving](StringValue(value=path), timeout=PATIENCE)
            said = msgspec.json.decode(answer.value, type=_Heard)
        except grpc.aio.AioRpcError as fault:
            raise _understood(fault) from fault
        except msgspec.MsgspecError as fault:
            raise PeerFault(f"identity: an answer that is none: {fault}") from fault
        return said.known and not said.behind

    async def run(self) -> None:
        """Follow the anchors until cancelled."""
        failures = 0
        while True:
            try:
                async for told in self._watch(b""):
                    failures = 0
                    if told.value:
                        self.anchors.set(told.value)
            except grpc.aio.AioRpcError as fault:
                if not failures:
                    why = fault.details()
                    self._log.warning("the control plane's anchors are not told", why=why)
            failures += 1
            await self._clock.sleep(BACKOFF.pause(failures, self._random))

    async def close(self) -> None:
        """End everything."""
        await self._channel.close()


def _understood(
    fault: grpc.aio.AioRpcError,
) -> Unauthenticated | Unavailable | DeadlineExceeded | PeerFault:
    text = f"identity: {fault.details() or fault.code().name}"
    match fault.code():
        case grpc.StatusCode.UNAVAILABLE:
            return Unavailable(text)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceeded(f"identity: no answer within {PATIENCE:g} s")
        case (
            grpc.StatusCode.FAILED_PRECONDITION
            | grpc.StatusCode.PERMISSION_DENIED
            | grpc.StatusCode.INVALID_ARGUMENT
        ):
            return Unauthenticated(text)
        case _:
            return PeerFault(text)
