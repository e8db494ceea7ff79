"""A certificate that is kept fresh: asked for, checked, and renewed at two thirds of its life.

The key is made here and leaves the host never. What comes back is believed only after it was
compared with what was asked for and followed to an anchor.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.agent.contract import Means, Token
from isthmus.aio import Backoff, Clock, Latest, Watch
from isthmus.aio.supervise import describe, foreseen
from isthmus.ca import Leaf, chains, request
from isthmus.errors import PeerFault, UserFault

RENEW_AT: Final = 2 / 3
JITTER: Final = 0.1
"""Share by which a renewal may come earlier, so that not all workloads ask at once."""
SHORTEST: Final = 10.0
"""Seconds between two renewals at least (Linkerd's MIN_REFRESH)."""
BACKOFF: Final = Backoff(first=0.5, most=30.0)


class Answer(NamedTuple):
    """A leaf and its intermediates, DER."""

    leaf: bytes
    intermediates: tuple[bytes, ...]


class Certifying(Protocol):
    """The identity service."""

    async def certify(self, identity: str, token: bytes, csr: bytes) -> Answer:
        """A leaf, or an IsthmusError."""
        ...


class Held(NamedTuple):
    """What proves an identity, and what proves others'."""

    leaf: Leaf
    bundle: bytes

    def __repr__(self) -> str:
        """Without the key."""
        return f"Held(until {self.leaf.not_after:%Y-%m-%d %H:%M:%S})"


class Credential:
    """One identity's."""

    def __init__(
        self,
        identity: str,
        token: Token,
        service: Certifying,
        anchors: Latest[bytes],
        means: Means,
        *,
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> None:
        """`key`: keep to this one (hosts do); else each certificate has its own."""
        self.identity = identity
        self.held: Latest[Held | None] = Latest(None)
        self.why = ""
        """What the last attempt failed for."""
        self._token = token
        self._service = service
        self._anchors = anchors
        self._clock, self._random, self._log = means
        self._key = key

    async def run(self) -> None:
        """Get one, and keep it fresh, until cancelled."""
        failures = 0
        while True:
            try:
                await self.renew()
            except Exception as fault:  # noqa: BLE001  # tried again, for ever
                failures += 1
                self._failed(fault)
                await self._clock.sleep(BACKOFF.pause(failures, self._random))
                continue
            failures = 0
            await self._while_good()

    async def renew(self) -> None:
        """One attempt. IsthmusError if nothing came of it."""
        key = self._key or request.make_key()
        csr = request.make(key, self.identity)
        answer = await self._service.certify(self.identity, await self._token(), csr)
        bundle = self._anchors.value
        leaf = checked(answer, self.identity, key, bundle, self._clock)
        self.why = ""
        self.held.set(Held(leaf, bundle))
        self._log.info("certificate", identity=self.identity, until=leaf.not_after.isoformat())

    def _failed(self, fault: Exception) -> None:
        told = describe(fault)
        if told != self.why:
            trace = None if foreseen(fault) else fault
            self._log.warning(
                "no certificate yet", identity=self.identity, why=told, exc_info=trace
            )
        self.why = told

    async def _while_good(self) -> None:
        """Until two thirds of its life are over, or the anchors no longer bear it."""
        alarm = asyncio.Event()
        ring = self._clock.call_later(self._pause(), alarm.set)
        try:
            with self._anchors.watch() as anchors:
                while await _first(alarm, anchors):
                    if not self._borne(self._anchors.value):
                        return
        finally:
            ring.cancel()

    def _pause(self) -> float:
        held = self.held.value
        left = held.leaf.not_after.timestamp() - self._clock.time() if held is not None else 0.0
        return max(SHORTEST, left * RENEW_AT * self._random.uniform(1 - JITTER, 1))

    def _borne(self, bundle: bytes) -> bool:
        """Take new anchors, if they still bear the certificate. None at all changes nothing."""
        held = self.held.value
        if held is None or not bundle or bundle == held.bundle:
            return True
        try:
            anchors = chains.read_pem(bundle, "the anchors")
            chain = chains.read_pem(held.leaf.certificate, "the certificate")
            chains.path(chain, anchors, self._clock.utc())
        except UserFault:
            return False
        self.held.set(held._replace(bundle=bundle))
        return True


async def _first(alarm: asyncio.Event, news: Watch[bytes]) -> bool:
    """Whether news came before the alarm."""
    async with asyncio.TaskGroup() as group:
        rings = group.create_task(alarm.wait())
        comes = group.create_task(news.next())
        await asyncio.wait((rings, comes), return_when=asyncio.FIRST_COMPLETED)
        came = comes.done() and not alarm.is_set()
        rings.cancel()
        comes.cancel()
    return came


def checked(
    answer: Answer, identity: str, key: ec.EllipticCurvePrivateKey, bundle: bytes, clock: Clock
) -> Leaf:
    """The answer as a leaf.

    Raises:
        PeerFault: it is not what was asked for, or no anchor bears it.
    """
    try:
        certificates = [
            x509.load_der_x509_certificate(each)
            for each in (answer.leaf, *answer.intermediates[: chains.LONGEST])
        ]
        leaf = certificates[0]
        same = leaf.public_key() == key.public_key()
        names = (*chains.dns_names(leaf), *chains.uris(leaf))
        way = chains.path(certificates, chains.read_pem(bundle, "the anchors"), clock.utc())
    except ValueError as fault:
        raise PeerFault("the identity service answered with what is no certificate") from fault
    except UserFault as fault:
        raise PeerFault(f"the identity service's answer is not trusted: {fault.message}") from fault
    if not same or not names or names[0] != identity or len(way) < 2:
        raise PeerFault("the identity service answered with another's certificate")
    pem = chains.write_pem(certificates)
    return Leaf(pem, request.key_pem(key), leaf.not_valid_after_utc)
