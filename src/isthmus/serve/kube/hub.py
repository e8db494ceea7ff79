"""One watch of the store, shared by every watcher of the API.

The hub reads the store's events once and keeps the newest of each resource in a bounded ring. A
watcher is a `Cursor`: a position in a ring, no queue. Where nothing happens to what a cursor
looks at, it is not woken and loses nothing; a watcher that does not read while the ring turns
over loses its place (Compacted, told as 410: list again), at nobody's cost but its own.

Each event keeps what was made of it (the bytes of one line per representation), so that one
change costs one encoding however many watch it.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from isthmus.aio import Alarm, Clock, breathe
from isthmus.errors import IsthmusError, Unavailable
from isthmus.model.kind import Document
from isthmus.serve.kube.events import Seen, expired, relative
from isthmus.store.codec import document
from isthmus.store.contract import Batch, Event, Record, Store

RING_EVENTS = 4096
"""Most events kept per resource."""

RING_BYTES = 16 * 2**20
"""Most bytes of objects kept per resource; one event is always kept."""

SLICE = 256
"""So many events reach the rings before watchers get a turn."""


class Entry:
    """One event of one resource, and what was made of it, for all who ask."""

    __slots__ = ("_decoded", "_made", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self._decoded: dict[int, Document] | None = None
        self._made: dict[object, bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes of the objects it holds."""
        return sum(len(r.value) for r in (self.event.record, self.event.previous) if r is not None)

    def decoded(self, record: Record) -> Document:
        """One of the event's records as a document; decoded once, not to be changed."""
        if self._decoded is None:
            self._decoded = {}
        held = self._decoded.get(record.revision)
        if held is None:
            try:
                held = document(record.value, 0)
            except Unavailable:  # bytes that are no object match nothing but everything
                held = {}
            self._decoded[record.revision] = held
        return held

    def seen(self, matches: Callable[[Document], bool] | None) -> Seen | None:
        """What a watcher with this filter is told of it; None: nothing."""
        if matches is None:
            return relative(self.event)
        return relative(self.event, lambda record: matches(self.decoded(record)))

    def made(self, representation: object, make: Callable[[], bytes]) -> bytes:
        """The bytes of this representation, made the first time somebody wants them."""
        if self._made is None:
            self._made = {}
        held = self._made.get(representation)
        if held is None:
            held = self._made[representation] = make()
        return held


class Scope(NamedTuple):
    """What a cursor looks at within a resource: a namespace and a name, "" for all."""

    namespace: str = ""
    name: str = ""

    def holds(self, event: Event) -> bool:
        """Whether the event is of an object in scope."""
        return self.namespace in {"", event.key.namespace} and self.name in {"", event.key.name}


