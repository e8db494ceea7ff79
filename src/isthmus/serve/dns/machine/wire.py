"""Headers, questions and EDNS (RFC 1035 section 4, RFC 6891), as far as a server must read them.

Compression is not allowed where we read names that count: nobody compresses a question, and
without it there is no loop to fall into.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum, IntEnum
from typing import Final, NamedTuple

HEADER: Final = struct.Struct(">HHHHHH")
_FIXED: Final = struct.Struct(">HHIH")
_TYPE_CLASS: Final = struct.Struct(">HH")

QR: Final = 0x8000
AA: Final = 0x0400
TC: Final = 0x0200
RD: Final = 0x0100
CD: Final = 0x0010
_OPCODE: Final = 0x7800
_ECHOED: Final = _OPCODE | RD | CD

OPT: Final = 41
DO: Final = 0x8000
PAYLOAD: Final = 1232
"""Bytes of a UDP answer that pass everywhere in one piece (DNS flag day 2020)."""
PLAIN: Final = 512
"""Bytes of a UDP answer to a client without EDNS."""
WHOLE: Final = 65535
"""Bytes of an answer over TCP."""

_LONGEST_NAME: Final = 255
_LONGEST_LABEL: Final = 63
_MOST_RECORDS: Final = 16
"""Records beside the question that are read; one is usual."""
LARGEST: Final = 4096
"""Bytes of a question with all that may come with it."""


class Rcode(IntEnum):
    """How a question ends."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    BADVERS = 16


class Transport(Enum):
    """How a packet came, and so how large the answer may be."""

    UDP = "udp"
    TCP = "tcp"


class Edns(NamedTuple):
    """What a client says of itself."""

    payload: int
    version: int
    flags: int


class Question(NamedTuple):
    """What is asked. `text` has small letters and no final dot; `raw` is the section as sent."""

    ident: int
    flags: int
    text: str
    rdtype: int
    rdclass: int
    raw: bytes
    edns: Edns | None


class Bad(NamedTuple):
    """A packet that cannot be answered with what it asks for, only with why not."""

    ident: int
    flags: int
    rcode: Rcode


class _MalformedError(Exception):
    """The packet ends early, or is no message."""


def parse(packet: bytes) -> Question | Bad | None:
    """The question of a packet; None for what must not be answered at all.

    An answer is never answered, or two servers could keep each other busy for ever.
    """
    if len(packet) < HEADER.size:
        return None
    ident, flags, questions, answers, authorities, additional = HEADER.unpack_from(packet)
    if flags & QR:
        return None
    if flags & _OPCODE:
        return Bad(ident, flags, Rcode.NOTIMP)
    plain = questions == 1 and not answers and not authorities
    if not plain or additional > _MOST_RECORDS or len(packet) > LARGEST:
        return Bad(ident, flags, Rcode.FORMERR)
    try:
        text, end = _name(packet, HEADER.size)
        rdtype, rdclass = _unpack(_TYPE_CLASS, packet, end)
        end += _TYPE_CLASS.size
        edns = _additional(packet, end, additional)
    except _MalformedError:
        return Bad(ident, flags, Rcode.FORMERR)
    return Question(ident, flags, text, rdtype, rdclass, packet[HEADER.size : end], edns)


def _unpack(layout: struct.Struct, packet: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(packet):
        raise _MalformedError
    return layout.unpack_from(packet, at)


def _name(packet: bytes, at: int) -> tuple[str, int]:
    """A name without compression, and where it ends."""
    labels, start = [], at
    while True:
        if at >= len(packet):
            raise _MalformedError
        length = packet[at]
        at += 1
        if not length:
            break
        if length > _LONGEST_LABEL or at + length > len(packet):
            raise _MalformedError
        labels.append(packet[at : at + length])
        at += length
        if at - start >= _LONGEST_NAME:
            raise _MalformedError
    return ".".join(map(_label, labels)), at


def _label(label: bytes) -> str:
    """A label as text; what no name of ours holds is escaped, so that a dot stays in its label."""
    text = label.lower().decode("latin-1")
    return (
        text.replace("\\", "\\\\").replace(".", "\\.") if b"." in label or b"\\" in label else text
    )


def _additional(packet: bytes, at: int, count: int) -> Edns | None:
    """EDNS among the records after the question; all others are passed over unread."""
    found: Edns | None = None
    for _ in range(count):
        start = at
        at = _skip(packet, at)
        rdtype, rdclass, ttl, length = _unpack(_FIXED, packet, at)
        at += _FIXED.size + length
        if at > len(packet):
            raise _MalformedError
        if rdtype == OPT:
            if found is not None or packet[start]:  # one, and of the root (RFC 6891, 6.1.1)
                raise _MalformedError
            found = Edns(rdclass, ttl >> 16 & 0xFF, ttl & 0xFFFF)
    if at != len(packet):
        raise _MalformedError
    return found


def _skip(packet: bytes, at: int) -> int:
    """Where the name at `at` ends; a pointer ends it and is not followed."""
    while at < len(packet):
        length = packet[at]
        if length >= 0xC0:
            return at + 2
        if length > _LONGEST_LABEL:
            break
        at += 1 + length
        if not length:
            return at
    raise _MalformedError


def limit(question: Question, transport: Transport) -> int:
    """Bytes that the answer may have."""
    if transport is Transport.TCP:
        return WHOLE
    return PLAIN if question.edns is None else min(max(question.edns.payload, PLAIN), PAYLOAD)


def header(
    flags: int, ident: int, rcode: Rcode, extra: int, counts: tuple[int, int, int, int]
) -> bytes:
    """An answer's header: of the asker's flags, what an answer repeats; `extra` are ours."""
    return HEADER.pack(ident, QR | flags & _ECHOED | extra | rcode & 0xF, *counts)


def opt(edns: Edns, rcode: Rcode) -> bytes:
    """Our half of EDNS: our size, the upper part of the code, and the asker's DO."""
    ttl = rcode >> 4 << 24 | edns.flags & DO
    return b"\0" + _FIXED.pack(OPT, PAYLOAD, ttl, 0)


def refusal(bad: Bad) -> bytes:
    """The answer to a packet whose question cannot be repeated."""
    return header(bad.flags, bad.ident, bad.rcode, 0, (0, 0, 0, 0))


class Frames:
    """Messages over TCP: two bytes of length before each (RFC 1035, section 4.2.2)."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.broken = False
        """A frame is empty or too long: whoever sends that is to be left."""

    def feed(self, data: bytes) -> None:
        """What has come."""
        self._held += data

    def take(self) -> Iterator[bytes]:
        """The messages that are whole; stop anywhere, and go on later."""
        while len(self._held) >= 2 and not self.broken:
            length = int.from_bytes(self._held[:2])
            if not 0 < length <= LARGEST:
                self.broken = True
            elif len(self._held) < 2 + length:
                return
            else:
                message = bytes(self._held[2 : 2 + length])
                del self._held[: 2 + length]
                yield message

    @staticmethod
    def frame(message: bytes) -> bytes:
        """A message to be sent."""
        return len(message).to_bytes(2) + message
