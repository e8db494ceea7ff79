"""Stored records as the asker wants to see them: in which version, in which form.

Stored bytes in the stored version are shown by splicing the revision in, without decoding; other
versions are converted. A `Shape` is what two askers must have in common to be shown the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from isthmus.errors import Unavailable
from isthmus.model.kind import Document, Kind, Version
from isthmus.serve.kube.events import EventType, Seen, bookmark_object, line
from isthmus.serve.kube.negotiate import Form, accept
from isthmus.serve.kube.query import Query
from isthmus.serve.kube.table import Include, ListMeta, Tables, include, partial, partial_list
from isthmus.store.codec import document as read_document
from isthmus.store.codec import encode, with_revision
from isthmus.store.contract import Record


class Shape(NamedTuple):
    """A version, a form, and what Table rows carry."""

    version: str
    form: Form
    rows: Include = Include.METADATA


def shape_of(accept_header: str, query: Query, version: Version) -> Shape:
    """The shape that a read asks for; BadRequest for an unknown includeObject."""
    asked = query.get("includeObject", ("",))[0]
    return Shape(version.name, accept(accept_header), include(asked))


def convert(kind: Kind, document: Document, to: str) -> Document:
    """The document in another version of its kind (itself when it is in it already)."""
    present = str(document.get("apiVersion", "")).rpartition("/")[2]
    if present == to and not kind.definition:
        return document
    converted = kind.convert(document, present, to) if kind.convert else dict(document)
    return {**converted, "apiVersion": kind.api_version(to)}


def deprecation(kind: Kind, version: Version) -> tuple[str, ...]:
    """The warning that comes with the use of a version that is on its way out."""
    if not version.deprecated or kind.definition:
        return (version.deprecated,) if version.deprecated else ()
    return (f"{kind.api_version(version.name)} {kind.name} is deprecated: {version.deprecated}",)


class Showing:
    """How one version of one kind is shown. Make it once and keep it: it holds encoded headings."""

    def __init__(self, kind: Kind, version: Version) -> None:
        self._kind = kind
        self._version = version
        self._tables = Tables(version)

    def raw(self, value: bytes, revision: int) -> bytes:
        """Stored bytes as JSON in this version, with their resourceVersion (0: they have none)."""
        if self._version.name != self._kind.stored or self._kind.definition:
            value = encode(convert(self._kind, read_document(value, 0), self._version.name))
        return with_revision(value, revision) if revision else value

    def one(self, shape: Shape, value: bytes, revision: int, now: float) -> bytes:
        """One object. `now` is seconds since the epoch, for ages."""
        raw = self.raw(value, revision)
        match shape.form:
            case Form.TABLE:
                return self._tables.of_object(raw, revision, now, shape.rows)
            case Form.METADATA | Form.METADATA_LIST:
                return partial(raw)
            case _:
                return raw

    def many(
        self, shape: Shape, records: Iterable[Record], meta: ListMeta, now: float
    ) -> Iterator[bytes]:
        """The pieces of a list: its head, then one per object (with its comma), then its tail."""
        empty = self._empty(shape, meta, now)
        yield empty[:-2]  # every list ends in "]}"
        comma = b""
        for record in records:
            try:
                item = self._item(shape, self.raw(record.value, record.revision), now)
            except Unavailable:  # bytes that are no object; who asks for it by name is told
                continue
            yield comma + item
            comma = b","
        yield b"]}"

    def _empty(self, shape: Shape, meta: ListMeta, now: float) -> bytes:
        match shape.form:
            case Form.TABLE:
                return self._tables.of_list((), meta, now, shape.rows)
            case Form.METADATA | Form.METADATA_LIST:
                return partial_list((), meta)
            case _:
                api_version = self._kind.api_version(self._version.name)
                head = f'{{"kind":"{self._kind.name}List","apiVersion":"{api_version}","metadata":'
                return b"".join((head.encode(), meta.encode(), b',"items":[]}'))

    def _item(self, shape: Shape, raw: bytes, now: float) -> bytes:
        match shape.form:
            case Form.TABLE:
                return self._tables.row(raw, now, shape.rows)
            case Form.METADATA | Form.METADATA_LIST:
                return partial(raw)
            case _:
                return raw

    def line(self, shape: Shape, seen: Seen, now: float, *, first: bool) -> bytes:
        """A watch event. `first`: the stream's first Table, which names the columns."""
        raw = self.raw(seen.value, seen.revision)
        match shape.form:
            case Form.TABLE:
                table = self._tables.of_object(raw, seen.revision, now, shape.rows, headings=first)
                return line(seen.type, table)
            case Form.METADATA | Form.METADATA_LIST:
                return line(seen.type, partial(raw))
            case _:
                return line(seen.type, raw)

    def bookmark(self, shape: Shape, revision: int, *, first: bool, initial_end: bool) -> bytes:
        """A BOOKMARK in the form of the watch."""
        api_version, name = self._kind.api_version(self._version.name), self._kind.name
        if shape.form in (Form.METADATA, Form.METADATA_LIST):
            api_version, name = "meta.k8s.io/v1", "PartialObjectMetadata"
        raw = bookmark_object(api_version, name, revision, initial_end)
        if shape.form is Form.TABLE:
            raw = self._tables.of_bookmark(raw, headings=first)
        return line(EventType.BOOKMARK, raw)


MOST_SHOWINGS: Final = 1024
"""So many are kept: definitions of kinds come and go, and with them their schemas."""


class Showings:
    """The `Showing` of every version of every kind, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[Kind, Showing]] = {}

    def of(self, kind: Kind, version: Version) -> Showing:
        """The showing; made anew if the kind's record was replaced."""
        key = (kind.resource, version.name)
        held = self._made.get(key)
        if held is None or held[0] is not kind:
            if len(self._made) >= MOST_SHOWINGS:
                del self._made[next(iter(self._made))]
            held = self._made[key] = (kind, Showing(kind, version))
        return held[1]
