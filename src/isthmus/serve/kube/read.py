"""GET of one object, and LIST: paged, selected, at one revision.

resourceVersion means what the Kubernetes API conventions say: none, the newest; "0", whatever is
at hand; a number, not older, or with resourceVersionMatch=Exact (or a limit, or a continue token)
exactly that one. One store read answers a list whatever its size; it is written in slices, so
that a large list delays nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from isthmus.aio import Clock, breathe
from isthmus.errors import Compacted, NotFound
from isthmus.model.key import Key
from isthmus.model.kind import Kind
from isthmus.serve.kube.answer import Answer, Asked, Response, Stream, Write
from isthmus.serve.kube.options import ListOptions, Match, get_options, list_options, too_new
from isthmus.serve.kube.paging import list_expired, write_continue
from isthmus.serve.kube.selector import Selector
from isthmus.serve.kube.show import Showings, shape_of
from isthmus.serve.kube.status import subject
from isthmus.serve.kube.table import ListMeta
from isthmus.store.contract import Page, Record, Store

SLICE = 128
"""So many objects are shown before other requests get a turn."""

PAGE = 1000
"""So many records are read at a time for a list with a limit and a selector."""


class Reader:
    """Answers reads from the store."""

    def __init__(self, store: Store, showings: Showings, clock: Clock, secret: bytes) -> None:
        """`secret` keys continue tokens."""
        self._store = store
        self._showings = showings
        self._clock = clock
        self._secret = secret

    async def get(self, asked: Asked) -> Answer:
        """One object, or NotFound."""
        target, kind = asked.target, asked.kind
        self.fresh(get_options(asked.query).revision or 0)
        record = await self.record(kind, target.namespace, target.name)
        shape = shape_of(asked.accept, asked.query, asked.version)
        showing = self._showings.of(kind, asked.version)
        return Answer(showing.one(shape, record.value, record.revision, self._clock.time()))

    async def record(self, kind: Kind, namespace: str, name: str) -> Record:
        """The newest record of an object, or NotFound."""
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            raise NotFound("not found", about=subject(kind, name))
        return record

    def fresh(self, revision: int) -> None:
        """DeadlineExceeded ("Too large resource version") for a revision of the future."""
        if revision > self._store.revision:
            raise too_new(revision, self._store.revision)

    async def list(self, asked: Asked) -> Response:
        """A list in the shape asked for, whole or up to `limit` with a continue token."""
        options = list_options(asked.query, asked.kind, asked.target.namespace, self._secret)
        records, meta = await self.select(asked.kind, asked.target.namespace, options)
        shape = shape_of(asked.accept, asked.query, asked.version)
        showing = self._showings.of(asked.kind, asked.version)
        pieces = showing.many(shape, records, meta, self._clock.time())
        if len(records) <= SLICE:
            return Answer(b"".join(pieces))

        async def run(write: Write) -> None:
            for chunk in _chunks(pieces):
                await write(chunk)
                await breathe()

        return Stream(run)

    async def select(
        self, kind: Kind, namespace: str, options: ListOptions
    ) -> tuple[Sequence[Record], ListMeta]:
        """The selected records at one revision, and the metadata of their list."""
        self.fresh(options.revision or 0)
        one = options.selector.name
        if one and namespace and not options.exact:
            return await self._one(kind, namespace, one, options.selector)
        if not options.limit or options.selector.everything:
            return await self._whole(kind, namespace, options)
        return await self._filled(kind, namespace, options)

    async def _one(
        self, kind: Kind, namespace: str, name: str, selector: Selector
    ) -> tuple[Sequence[Record], ListMeta]:
        revision = self._store.revision
        record = await self._store.get(kind.key(namespace, name))
        found = [record] if record is not None and selector.matches_raw(record.value) else []
        return found, ListMeta(max(revision, *(r.revision for r in found), 0))

    async def _page(
        self, kind: Kind, namespace: str, revision: int, after: Key | None, limit: int
    ) -> Page:
        try:
            return await self._store.list(
                kind.resource, namespace, revision=revision, after=after, limit=limit
            )
        except Compacted as gone:
            raise list_expired(continued=after is not None) from gone

    async def _whole(
        self, kind: Kind, namespace: str, options: ListOptions
    ) -> tuple[Sequence[Record], ListMeta]:
        revision = _revision(options)
        page = await self._page(kind, namespace, revision, options.after, options.limit)
        records: Sequence[Record] = page.records
        if not options.selector.everything:
            records = await _matching(records, options.selector)
        if not page.more or not page.records:
            return records, ListMeta(page.revision)
        token = write_continue(page.revision, page.records[-1].key, namespace, self._secret)
        return records, ListMeta(page.revision, token, page.remaining)

    async def _filled(
        self, kind: Kind, namespace: str, options: ListOptions
    ) -> tuple[Sequence[Record], ListMeta]:
        """Up to `limit` selected records: read on at one revision until there are enough."""
        found: list[Record] = []
        revision, after, more = _revision(options), options.after, True
        while more and len(found) <= options.limit:
            page = await self._page(kind, namespace, revision, after, PAGE)
            found += await _matching(page.records, options.selector)
            revision, more = page.revision, page.more
            after = page.records[-1].key if page.records else None
        if len(found) <= options.limit:
            return found, ListMeta(revision)
        found = found[: options.limit]
        token = write_continue(revision, found[-1].key, namespace, self._secret)
        return found, ListMeta(revision, token)


def _revision(options: ListOptions) -> int:
    """The store revision to read at; 0 the newest."""
    # A limit beside a revision means exactly that revision (Kubernetes: legacy "Exact").
    if options.limit and options.match is Match.UNSET:
        return options.revision or 0
    return options.exact


async def _matching(records: Sequence[Record], selector: Selector) -> list[Record]:
    found: list[Record] = []
    for start in range(0, len(records), SLICE):
        part = records[start : start + SLICE]
        found += [record for record in part if selector.matches_raw(record.value)]
        if len(records) > SLICE:
            await breathe()
    return found


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces joined, SLICE at a time."""
    held: list[bytes] = []
    for piece in pieces:
        held.append(piece)
        if len(held) == SLICE:
            yield b"".join(held)
            held = []
    if held:
        yield b"".join(held)