class Ring:
    """The newest events of one resource. Positions count up for ever; `floor` is a store revision.

    Every event after revision `floor` is in the ring, as far as the hub has read.
    """

    def __init__(self, floor: int, *, events: int, size: int) -> None:
        self.floor = floor
        self.start = 0
        self._entries: deque[Entry] = deque()
        self._most = events
        self._most_bytes = size
        self._bytes = 0
        self.closed = False
        """Nothing follows: the resource is served no more."""
        self._parked: dict[Scope, set[Cursor]] = {}

    @property
    def end(self) -> int:
        """The position after the newest event."""
        return self.start + len(self._entries)

    def append(self, event: Event) -> None:
        """Add an event and wake the cursors that wait for one like it, placed right before it."""
        entry = Entry(event)
        self._entries.append(entry)
        self._bytes += entry.size
        while len(self._entries) > self._most or (
            self._bytes > self._most_bytes and len(self._entries) > 1
        ):
            dropped = self._entries.popleft()
            self._bytes -= dropped.size
            self.floor = dropped.event.revision
            self.start += 1
        for scope in _scopes(event):
            for cursor in tuple(self._parked.get(scope, ())):
                cursor.wake(self.end - 1)

    def position(self, since: int) -> int | None:
        """The position of the first event after revision `since`; None if it may be gone."""
        if since < self.floor:
            return None
        newer = 0
        for entry in reversed(self._entries):
            if entry.event.revision <= since:
                break
            newer += 1
        return self.end - newer

    def slice(self, position: int, most: int) -> list[Entry]:
        """Up to `most` entries from a position that is still kept."""
        first = position - self.start
        last = min(first + most, len(self._entries))
        return [self._entries[index] for index in range(first, last)]

    def park(self, scope: Scope, cursor: Cursor) -> None:
        """Have the cursor woken by the next event in scope."""
        self._parked.setdefault(scope, set()).add(cursor)

    def unpark(self, scope: Scope, cursor: Cursor) -> None:
        """Undo `park`; harmless twice."""
        parked = self._parked.get(scope)
        if parked is not None:
            parked.discard(cursor)
            if not parked:
                del self._parked[scope]

    def drop(self, floor: int) -> None:
        """Forget everything: all cursors lose their place, those that wait are told at once."""
        self.start = self.end + 1
        self.floor = floor
        self._entries.clear()
        self._bytes = 0
        for cursor in self.waiting():
            cursor.wake(None)

    def waiting(self) -> list[Cursor]:
        """The cursors that are parked here."""
        return [cursor for parked in self._parked.values() for cursor in parked]


def _scopes(event: Event) -> Iterator[Scope]:
    namespace, name = event.key.namespace, event.key.name
    yield Scope()
    yield Scope("", name)
    if namespace:
        yield Scope(namespace)
        yield Scope(namespace, name)


