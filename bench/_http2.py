"""A light client of gRPC streams: raw HTTP/2 on asyncio, which reads no more than frame heads.

Each connection opens its calls at once, gives the server all the room it can have, and counts the
messages of each call. It is no general client: one DATA frame is taken as one message, which holds
for small ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
LARGEST = 2**31 - 1


class Call(NamedTuple):
    """A path of a method, and the bytes of its one request."""

    path: str
    request: bytes


class Connection(asyncio.Protocol):
    """Its calls have the stream numbers 1, 3, 5 ...; `heard(call)` is told of each message."""

    def __init__(self, calls: Sequence[Call], heard: Callable[[int], None]) -> None:
        self._calls = calls
        self._heard = heard
        self._unread = b""
        self.refused = 0
        self.bytes = 0
        """Bytes of messages."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        window = frame(SETTINGS, 0, 0, b"\0\4" + LARGEST.to_bytes(4, "big"))
        room = frame(WINDOW, 0, 0, (LARGEST - 65_535).to_bytes(4, "big"))
        calls = b"".join(call(2 * at + 1, each) for at, each in enumerate(self._calls))
        self._transport.write(PREFACE + window + room + calls)

    def data_received(self, data: bytes) -> None:
        data, at = self._unread + data, 0
        while len(data) - at >= 9:
            end = at + 9 + int.from_bytes(data[at : at + 3], "big")
            if end > len(data):
                break
            self._frame(data[at + 3], data[at + 4], data[at + 5 : at + 9], data[at + 9 : end])
            at = end
        self._unread = data[at:]

    def _frame(self, kind: int, flags: int, stream: bytes, payload: bytes) -> None:
        if kind == DATA and payload:
            self.bytes += len(payload) - 5
            self._heard(int.from_bytes(stream, "big") // 2)
        elif kind in (RST, GOAWAY) or (kind == HEADERS and flags & END_STREAM):
            self.refused += 1
        elif kind in (SETTINGS, PING) and not flags & ACK:
            self._transport.write(frame(kind, ACK, 0, payload if kind == PING else b""))

    def close(self) -> None:
        """Drop the connection."""
        self._transport.abort()


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame (RFC 9113, section 4.1)."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def call(stream: int, what: Call) -> bytes:
    """The frames that open a call and end its request."""
    # RFC 7541: POST and http are indexed, the rest are literals that nobody need remember.
    fields = b"\x83\x86" + b"\x04" + _text(what.path) + b"\x01" + _text("bench")
    fields += b"\x0f\x10" + _text("application/grpc") + b"\x00" + _text("te") + _text("trailers")
    message = b"\0" + len(what.request).to_bytes(4, "big") + what.request
    return frame(HEADERS, END_HEADERS, stream, fields) + frame(DATA, END_STREAM, stream, message)


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()
