"""Objects as bytes: one JSON object, canonical, so that equal documents are equal bytes.

apiVersion, kind and metadata come first, the rest by name; inside, keys are sorted. What the record
knows is not in the bytes: `metadata.resourceVersion` is the record's revision and is spliced in on
the way out, because it is only known once the bytes are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from isthmus.errors import BadRequest, Unavailable
from isthmus.model.kind import Document

FIRST: Final = ("apiVersion", "kind", "metadata")
NOT_STORED: Final = ("resourceVersion", "selfLink")
"""Fields of metadata that are not the object's own."""

# Nothing but two strings comes before the metadata of canonical bytes. What others wrote into the
# store may look otherwise.
_CANONICAL: Final = re.compile(
    rb'\{(?:"apiVersion":"[^"\\]*",)?(?:"kind":"[^"\\]*",)?"metadata":\{'
)

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(type=dict)


def encode(document: Document) -> bytes:
    """The canonical bytes of a document.

    BadRequest if it holds what JSON cannot say (a lone surrogate).
    """
    return b"{" + b",".join(_fields(document)) + b"}"


def _fields(document: Document) -> Iterator[bytes]:
    for name in FIRST:
        if name in document:
            value = document[name]
            if name == "metadata":
                value = {each: value[each] for each in value if each not in NOT_STORED}
            yield b'"%s":%s' % (name.encode(), _json(value))
    for name in sorted(document.keys() - FIRST):
        yield _json(name) + b":" + _json(document[name])


def _json(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (msgspec.MsgspecError, UnicodeEncodeError, TypeError, RecursionError) as fault:
        raise BadRequest(f"the object cannot be written as JSON: {fault}") from None


def with_revision(raw: bytes, revision: int) -> bytes:
    """Stored bytes as they go out: `metadata.resourceVersion` is `revision`, all is in one line.

    Unavailable for bytes that are no object.
    """
    head = _CANONICAL.match(raw)
    if head is None or b"\n" in raw:
        return _ENCODER.encode(document(raw, revision))
    place = head.end()
    comma = b"" if raw.startswith(b"}", place) else b","
    return b'%s"resourceVersion":"%d"%s%s' % (raw[:place], revision, comma, raw[place:])


def document(raw: bytes, revision: int) -> Document:
    """The document in stored bytes, with `metadata.resourceVersion`; 0 leaves it out.

    A fresh value at each call: the caller may change it. Unavailable for bytes that are no object.
    """
    try:
        held: Document = _DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise Unavailable(f"a stored object cannot be read: {fault}") from None
    if not isinstance(held.get("metadata"), dict):
        held["metadata"] = {}
    if revision:
        held["metadata"]["resourceVersion"] = str(revision)
    return held


def copy(document: Document) -> Document:
    """A document of its own that may be changed; BadRequest as for `encode`."""
    held: Document = _DECODER.decode(_json(document))
    return held


def wishes(document: Document, *, status: bool) -> bytes:
    """Canonical bytes of what an object asks for: all but its type and metadata.

    Equal bytes, equal wishes; `==` on documents does not say that (True == 1). `status`: the status
    is a report here, not a wish.
    """
    reports = {*FIRST, "status"} if status else FIRST
    return _json({name: document[name] for name in document.keys() - reports})
