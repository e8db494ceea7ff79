"""The shell around the machine: one task per stream, one write in flight."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from isthmus.aio import Log
from isthmus.calls import Context, Refusal, Refused, guarded
from isthmus.serve.linkerd.machine import Stream
from isthmus.serve.linkerd.method import Method
from isthmus.serve.linkerd.topics import Board, Topics

Handler = Callable[[bytes, Context], Awaitable[None]]
Answer = Callable[[bytes, Context], Awaitable[bytes]]


class Live:
    """A stream that is being served."""

    def __init__(self, stream: Stream[Any]) -> None:
        self.stream = stream
        self._loop = asyncio.get_running_loop()
        self._asleep: asyncio.Future[None] | None = None

    def learn(self, true: Any) -> None:  # noqa: ANN401  # a value of any answer
        """This is true now."""
        self.stream.learn(true)
        self._rouse()

    def end(self) -> None:
        """Have the stream closed with status OK; a message that is being written goes first."""
        self.stream.end()
        self._rouse()

    async def change(self) -> None:
        """Wait for a new truth, or for the end."""
        self._asleep = self._loop.create_future()
        try:
            await self._asleep
        finally:
            self._asleep = None

    def _rouse(self) -> None:
        if self._asleep is not None and not self._asleep.done():
            self._asleep.set_result(None)


class Streams:
    """All open streams of one listener. A client costs a task and one value."""

    def __init__(self, board: Board, log: Log) -> None:
        self._board = board
        self._log = log
        self.topics = Topics(board)
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

    def answer(self, name: str, method: Method) -> Answer:
        """What answers calls of a method with the first message of a stream, and no more."""

        async def handle(request: bytes, _context: Context) -> bytes:
            key = self._key(name, method, request)
            self.opened[name] += 1
            messages = method.steps(None, self._board.read(method.answer, key))
            self.messages[name] += 1
            return messages[0]

        return guarded(handle, self._log)

    def close(self) -> list[Live]:
        """Refuse new streams; return those that are open, for their ends."""
        self._closing = True
        return list(self._live)

    async def _serve(self, name: str, method: Method, request: bytes, context: Context) -> None:
        key = self._key(name, method, request)
        live = Live(Stream(method.steps))
        learn = live.learn
        self.topics.join(method.answer, key, learn)
        self._live[live] = name
        self.opened[name] += 1
        try:
            await self._pump(live, name, context)
        finally:
            del self._live[live]
            self.topics.leave(method.answer, key, learn)

    def _key(self, name: str, method: Method, request: bytes) -> Any:  # noqa: ANN401  # any key
        if self._closing:
            refusal = Refusal("UNAVAILABLE", "the server is stopping")
        else:
            key = method.question(self._board.read, request)
            if not isinstance(key, Refusal):
                return key
            refusal = key
        self.refused[name, refusal.status] += 1
        raise Refused(*refusal)

    async def _pump(self, live: Live, name: str, context: Context) -> None:
        stream = live.stream
        while not stream.over:
            message = stream.next()
            if message is None:
                await live.change()
            else:
                await context.write(message)
                self.messages[name] += 1
