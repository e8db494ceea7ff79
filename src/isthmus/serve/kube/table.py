"""Objects as kubectl's `get` wants them: meta.k8s.io/v1 Tables, and metadata without the rest.

The server makes the cells (Age too); an object's metadata, or the object whole, goes into its row
as the bytes that are stored. The first column is Name (except of events), then come the columns of
the version, or Age if it has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.columns import AGE
from isthmus.model.kind import Column, Document, Version


class Include(StrEnum):
    """includeObject: what a row carries beside its cells."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


def include(value: str) -> Include:
    """The includeObject parameter; empty means Metadata."""
    if value in list(Include):
        return Include(value)
    if value:
        raise BadRequest(f"unrecognized includeObject value: {value[:64]!r}")
    return Include.METADATA


class ListMeta(NamedTuple):
    """The metadata of a list: its revision, and how to go on where `limit` cut it."""

    revision: int
    next: str = ""
    remaining: int | None = None

    def encode(self) -> bytes:
        """Its JSON."""
        said: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.next:
            said["continue"] = self.next
        if self.next and self.remaining is not None:
            said["remainingItemCount"] = self.remaining
        return msgspec.json.encode(said)


class _Head(msgspec.Struct, gc=False):
    """An object's metadata, left as bytes."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_HEAD = msgspec.json.Decoder(_Head)
_DOCUMENT = msgspec.json.Decoder(dict[str, Any])
_ENCODER = msgspec.json.Encoder()

_TABLE = b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":'
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
_PARTIALS = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'

_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Name must be unique within a namespace.",
    "priority": 0,
}


def partial(raw: bytes) -> bytes:
    """PartialObjectMetadata of an object's bytes."""
    return b"".join((_PARTIAL, _HEAD.decode(raw).metadata, b"}"))


def partial_list(raws: Iterable[bytes], meta: ListMeta) -> bytes:
    """PartialObjectMetadataList of the objects' bytes."""
    items = b",".join(map(partial, raws))
    return b"".join((_PARTIALS, meta.encode(), b',"items":[', items, b"]}"))


class Tables:
    """The tables of one version of one kind. Make it once: it holds encoded headings."""

    def __init__(self, version: Version) -> None:
        self._columns = version.columns or (AGE,)
        self._named = version.named
        names = [_NAME] if self._named else []
        self._headings = _ENCODER.encode([*names, *map(_heading, self._columns)])

    def of_list(
        self, raws: Iterable[bytes], meta: ListMeta, now: float, rows: Include = Include.METADATA
    ) -> bytes:
        """The table of a list; `now` is seconds since the epoch, for ages."""
        return self._table(
            self._headings, (self.row(raw, now, rows) for raw in raws), meta.encode()
        )

    def of_object(
        self,
        raw: bytes,
        revision: int,
        now: float,
        rows: Include = Include.METADATA,
        *,
        headings: bool = True,
    ) -> bytes:
        """The table of one object; events of a watch have headings in the first only."""
        shown = self._headings if headings else b"null"
        return self._table(shown, (self.row(raw, now, rows),), ListMeta(revision).encode())

    def of_bookmark(self, raw: bytes, *, headings: bool = False) -> bytes:
        """The table that a bookmark carries in a watch of tables: one row, no cells of its own."""
        row = b"".join((b'{"cells":[],"object":', raw, b"}"))
        meta = _HEAD.decode(raw).metadata
        return self._table(self._headings if headings else b"null", (row,), bytes(meta))

    @staticmethod
    def _table(headings: bytes, rows: Iterable[bytes], meta: bytes) -> bytes:
        parts = (_TABLE, meta, b',"columnDefinitions":', headings, b',"rows":[')
        return b"".join((*parts, b",".join(rows), b"]}"))

    def row(self, raw: bytes, now: float, rows: Include = Include.METADATA) -> bytes:
        """One row: cells computed, the object spliced."""
        document = _DOCUMENT.decode(raw)
        cells = [document.get("metadata", {}).get("name", "")] if self._named else []
        cells += [_cell(column, document, now) for column in self._columns]
        shown = _object(raw, rows)
        return b"".join((b'{"cells":', _ENCODER.encode(cells), b',"object":', shown, b"}"))


def _object(raw: bytes, rows: Include) -> bytes:
    if rows is Include.NONE:
        return b"null"
    return partial(raw) if rows is Include.METADATA else raw


def _cell(column: Column, document: Document, now: float) -> str | int | None:
    """The cell's value; an object too odd for its column spoils that cell only."""
    try:
        return column.cell(document, now)
    except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError):
        return "<invalid>"


def _heading(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": "",
        "description": column.description,
        "priority": column.priority,
    }
