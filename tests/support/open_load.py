"""Requests at a steady rate, whatever comes of them: a program of its own, beside the one tested.

    python -m tests.support.open_load PORT IP IP_PORT RATE EACH ROUNDS

Connects to 127.0.0.1:PORT as if IP:IP_PORT had been dialled (a PROXY header), and sends RATE
requests a second when their time has come, not when others were answered; a line `round` after
each EACH of them. At the end one line of JSON: answers by application or fault, the rate that was
kept, the latest request in milliseconds, and how many connections were made.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import NamedTuple

from isthmus.aio import SystemClock, deadline
from isthmus.errors import DeadlineExceeded

CLOCK = SystemClock()
PATIENCE = 20.0
"""Seconds for an answer."""


class Line(NamedTuple):
    """A connection, which is used again while nobody closes it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Load:
    """The sender."""

    def __init__(self, port: int, ip: str, to: int) -> None:
        self._port = port
        self._first = f"PROXY TCP4 127.0.0.1 {ip} 9 {to}\r\n".encode()
        self._idle: list[Line] = []
        self.found: Counter[str] = Counter()
        self.connections = 0

    async def one(self) -> None:
        """A request and its answer; a connection that was closed while idle is no fault."""
        try:
            async with deadline(CLOCK, PATIENCE, "an answer"):
                self.found[await self._asked()] += 1
        except (OSError, EOFError, DeadlineExceeded) as fault:
            self.found[repr(fault)] += 1

    async def _asked(self) -> str:
        while self._idle:
            line = self._idle.pop()
            try:
                return await self._on(line)
            except (ConnectionError, asyncio.IncompleteReadError) as fault:
                line.writer.close()
                if getattr(fault, "partial", b""):
                    raise
        line = Line(*await asyncio.open_connection("127.0.0.1", self._port))
        self.connections += 1
        line.writer.write(self._first)
        return await self._on(line)

    async def _on(self, line: Line) -> str:
        line.writer.write(b"GET / HTTP/1.1\r\nHost: cart\r\n\r\n")
        head = (await line.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await line.reader.readexactly(length)
        if b"\r\nconnection: close" in head:
            line.writer.close()
        else:
            self._idle.append(line)
        status = head.split(b" ")[1].decode()
        return str(json.loads(body)["app"]) if status == "200" else f"{status} {body.decode()}"


async def run(port: int, ip: str, to: int, rate: int, each: int, rounds: int) -> None:
    load, late, start = Load(port, ip, to), 0.0, CLOCK.now()
    async with asyncio.TaskGroup() as group:
        for number in range(each * rounds):
            due = start + number / rate
            await CLOCK.sleep(max(0.0, due - CLOCK.now()))
            late = max(late, CLOCK.now() - due)
            group.create_task(load.one())
            if number % each == each - 1:
                say("round")
        took = CLOCK.now() - start
    kept = round(each * rounds / took)
    figures = {"rate": kept, "late": round(late * 1000), "connections": load.connections}
    say(json.dumps({"found": load.found, **figures}))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _, port, ip, to, rate, each, rounds = sys.argv
    asyncio.run(run(int(port), ip, int(to), int(rate), int(each), int(rounds)))
