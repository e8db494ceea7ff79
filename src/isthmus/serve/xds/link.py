"""One stream: a machine, what is true for its proxy, and the pump between them and gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Protocol

import grpc

from isthmus.aio import Clock, deadline
from isthmus.calls import Context
from isthmus.errors import DeadlineExceeded
from isthmus.serve.xds.contract import Cell, Node, Peer, Proxy, Resource, TypeUrl
from isthmus.serve.xds.hub import Hub, Sight
from isthmus.serve.xds.machine import PATIENCE, Convicted, Rejected, Response, Stream

EMPTY: Final[frozenset[str]] = frozenset()

Decode = Callable[[bytes], tuple[Any, Node | None]]


class Ear(Protocol):
    """Who hears what happens on streams: for counts and reports."""

    def wrote(self, link: Link, response: Response) -> None:
        """A response was written."""

    def changed(self, link: Link) -> None:
        """What the proxy rejects may be other resources now."""

    def rejected(self, link: Link, type_url: TypeUrl, one: Rejected) -> None:
        """A resource was proved to be unacceptable to the proxy."""


class Link:
    """A stream that is being served. It costs two tasks, a machine, and no copy of any truth."""

    def __init__(
        self,
        hub: Hub,
        proxy: Proxy,
        peer: Peer,
        node: Node,
        machine: type[Stream[Any]],
        convicted: Convicted,
        *,
        clock: Clock,
    ) -> None:
        self.proxy, self.peer, self.node = proxy, peer, node
        self.round = 0
        self.since = clock.now()
        self.sight: Sight | None = None
        self.machine = machine(self, convicted, self.since)
        self._hub = hub
        self._clock = clock
        self._woken = asyncio.Event()
        self._over = False
        self._view = proxy.dialect.view_query(proxy.asker)
        hub.follow(self, self._view, None)
        self.sight = hub.sight(self._view)

    # ---------------------------------------------------------------- what is true: Truth

    def names(self, type_url: TypeUrl) -> Collection[str] | None:
        """The names in sight."""
        return EMPTY if self.sight is None else self.sight.names.get(type_url, EMPTY)

    def resource(self, type_url: TypeUrl, name: str) -> Resource | None:
        """What the dialect's cell holds."""
        cell = self._cell(type_url, name)
        found: Resource | None = None if cell is None else self._hub.value(cell)
        return found

    def want(self, type_url: TypeUrl, name: str) -> None:
        """Follow the cell."""
        cell = self._cell(type_url, name)
        if cell is not None:
            self._hub.follow(self, cell, (type_url, name))

    def drop(self, type_url: TypeUrl, name: str) -> None:
        """Follow it no more."""
        cell = self._cell(type_url, name)
        if cell is not None:
            self._hub.leave(self, cell)

    def _cell(self, type_url: TypeUrl, name: str) -> Cell | None:
        return self.proxy.dialect.resource_query(self.proxy.asker, type_url, name)

    # ---------------------------------------------------------------- what changes: Follower

    def touch(self, type_url: TypeUrl, names: Iterable[str]) -> None:
        """Told by the hub."""
        self.machine.touch(type_url, names)

    def see(self, sight: Sight | None) -> None:
        """Another view: look at the names that differ. None keeps the proxy as it is."""
        before, self.sight = self.sight, sight or self.sight
        if self.sight is None or self.sight is before:
            return
        held, now = before or Sight(NOTHING), self.sight
        for type_url, names in self._hub.difference(held, now).items():
            self.machine.reveal(type_url, names)
        for type_url in held.open ^ now.open:
            self.machine.open(type_url)

    def wake(self) -> None:
        """Something may be there to be sent."""
        self._woken.set()

    # ---------------------------------------------------------------- the pump

    async def serve(
        self,
        context: Context,
        first: Any,  # noqa: ANN401
        decode: Decode,
        ear: Ear,
    ) -> None:
        """Serve until the proxy leaves, does not answer, or `end` is called."""
        try:
            self._hear(first, ear)
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(self._read(context, decode, ear))
                await self._write(context, ear)
                reader.cancel()
        finally:
            self.machine.close()
            self._hub.leave(self, self._view)

    def end(self) -> None:
        """Have the stream closed with status OK, once what is being written is written."""
        self._over = True
        self._woken.set()

    @property
    def ready(self) -> bool:
        """Whether all that it follows is known."""
        return self.sight is not None and self._hub.round >= self.round

    def has(self, type_url: TypeUrl, name: str) -> bool:
        """Whether the proxy has accepted the newest of a resource."""
        return self.ready and self._hub.fresh and self.machine.has(type_url, name)

    def _hear(self, request: Any, ear: Ear) -> None:  # noqa: ANN401
        guilty = self.machine.receive(request, self._clock.now())
        if guilty is not None:
            ear.rejected(self, request.type_url, guilty)
        ear.changed(self)
        self._woken.set()

    async def _read(self, context: Context, decode: Decode, ear: Ear) -> None:
        while (data := await read(context)) is not None:
            request, _ = decode(data)
            self._hear(request, ear)
        self.end()

    async def _write(self, context: Context, ear: Ear) -> None:
        while not self._over:
            self._woken.clear()
            response = self.machine.next(self._clock.now()) if self.ready else None
            if response is not None:
                async with deadline(self._clock, PATIENCE, "a response that the proxy reads"):
                    await context.write(response.body)
                ear.wrote(self, response)
                self._woken.set()
            elif (late := self.machine.overdue(self._clock.now())) is not None:
                raise DeadlineExceeded(f"no answer to a response with {late}")
            else:
                ear.changed(self)
                await self._sleep()

    async def _sleep(self) -> None:
        now = self._clock.now()
        due = self.machine.due(now)
        alarm = None if due is None else self._clock.call_later(due - now, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            if alarm is not None:
                alarm.cancel()


class _Nothing:
    """The view before the first."""

    types: dict[str, tuple[str, ...] | None] = {}  # noqa: RUF012  # never changed
    scope: tuple[str, ...] = ()


NOTHING: Final = _Nothing()


async def read(context: Context) -> bytes | None:
    """The next request; None when the peer sends no more."""
    data: Any = await context.read()
    return None if data is grpc.aio.EOF else data
