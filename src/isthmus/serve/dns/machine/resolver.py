"""From a packet to the packet that answers it."""

from __future__ import annotations

from collections import Counter
from typing import ParamSpec, Protocol, TypeVar

from isthmus.engine import Query
from isthmus.serve.dns.machine import wire
from isthmus.serve.dns.machine.answers import FAILED, Finished, finished
from isthmus.serve.dns.machine.wire import Bad, Question, Rcode, Transport

P = ParamSpec("P")
T = TypeVar("T")

_CLASSES = (1, 255)
"""IN, and any."""
_META = frozenset(range(128, 255)) | {41}
"""Types that are no data but something to be done: transfers, signatures, keys to be agreed."""


class Read(Protocol):
    """One answer of the mesh, now: `board.read`."""

    def __call__(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        """The value. Raises whatever a query raised, which is a bug."""


class Resolver:
    """Answers packets. `counts` are the answers by transport and code; nothing else is kept."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.dropped = 0
        """Packets that got no answer."""

    def answer(self, packet: bytes, transport: Transport) -> bytes | None:
        """The answer, None where there must be none."""
        asked = wire.parse(packet)
        match asked:
            case None:
                self.dropped += 1
                return None
            case Bad():
                self._count(transport, asked.rcode)
                return wire.refusal(asked)
            case Question():
                found = self._find(asked)
                rcode = found if isinstance(found, Rcode) else found.rcode
                self._count(transport, rcode)
                if isinstance(found, Rcode):
                    return _code(asked, found)
                return _message(asked, found, wire.limit(asked, transport))

    def _count(self, transport: Transport, rcode: Rcode) -> None:
        self.counts[transport.value, rcode.name] += 1

    def _find(self, asked: Question) -> Finished | Rcode:
        if asked.edns is not None and asked.edns.version:
            return Rcode.BADVERS
        if asked.rdclass not in _CLASSES or asked.rdtype in _META:
            return Rcode.REFUSED
        try:
            return self._read(finished, asked.text, asked.rdtype)
        except Exception:  # noqa: BLE001  # a bug in a query, which the engine has logged
            return FAILED


def _code(asked: Question, rcode: Rcode) -> bytes:
    edns = wire.opt(asked.edns, rcode) if asked.edns is not None else b""
    counts = (1, 0, 0, 1 if edns else 0)
    return wire.header(asked.flags, asked.ident, rcode, 0, counts) + asked.raw + edns


def _message(asked: Question, found: Finished, limit: int) -> bytes:
    """The answer with the asker's own header and question; cut down if it does not fit.

    First the addresses go that nobody asked for; then, and that is said, answers from the end.
    """
    edns = wire.opt(asked.edns, found.rcode) if asked.edns is not None else b""
    room = limit - wire.HEADER.size - len(asked.raw) - len(edns)
    extra = wire.AA if found.ours else 0
    answer, authority, additional = len(found.answer), len(found.authority), len(found.additional)
    body = found.body
    if len(body) > room:
        additional = 0
        body = b"".join((*found.answer, *found.authority))
    if len(body) > room:
        extra, authority = extra | wire.TC, 0
        answer = _fitting(found.answer, room)
        body = b"".join(found.answer[:answer])
    counts = (1, answer, authority, additional + (1 if edns else 0))
    return (
        wire.header(asked.flags, asked.ident, found.rcode, extra, counts) + asked.raw + body + edns
    )


def _fitting(records: tuple[bytes, ...], room: int) -> int:
    """How many records fit, from the first."""
    for at, record in enumerate(records):
        room -= len(record)
        if room < 0:
            return at
    return len(records)
