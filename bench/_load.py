"""Load for a data plane: one process, few calls per request. Standard library only.

    python _load.py h1|h2 HOST PORT SECONDS

HTTP/1.1: 32 connections with one request under way each. HTTP/2: 8 connections with 8 streams each.
Prints how many requests were answered, how many of them not with 200, the seconds it took, and
microseconds of the median and the 99th of a hundred.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

REQUEST = b"GET / HTTP/1.1\r\nHost: backend\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WIDE = 2**31 - 1 - 65_535
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
# :method GET, :scheme http, :path / (static table), :authority backend (literal, not indexed).
BLOCK = b"\x82\x86\x84\x01\x07backend"


class Http1:
    """A connection with one request under way."""

    count = 32

    def __init__(self, line: socket.socket) -> None:
        self.line, self.held, self.sent = line, b"", 0.0

    def start(self) -> None:
        """The first request."""
        self._ask()

    def _ask(self) -> None:
        self.sent = time.perf_counter()
        self.line.send(REQUEST)

    def heard(self, data: bytes, seen: list[float]) -> tuple[int, int]:
        """Answers that are complete, and those of them that are not fine."""
        self.held += data
        head, found, rest = self.held.partition(b"\r\n\r\n")
        if not found:
            return 0, 0
        lower = head.lower()
        at = lower.index(b"content-length:") + 15
        size = int(lower[at:].split(b"\r\n", 1)[0])
        if len(rest) < size:
            return 0, 0
        seen.append(time.perf_counter() - self.sent)
        bad = 0 if head[9:12] == b"200" else 1
        self.held = rest[size:]
        self._ask()
        return 1, bad


class Http2:
    """A connection with eight streams under way."""

    count = 8
    streams = 8

    def __init__(self, line: socket.socket) -> None:
        self.line, self.held, self.next = line, b"", 1
        self.sent: dict[int, float] = {}

    def start(self) -> None:
        """Preface, windows without limits, the first requests."""
        wide = frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 2**31 - 1))
        more = frame(8, 0, 0, struct.pack("!I", WIDE))
        self.line.send(PREFACE + wide + more + b"".join(self._ask() for _ in range(self.streams)))

    def _ask(self) -> bytes:
        stream, self.next = self.next, self.next + 2
        self.sent[stream] = time.perf_counter()
        return frame(HEADERS, 5, stream, BLOCK)

    def heard(self, data: bytes, seen: list[float]) -> tuple[int, int]:
        """Answers that are complete, and those of them that are not fine."""
        self.held += data
        at, done, bad, out = 0, 0, 0, []
        while len(self.held) - at >= 9:
            size = int.from_bytes(self.held[at : at + 3], "big")
            if len(self.held) - at - 9 < size:
                break
            kind, flags = self.held[at + 3], self.held[at + 4]
            stream = int.from_bytes(self.held[at + 5 : at + 9], "big")
            payload = self.held[at + 9 : at + 9 + size]
            at += 9 + size
            if kind == HEADERS and payload[:1] != b"\x88":  # :status 200, indexed
                bad += 1
            if kind in (DATA, HEADERS) and flags & 1:
                seen.append(time.perf_counter() - self.sent.pop(stream))
                done += 1
                out.append(self._ask())
            elif kind == SETTINGS and not flags & 1:
                out.append(frame(SETTINGS, 1, 0, b""))
            elif kind == PING and not flags & 1:
                out.append(frame(PING, 1, 0, payload))
            elif kind == GOAWAY:
                raise SystemExit("the other side goes away")
        self.held = self.held[at:]
        if out:
            self.line.send(b"".join(out))
        return done, bad


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame of HTTP/2."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def main(kind: str, host: str, port: int, seconds: float) -> None:
    """Load, and tell."""
    make: type[Http1 | Http2] = Http1 if kind == "h1" else Http2
    poll, lines = select.epoll(), dict[int, Http1 | Http2]()
    for _ in range(make.count):
        line = socket.create_connection((host, port), timeout=10)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines[line.fileno()] = make(line)
        poll.register(line.fileno(), select.EPOLLIN)
    seen: list[float] = []
    started, answered, wrong = time.perf_counter(), 0, 0
    for each in lines.values():
        each.start()
    while time.perf_counter() - started < seconds:
        for handle, _ in poll.poll(1.0):
            data = lines[handle].line.recv(65_536)
            if not data:
                raise SystemExit("the other side closed")
            done, bad = lines[handle].heard(data, seen)
            answered, wrong = answered + done, wrong + bad
    took = time.perf_counter() - started
    seen.sort()
    middle, late = (seen[int(len(seen) * share)] * 1e6 for share in (0.5, 0.99))
    print(answered, wrong, took, middle, late)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
