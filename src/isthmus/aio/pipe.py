"""Two connections made one: bytes from each are written to the other until either ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NamedTuple

CHUNK: Final = 64 * 1024
"""Bytes carried at a time; as much again waits in each transport at most."""


class Streams(NamedTuple):
    """The two halves of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def carry(one: Streams, other: Streams) -> None:
    """Carry bytes both ways; return, with both closed, when one side has ended.

    There are no half-closed connections, as TLS has none. A connection that breaks is one that
    ends. A slow side holds the other back.
    """
    try:
        async with asyncio.TaskGroup() as group:
            ways = [
                group.create_task(_way(one.reader, other.writer)),
                group.create_task(_way(other.reader, one.writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
    finally:
        close(one)
        close(other)


def close(streams: Streams) -> None:
    """Close at once, whatever has not been written."""
    with contextlib.suppress(OSError, RuntimeError):
        streams.writer.close()


async def _way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # ssl's errors are OSErrors
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
