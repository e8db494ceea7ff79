"""The audit file: appended by a thread of its own pace, rotated by size, never waited for.

`audit.log` is the newest; full, it becomes `audit.log.1`, that one `audit.log.2`, and so on; the
last is removed. Lines wait in a bounded buffer. When it is full, because the disk is slow or gone,
they are dropped, and the next line that can be written says how many were: an audit that could stop
the API, or grow until the machine does, would be a weapon.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from isthmus.aio import Batch, Clock, Log
from isthmus.model.times import format_micro_time
from isthmus.serve.kube.api import Verdict
from isthmus.serve.kube.audit import escaped, line, noteworthy

FILE: Final = "audit.log"


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: `files` of `size` bytes, and `waiting` lines that are not yet in one."""

    size: int = 16 * 2**20
    files: int = 8
    waiting: int = 10_000


class AuditFile:
    """The files in one directory. Everything here waits for the disk: call it from a thread."""

    def __init__(self, directory: Path, sizes: Sizes) -> None:
        self._path = directory / FILE
        self._sizes = sizes

    def append(self, lines: Sequence[bytes]) -> tuple[int, OSError | None]:
        """Write the lines, beginning a new file when one is full; never half a line.

        How many of them were written, and why the others were not.
        """
        at = 0
        try:
            while at < len(lines):
                end = self._fitting(lines, at)
                if end == at:
                    self._rotate()
                    continue
                self._write(b"".join(lines[at:end]))
                at = end
        except OSError as fault:
            return at, fault
        return at, None

    def _fitting(self, lines: Sequence[bytes], at: int) -> int:
        """Where the lines end that the newest file has room for; an empty one takes any line."""
        held = self._held()
        while at < len(lines) and (held == 0 or held + len(lines[at]) <= self._sizes.size):
            held += len(lines[at])
            at += 1
        return at

    def _held(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _write(self, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self._path, flags, 0o600)
        try:
            os.fchmod(handle, 0o600)
            before = os.fstat(handle).st_size
            try:
                while data:
                    data = data[os.write(handle, data) :]
            except OSError:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)

    def _rotate(self) -> None:
        """Every file takes the next number; the one that has the last goes."""
        for number in range(self._sizes.files - 1, 0, -1):
            older = self._numbered(number)
            newer = self._numbered(number - 1)
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        self._path.unlink(missing_ok=True)  # where only one file is kept

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{FILE}.{number}") if number else self._path


class AuditLog:
    """Takes verdicts at any time, and writes their lines while it runs."""

    def __init__(self, directory: Path, clock: Clock, log: Log, sizes: Sizes | None = None) -> None:
        self._sizes = sizes or Sizes()
        self._file = AuditFile(directory, self._sizes)
        self._clock = clock
        self._log = log
        self._waiting: Batch[bytes] = Batch(self._sizes.waiting)
        self._lost = 0
        self._failing = False
        self._closed = False
        self.dropped = 0
        """Lines that were never written."""
        self.written = 0

    def observe(self, verdict: Verdict) -> None:
        """Note the request if it is to be noted. Never waits."""
        if not noteworthy(verdict):
            return
        if self._closed or not self._waiting.offer(line(verdict, self._clock.utc())):
            self._drop(1)

    async def run(self) -> None:
        """Write until cancelled. What comes later waits for `close`."""
        while True:
            await self._write(await self._waiting.take())

    async def close(self) -> None:
        """Write what is left. Call it when `run` has ended and nobody observes any more."""
        self._closed = True
        self._waiting.close()
        await self._write(await self._waiting.take())

    async def _write(self, lines: Sequence[bytes]) -> None:
        lost = self._lost
        batch = [self._told(), *lines] if lost else lines
        if not batch:
            return
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(None, self._file.append, batch)
        try:
            await asyncio.shield(writing)
        finally:
            # Also when this is cancelled meanwhile: a thread is not, and ends soon.
            written, fault = await writing
            self._account(len(batch), written, lost, fault)

    def _account(self, lines: int, written: int, lost: int, fault: OSError | None) -> None:
        """Note what a write came to; `lost` is what its first line told, if that was written."""
        if lost and written:
            self._lost -= lost
        told = 1 if lost else 0
        self.written += max(0, written - told)
        self._drop(lines - max(written, told))
        if fault is not None and not self._failing:
            self._log.warning("the audit cannot be written", why=str(fault))
        self._failing = fault is not None

    def _told(self) -> bytes:
        """The line that stands for those that are missing."""
        moment = format_micro_time(self._clock.utc())
        return escaped({"time": moment, "verdict": "lost", "lines": self._lost})

    def _drop(self, lines: int) -> None:
        self._lost += lines
        self.dropped += lines
