"""The shell around the machine: one task per stream, one write in flight."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol

from isthmus.aio import Log
from isthmus.board import Subscription
from isthmus.serve.linkerd.faults import Context, Handler, Refused, guarded
from isthmus.serve.linkerd.machine import Stream
from isthmus.serve.linkerd.method import Method, Read, Refusal


class Board(Protocol):
    """Where truth comes from."""

    @property
    def read(self) -> Read:
        """One answer, now."""

    def subscribe(self) -> Subscription:
        """Cells to watch."""


class Live:
    """A stream that is being served."""

    def __init__(self, stream: Stream[Any]) -> None:
        self.stream = stream
        self._task = asyncio.current_task()
        self._waiting = False

    async def change(self, cells: Subscription, address: tuple[Any, ...]) -> None:
        """Wait for a new truth, or for the end."""
        self._waiting = True
        try:
            self.stream.learn((await cells.next())[address])
        except asyncio.CancelledError:
            if not self.stream.over or self._task is None:
                raise  # the client has left
            self._task.uncancel()
        finally:
            self._waiting = False

    def end(self) -> None:
        """Have the stream closed with status OK.

        Only a task that waits is interrupted: one that writes finishes its message first.
        """
        self.stream.end()
        if self._waiting and self._task is not None:
            self._task.cancel()


class Streams:
    """All open streams of one listener. A client costs a task, a watched cell and one value."""

    def __init__(self, board: Board, log: Log) -> None:
        self._board = board
        self._log = log
        self._live: dict[Live, str] = {}
        self._closing = False
        self.opened: Counter[str] = Counter()
        """Streams by method, those that ended included."""
        self.messages: Counter[str] = Counter()
        """Messages written, by method."""
        self.refused: Counter[tuple[str, ...]] = Counter()
        """Requests that got no stream, by method and status."""

    @property
    def live(self) -> Counter[str]:
        """Open streams by method."""
        return Counter(self._live.values())

    def handler(self, name: str, method: Method) -> Handler:
        """What answers calls of a method."""

        async def handle(request: bytes, context: Context) -> None:
            await self._serve(name, method, request, context)

        return guarded(handle, self._log)

    def close(self) -> list[Live]:
        """Refuse new streams; return those that are open, for their ends."""
        self._closing = True
        return list(self._live)

    async def _serve(self, name: str, method: Method, request: bytes, context: Context) -> None:
        key = self._key(name, method, request)
        stream: Stream[Any] = Stream(method.steps)
        # Read first: where the query fails, which is a bug, a watched cell would say nothing.
        stream.learn(self._board.read(method.answer, key))
        live = Live(stream)
        self._live[live] = name
        self.opened[name] += 1
        try:
            async with self._board.subscribe() as cells:
                cells.add(method.answer, key)
                await self._pump(live, cells, (method.answer, key), context)
        finally:
            del self._live[live]

    def _key(self, name: str, method: Method, request: bytes) -> Any:  # noqa: ANN401  # any key
        if self._closing:
            refusal = Refusal("UNAVAILABLE", "the server is stopping")
        else:
            key = method.question(self._board.read, request)
            if not isinstance(key, Refusal):
                return key
            refusal = key
        self.refused[name, refusal.status] += 1
        raise Refused(refusal)

    async def _pump(
        self, live: Live, cells: Subscription, address: tuple[Any, ...], context: Context
    ) -> None:
        name = self._live[live]
        while not live.stream.over:
            message = live.stream.next()
            if message is None:
                await live.change(cells, address)
            else:
                await context.write(message)
                self.messages[name] += 1
