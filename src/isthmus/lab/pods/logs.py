"""What a container says: files in the form that container runtimes write.

Each line is `TIME STREAM TAG text` (the CRI log format): TAG is F for a full line, P for a part
of a long one. A file that grows over its limit becomes `NAME.1`, replacing the last one. Readers
follow by a cell that counts what was written; nothing is polled.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from isthmus.aio import Clock, Latest, deadline
from isthmus.errors import DeadlineExceeded

LIMIT = 10 * 2**20
"""Bytes of one file (the kubelet's default); two are kept."""
LONGEST = 16 * 1024
"""Bytes of one line in the file; longer ones are cut into parts."""
READ = 64 * 1024
PATIENCE = 1.0
"""Seconds that output may still come after its process has ended."""


class Log:
    """The output of one run of a container."""

    def __init__(self, path: Path, clock: Clock, *, limit: int = LIMIT) -> None:
        self.path = path
        self._clock = clock
        self._limit = limit
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = path.open("ab", buffering=0)
        self._size = path.stat().st_size
        self._rest: dict[str, bytes] = {}
        self.turns = 0
        """How often the file was replaced."""
        self.written: Latest[tuple[int, int]] = Latest((0, self._size))

    @property
    def open(self) -> bool:
        """Whether more may come."""
        return self._file is not None

    def write(self, stream: str, data: bytes) -> None:
        """Add output of `stream` (stdout or stderr); half a line waits for its end."""
        *lines, rest = (self._rest.pop(stream, b"") + data).split(b"\n")
        parts: list[tuple[bytes, bytes]] = []
        for line in lines:
            parts += _cut(line)
        while len(rest) > LONGEST:
            parts.append((b"P", rest[:LONGEST]))
            rest = rest[LONGEST:]
        if rest:
            self._rest[stream] = rest
        self._put(stream, parts)

    def _put(self, stream: str, parts: list[tuple[bytes, bytes]]) -> None:
        if not parts or self._file is None:
            return
        stamp = f"{self._clock.utc():%Y-%m-%dT%H:%M:%S.%f}000Z {stream} ".encode()
        raw = b"".join(b"%b%b %b\n" % (stamp, tag, text) for tag, text in parts)
        if self._size and self._size + len(raw) > self._limit:
            self._turn()
        self._file.write(raw)
        self._size += len(raw)
        self.written.set((self.turns, self._size))

    def _turn(self) -> None:
        if self._file is not None:
            self._file.close()
        self.path.replace(previous(self.path))
        self._file = self.path.open("ab", buffering=0)
        self._size = 0
        self.turns += 1

    def close(self) -> None:
        """No more comes: write what has no end of line, and let followers go."""
        for stream, rest in tuple(self._rest.items()):
            self._put(stream, [(b"F", rest)])
        self._rest.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
        self.written.set((self.turns, -1))


def previous(path: Path) -> Path:
    """Where the file goes when it is full."""
    return path.with_name(f"{path.name}.1")


def _cut(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    while len(line) > LONGEST:
        yield b"P", line[:LONGEST]
        line = line[LONGEST:]
    yield b"F", line


class Pump:
    """Carries a pipe's output into a log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._open: set[int] = set()
        self._done = asyncio.Event()

    def pipe(self, stream: str) -> int:
        """The end for the process to write into; close it here once the process has it."""
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read, False)
        self._open.add(read)
        asyncio.get_running_loop().add_reader(read, self._readable, read, stream)
        return write

    def _readable(self, handle: int, stream: str) -> None:
        try:
            data = os.read(handle, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._log.write(stream, data)
            return
        self._close(handle)

    def _close(self, handle: int) -> None:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)
        self._open.discard(handle)
        if not self._open:
            self._done.set()

    async def done(self, clock: Clock) -> None:
        """When all writers are gone; those that fled are not waited for long."""
        try:
            async with deadline(clock, PATIENCE, "the end of the output"):
                await self._done.wait()
        except DeadlineExceeded:
            for handle in tuple(self._open):
                self._close(handle)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines a reader wants (core/v1 PodLogOptions)."""

    follow: bool = False
    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit: int | None = None


async def read(log: Log, wanted: Wanted) -> AsyncIterator[bytes]:
    """The lines wanted, some at a time; with `follow` until the log is closed."""
    reader = _Reader(log, wanted)
    with log.written.watch() as watch:
        while True:
            await watch.next()
            for chunk in reader.more():
                yield chunk
            if reader.full or not wanted.follow or not log.open:
                return


def plain(path: Path, wanted: Wanted) -> bytes:
    """What a program wrote into a file of its own, whose lines bear its own stamps: LIMIT at most.

    It cannot be followed, and `since` is not heeded. Nothing where there is no file yet.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LIMIT))
            lines = file.read(LIMIT).splitlines(keepends=True)
    except FileNotFoundError:
        return b""
    kept = lines if wanted.tail is None else lines[len(lines) - min(wanted.tail, len(lines)) :]
    return b"".join(kept)[: wanted.limit]


class _Reader:
    """Goes through a log's files from wherever it is."""

    def __init__(self, log: Log, wanted: Wanted) -> None:
        self._log = log
        self._wanted = wanted
        self._turn: int | None = None
        self._at = 0
        self._left = wanted.limit

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self._left is not None and self._left <= 0

    def more(self) -> Iterator[bytes]:
        if self._turn is None:
            self._turn = self._log.turns
            yield from self._shown(self._first())
            return
        if self._turn != self._log.turns:
            if self._log.turns - self._turn == 1:
                yield from self._shown(self._lines(previous(self._log.path)))
            self._turn, self._at = self._log.turns, 0
        yield from self._shown(self._lines(self._log.path))

    def _first(self) -> list[bytes]:
        old = [*_file(previous(self._log.path), 0)[0], *self._lines(self._log.path)]
        since = self._wanted.since
        if since is not None:
            stamp = f"{since:%Y-%m-%dT%H:%M:%S.%f}".encode()
            old = [line for line in old if line >= stamp]
        if self._wanted.tail is None:
            return old
        return _tail(old, self._wanted.tail)

    def _lines(self, path: Path) -> list[bytes]:
        lines, self._at = _file(path, self._at)
        return lines

    def _shown(self, lines: list[bytes]) -> Iterator[bytes]:
        parts: list[bytes] = []
        for line in lines:
            stamp, _, tag, text = line.split(b" ", 3)
            head = b"%b " % stamp if self._wanted.timestamps else b""
            parts.append(head + text + (b"" if tag == b"P" else b"\n"))
        raw = b"".join(parts)
        if self._left is not None:
            raw = raw[: self._left]
            self._left -= len(raw)
        if raw:
            yield raw


def _file(path: Path, at: int) -> tuple[list[bytes], int]:
    """Whole lines from a place on, and the place behind them."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            raw = file.read()
    except FileNotFoundError:
        return [], at
    end = raw.rfind(b"\n") + 1
    return raw[:end].splitlines(), at + end


def _tail(lines: list[bytes], most: int) -> list[bytes]:
    """The last `most` whole lines; parts count with the line that they end in."""
    kept: deque[bytes] = deque()
    whole = 0
    for line in reversed(lines):
        if line.split(b" ", 3)[2] == b"F":
            whole += 1
            if whole > most:
                break
        kept.appendleft(line)
    return list(kept) if most else []
