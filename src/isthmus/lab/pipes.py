"""Reading and writing pipes from the loop, without a thread and without buffers of their own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import os
import struct
import termios

READ = 32 * 1024


class Terminal:
    """A pseudo-terminal; `ours` does not block. `name` is its path for the process."""

    def __init__(self, held: contextlib.ExitStack) -> None:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        self.name = os.ttyname(theirs)
        self.ours = held.enter_context(io.FileIO(ours, "r+"))
        self.theirs = held.enter_context(io.FileIO(theirs, "r+"))

    def resize(self, columns: int, rows: int) -> None:
        """Tell the process how large the window is."""
        size = struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)


class Pipe:
    """Two ends of a pipe; `ours` does not block."""

    def __init__(self, held: contextlib.ExitStack, *, outward: bool) -> None:
        """`outward`: the process writes, we read. Both ends are closed with `held`."""
        read, write = os.pipe2(os.O_CLOEXEC)
        ours, theirs = (read, write) if outward else (write, read)
        os.set_blocking(ours, False)
        self.ours = held.enter_context(io.FileIO(ours, "r" if outward else "w"))
        self.theirs = held.enter_context(io.FileIO(theirs, "w" if outward else "r"))


async def read(source: io.FileIO) -> bytes:
    """What is there, as soon as something is; nothing at the end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            data = source.read(READ)
        except OSError:  # what a terminal says when nobody is behind it any more
            return b""
        if data is not None:
            return data
        ready = loop.create_future()
        loop.add_reader(source, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(source)


async def write(target: io.FileIO, data: bytes) -> None:
    """All of it, as fast as it is read; when nobody reads, `target` is closed."""
    loop = asyncio.get_running_loop()
    rest = memoryview(data)
    while rest:
        try:
            written = target.write(rest)
        except BrokenPipeError:
            target.close()
            return
        if written is None:
            ready = loop.create_future()
            loop.add_writer(target, _wake, ready)
            try:
                await ready
            finally:
                loop.remove_writer(target)
        else:
            rest = rest[written:]


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
