"""One gRPC health check over plain HTTP/2, by hand: 200 bytes there, a message back.

Rules: gRPC Health Checking Protocol; RFC 9113 (frames); RFC 7541 (literal header fields without
indexing). Sans I/O: bytes to send, bytes received, an answer.
"""

from __future__ import annotations

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0x0, 0x1, 0x4, 0x6, 0x7
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
MOST = 64 * 1024
"""Bytes of an answer that are looked at."""

SERVING = 1


class HealthCheck:
    """`send` holds what to send next; `receive` takes bytes; `healthy` is None until known."""

    def __init__(self, authority: str, service: str) -> None:
        name = service.encode()
        message = b"\x0a" + _varint(len(name)) + name if name else b""
        body = b"\0" + len(message).to_bytes(4, "big") + message
        headers = b"".join(
            _literal(key, value)
            for key, value in (
                (b":method", b"POST"),
                (b":scheme", b"http"),
                (b":path", b"/grpc.health.v1.Health/Check"),
                (b":authority", authority.encode()),
                (b"te", b"trailers"),
                (b"content-type", b"application/grpc"),
            )
        )
        self._out = PREFACE + _frame(SETTINGS, 0, 0, b"")
        self._out += _frame(HEADERS, END_HEADERS, 1, headers) + _frame(DATA, END_STREAM, 1, body)
        self._in = b""
        self._message = b""
        self.healthy: bool | None = None

    def send(self) -> bytes:
        """What to send now."""
        out, self._out = self._out, b""
        return out

    def receive(self, data: bytes) -> None:
        """Take in bytes; none at all: the peer closed."""
        if not data or len(self._in) + len(self._message) > MOST:
            self.healthy = self.healthy or False
            return
        self._in += data
        while self.healthy is None and len(self._in) >= 9:
            size = int.from_bytes(self._in[:3], "big")
            if len(self._in) < 9 + size:
                return
            kind, flags, stream = self._in[3], self._in[4], int.from_bytes(self._in[5:9], "big")
            payload, self._in = self._in[9 : 9 + size], self._in[9 + size :]
            self._frame(kind, flags, stream & 0x7FFFFFFF, payload)

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            self._out += _frame(SETTINGS, ACK, 0, b"")
        elif kind == PING and not flags & ACK:
            self._out += _frame(PING, ACK, 0, payload)
        elif kind == GOAWAY:
            self.healthy = False
        elif kind == DATA and stream == 1:
            self._message += payload
        if stream == 1 and (kind == DATA or flags & END_STREAM):
            self._judge(ended=bool(flags & END_STREAM))

    def _judge(self, *, ended: bool) -> None:
        """A HealthCheckResponse is one field: 1, a number."""
        if len(self._message) >= 5:
            size = int.from_bytes(self._message[1:5], "big")
            if len(self._message) >= 5 + size:
                self.healthy = self._message[5 : 5 + size] == bytes((0x08, SERVING))
                return
        if ended:
            self.healthy = False


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    """An integer with a 7-bit prefix (RFC 7541 section 5.1); the Huffman bit is off."""
    if number < 127:
        return bytes((number,))
    return b"\x7f" + _varint(number - 127)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