class Cursor:
    """One watcher's place. Use as a context manager; `next` is for one task at a time."""

    __slots__ = (
        "_after",
        "_hub",
        "_lost",
        "_position",
        "_ring",
        "_said",
        "_scope",
        "_waiter",
        "due",
    )

    def __init__(self, hub: Hub, ring: Ring, scope: Scope, since: int, position: int) -> None:
        self._hub = hub
        self._ring = ring
        self._scope = scope
        self._after = since
        self._said = since
        self._position = position
        self._waiter: asyncio.Future[None] | None = None
        self._lost = False
        self.due = math.inf
        """When the hub's clock looks at this cursor next; the hub writes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ring.unpark(self._scope, self)

    @property
    def closed(self) -> bool:
        """Nothing will follow: the hub is closed, or the resource is served no more."""
        return self._hub.closed or self._ring.closed

    @property
    def revision(self) -> int:
        """Once `next` returned nothing: everything in scope up to here was handed out."""
        return max(self._said, self._hub.revision)

    async def next(self, until: float, most: int = 256) -> Sequence[Entry]:
        """The next entries in scope, at least one; or nothing, when the clock shows `until`.

        Raises Compacted when the place is lost. Costs one future while it waits, nothing else. Let
        `until` be near (a minute): the clock remembers a closed cursor for as long.
        """
        while True:
            taken = self._take(most)
            if taken:
                return taken
            if self._position < self._ring.end:
                continue
            if self.closed or self._hub.now() >= until:
                return ()
            await self._wait(until)

    def _take(self, most: int) -> list[Entry]:
        if self._lost or self._position < self._ring.start:
            raise expired(self._after, self._ring.floor)
        entries = self._ring.slice(self._position, most)
        self._position += len(entries)
        if entries:
            self._said = max(self._said, entries[-1].event.revision)
        return [e for e in entries if e.event.revision > self._after and self._scope.holds(e.event)]

    async def _wait(self, until: float) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._ring.park(self._scope, self)
        if until < self.due:
            self._hub.call_at(until, self)
        try:
            await self._waiter
        finally:
            self._ring.unpark(self._scope, self)
            self._waiter = None

    def wake(self, position: int | None) -> None:
        """An event in scope stands at `position`; None: the place is lost."""
        if self._waiter is None or self._waiter.done():
            return
        if position is None:
            self._lost = True
        else:
            self._position = position
        self._waiter.set_result(None)

    def ring_out(self) -> None:
        """The time it waits until has come."""
        if self._waiter is not None and not self._waiter.done():
            self._position = self._ring.end
            self._waiter.set_result(None)


class Hub:
    """The rings of all resources and the one task that fills them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        ring_events: int = RING_EVENTS,
        ring_bytes: int = RING_BYTES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._events = ring_events
        self._size = ring_bytes
        self._rings: dict[str, Ring] = {}
        self._floor = store.revision
        self._timers: list[tuple[float, int, Cursor]] = []
        self._order = 0
        self._alarm: Alarm | None = None
        self._alarm_at = 0.0
        self.revision = store.revision
        self.closed = False

    def now(self) -> float:
        """The clock's monotonic time, by which `Cursor.next` ends its waits."""
        return self._clock.now()

    async def run(self) -> None:
        """Read the store until cancelled, which ends all watches in good order.

        When the store fails, or forgot what was not read yet, every watcher is told to list again
        and the error is raised; then it may be run again.
        """
        since = self._store.revision
        try:
            async with self._store.watch(since) as watch:
                self._restart(since)
                while True:
                    await self._absorb(await watch.next())
        except asyncio.CancelledError:
            self.close()
            raise
        except IsthmusError:
            self._restart(self._store.revision)
            raise

    async def _absorb(self, batch: Batch) -> None:
        """Let watchers read in between, or a large batch turns a ring over before they come."""
        rested = 0
        for count, event in enumerate(batch.events):
            # Never between events of one transaction: bookmarks name whole revisions.
            if event.revision > self.revision and count - rested >= SLICE:
                rested = count
                await breathe()
            self._ring(event.key.resource).append(event)
            self.revision = event.revision
        self.revision = batch.revision

    def close(self) -> None:
        """Let every wait end now and from now on; the watches see `closed` and end."""
        self.closed = True
        for ring in self._rings.values():
            for cursor in ring.waiting():
                cursor.ring_out()

    def retire(self, resources: Collection[str]) -> None:
        """Let the watches of these resources end, in good order, once they have told everything.

        Whoever watches one of them from now on begins anew.
        """
        for resource in resources:
            ring = self._rings.pop(resource, None)
            if ring is not None:
                ring.closed = True
                for cursor in ring.waiting():
                    cursor.ring_out()
            self._rings[resource] = Ring(self.revision, events=self._events, size=self._size)

    def _restart(self, floor: int) -> None:
        self._floor = floor
        self.revision = floor
        for ring in self._rings.values():
            ring.drop(floor)

    def _ring(self, resource: str) -> Ring:
        ring = self._rings.get(resource)
        if ring is None:
            ring = Ring(self._floor, events=self._events, size=self._size)
            self._rings[resource] = ring
        return ring

    def cursor(self, resource: str, scope: Scope, since: int) -> Cursor | None:
        """A cursor over everything after store revision `since`; None if the ring begins later."""
        ring = self._ring(resource)
        position = ring.position(since)
        return None if position is None else Cursor(self, ring, scope, since, position)

    def call_at(self, until: float, cursor: Cursor) -> None:
        """Call `cursor.ring_out` then, if it still waits; one alarm serves all cursors.

        A cursor is on the list once or twice, however often it waits: an early ring is harmless.
        """
        self._order += 1
        cursor.due = until
        heapq.heappush(self._timers, (until, self._order, cursor))
        if self._alarm is None or until < self._alarm_at:
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = self._timers[0][0]
        self._alarm = self._clock.call_later(self._alarm_at - self._clock.now(), self._ring_out)

    def _ring_out(self) -> None:
        self._alarm = None
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            _, _, cursor = heapq.heappop(self._timers)
            cursor.due = math.inf
            cursor.ring_out()
        if self._timers:
            self._set_alarm()
