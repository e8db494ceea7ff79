"""WATCH: what there is, if asked for, then what happens, one JSON object per line.

A watch is one `hub.Cursor` and this loop. It costs no queue: while it waits it holds one future,
and when its client does not read it holds nothing but its place, which it may lose (ERROR 410,
list again). From before the hub's ring it first reads the store's own history. Rules: Kubernetes
API conventions, "Efficient detection of changes"; KEP 3157 for sendInitialEvents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from isthmus.aio import Clock, breathe
from isthmus.errors import Compacted, Unavailable
from isthmus.model.kind import Document, Kind
from isthmus.serve.kube.answer import Asked, Stream, Write
from isthmus.serve.kube.events import EventType, Seen, gone
from isthmus.serve.kube.hub import Cursor, Entry, Hub, Scope
from isthmus.serve.kube.limits import Limits
from isthmus.serve.kube.options import ListOptions, WatchOptions, watch_options
from isthmus.serve.kube.read import SLICE, Reader
from isthmus.serve.kube.show import Shape, Showing, Showings, shape_of
from isthmus.store.contract import Batch, Record, Store

CHUNK = 256 * 1024
"""Events waiting for one watcher are written together, up to about so many bytes."""


class Watching:
    """Opens watches."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        reader: Reader,
        showings: Showings,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._store = store
        self._hub = hub
        self._reader = reader
        self._showings = showings
        self._clock = clock
        self._limits = limits

    async def open(self, asked: Asked) -> Stream:
        """The stream of a watch request. What is wrong with it is raised here, before any byte."""
        options = watch_options(asked.query, asked.kind)
        shape = shape_of(asked.accept, asked.query, asked.version)
        scope = Scope(asked.target.namespace, asked.target.name or options.selector.name)
        self._reader.fresh(options.revision or 0)
        showing = self._showings.of(asked.kind, asked.version)
        lines = Lines(showing, shape, options, self._clock)
        watch = _Watch(self, asked.kind, scope, lines, options)
        if options.from_start:
            await watch.list_first(self._reader)
        return Stream(watch.run, watching=True)

    @property
    def parts(self) -> tuple[Store, Hub, Clock, Limits]:
        """What one watch needs."""
        return self._store, self._hub, self._clock, self._limits


class Lines:
    """The bytes one watcher is sent: shared with all who watch in the same shape."""

    def __init__(self, showing: Showing, shape: Shape, options: WatchOptions, clock: Clock) -> None:
        self._showing = showing
        self._shape = shape
        self._clock = clock
        # Only the first Table of a stream names its columns.
        self._first = True
        selector = options.selector
        # A lone metadata.name is the scope already.
        plain = not selector.labels and all(t.field == "metadata.name" for t in selector.fields)
        named = plain and bool(selector.name) and len(selector.fields) == 1
        self._matches: Callable[[Document], bool] | None = (
            None if selector.everything or named else selector.matches
        )

    def of_record(self, record: Record) -> bytes:
        """ADDED, for what exists when the watch begins."""
        return self._line(Seen(EventType.ADDED, record.value, record.revision))

    def of_entry(self, entry: Entry) -> bytes:
        """The line of an event, or nothing where the selector looks away."""
        seen = entry.seen(self._matches)
        if seen is None:
            return b""
        key = (self._showing, self._shape, seen.type, self._first)
        made = entry.made(key, lambda: self._line(seen))
        self._first = self._first and not made
        return made

    def of_bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """BOOKMARK: everything up to `revision` was said."""
        first, self._first = self._first, False
        return self._showing.bookmark(self._shape, revision, first=first, initial_end=initial_end)

    def _line(self, seen: Seen) -> bytes:
        try:
            made = self._showing.line(self._shape, seen, self._clock.time(), first=self._first)
        except Unavailable:  # bytes that are no object: nobody can be shown it
            return b""
        self._first = False
        return made


class _Watch:
    """One watch, from its request to its end."""

    def __init__(
        self, watching: Watching, kind: Kind, scope: Scope, lines: Lines, options: WatchOptions
    ) -> None:
        self._store, self._hub, self._clock, limits = watching.parts
        self._kind = kind
        self._scope = scope
        self._lines = lines
        self._options = options
        self._since = options.revision or 0
        self._initial: Sequence[Record] = ()
        self._pause = limits.bookmark_time
        self._end = self._clock.now() + min(options.timeout or limits.watch_time, limits.watch_time)

    async def list_first(self, reader: Reader) -> None:
        """Read what the watch begins with."""
        selector = self._options.selector
        options = ListOptions(selector=selector, revision=self._options.revision)
        records, meta = await reader.select(self._kind, self._scope.namespace, options)
        self._initial = [r for r in records if self._scope.name in {"", r.key.name}]
        self._since = meta.revision

    async def run(self, write: Write) -> None:
        """Write everything until the time is over, the client is gone, or the place is lost."""
        try:
            await self._begin(write)
            with await self._cursor(write) as cursor:
                await self._follow(cursor, write)
        except Compacted as lost:
            await write(gone(lost))

    async def _begin(self, write: Write) -> None:
        records, self._initial = self._initial, ()
        for start in range(0, len(records), SLICE):
            part = records[start : start + SLICE]
            await write(b"".join([self._lines.of_record(record) for record in part]))
            await breathe()
        if self._options.initial_events:
            await write(self._lines.of_bookmark(self._since, initial_end=True))

    async def _cursor(self, write: Write) -> Cursor:
        """A place in the hub's ring; older events are read from the store first."""
        resource, scope, since = self._kind.resource, self._scope, self._since
        cursor = self._hub.cursor(resource, scope, since)
        if cursor is not None:
            return cursor
        async with self._store.watch(since) as history:
            while cursor is None:
                batch = await history.next()
                await self._replay(batch, write)
                cursor = self._hub.cursor(resource, scope, batch.revision)
        return cursor

    async def _replay(self, batch: Batch, write: Write) -> None:
        mine = [
            Entry(event)
            for event in batch.events
            if event.key.resource == self._kind.resource and self._scope.holds(event)
        ]
        for start in range(0, len(mine), SLICE):
            await self._write(mine[start : start + SLICE], write)
            await breathe()

    async def _follow(self, cursor: Cursor, write: Write) -> None:
        bookmark = self._clock.now() + self._pause
        while (now := self._clock.now()) < self._end and not cursor.closed:
            if now >= bookmark:
                bookmark = now + self._pause
                if self._options.bookmarks and not await self._passed(cursor, write):
                    await write(self._lines.of_bookmark(cursor.revision))
            entries = await cursor.next(min(bookmark, self._end))
            await self._write(entries, write)
        if self._options.bookmarks and not await self._passed(cursor, write):
            await write(self._lines.of_bookmark(cursor.revision))

    async def _passed(self, cursor: Cursor, write: Write) -> bool:
        """Whether there still was something to say, which a bookmark must not overtake."""
        entries = await cursor.next(self._clock.now())
        await self._write(entries, write)
        return bool(entries)

    async def _write(self, entries: Iterable[Entry], write: Write) -> None:
        held: list[bytes] = []
        size = 0
        for entry in entries:
            line = self._lines.of_entry(entry)
            held.append(line)
            size += len(line)
            if size >= CHUNK:
                await write(b"".join(held))
                held, size = [], 0
        if size:
            await write(b"".join(held))
