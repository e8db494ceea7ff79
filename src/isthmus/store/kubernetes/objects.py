"""What another API says of objects: pages, events and single objects, read without belief."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from isthmus.errors import Compacted, IsthmusError, PeerFault, Unavailable
from isthmus.model.key import Key
from isthmus.model.kind import Document, Kind
from isthmus.store import codec
from isthmus.store.contract import MAX_VALUE
from isthmus.store.kubernetes import addresses
from isthmus.store.kubernetes.client import shown
from isthmus.store.kubernetes.resources import Resource

LONGEST_NAME: Final = 253


class Bounds(NamedTuple):
    """What one cluster may fill: objects in all, their bytes, bytes of one page."""

    objects: int = 100_000
    bytes: int = 256 * 2**20
    page: int = 8 * 2**20


BOUNDS: Final = Bounds()


class Page(NamedTuple):
    """Part of a list. `more` is the token for the next one, `version` where a watch begins."""

    items: list[msgspec.Raw]
    version: str
    more: str


class Seen(NamedTuple):
    """An event. `key` is None for a bookmark and for what is no object; `value` None for a delete.

    `version` is where the watch stands now.
    """

    key: Key | None
    value: bytes | None
    version: str


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Marked(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


_LIST: Final = msgspec.json.Decoder(_List)
_EVENT: Final = msgspec.json.Decoder(_Event)
_MARKED: Final = msgspec.json.Decoder(_Marked)
_STATUS: Final = msgspec.json.Decoder(_Status)
_OBJECT: Final = msgspec.json.Decoder(dict)
_UNFIT: Final = (TypeError, AttributeError, LookupError)
"""What converting raises for a document that does not fit the schema of its version."""
_JUNK: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def page(body: bytes) -> Page:
    """One page of a list; PeerFault if it is none."""
    try:
        read = _LIST.decode(body)
    except _JUNK as fault:
        raise PeerFault(f"this is no list of objects: {shown(str(fault))}") from None
    return Page(read.items or [], read.metadata.resource_version, read.metadata.more)


def event(line: bytes, resource: Resource, api: str) -> Seen:
    """One line of a watch.

    Raises:
        Compacted: the place is lost, list again.
        Unavailable: the server ends the watch for another reason.
        PeerFault: it is no event.
    """
    try:
        read = _EVENT.decode(line)
        if read.type == "ERROR":
            raise _ended(_STATUS.decode(read.object))
        version = _MARKED.decode(read.object).metadata.resource_version
    except _JUNK as fault:
        raise PeerFault(f"this is no event: {shown(str(fault))}") from None
    if read.type == "BOOKMARK":
        return Seen(None, None, version)
    if read.type not in ("ADDED", "MODIFIED", "DELETED"):
        raise PeerFault(f"an event of the type {shown(read.type)!r}")
    found = item(read.object, resource, api)
    if found is None:
        return Seen(None, None, version)
    key, value = found
    return Seen(key, None if read.type == "DELETED" else value, version)


def _ended(status: _Status) -> Compacted | Unavailable:
    if status.code in (410, 504):  # 504: a version of the future, the server was put back
        return Compacted(shown(status.message) or "the watch's place is lost")
    return Unavailable(f"the watch ends: {status.code} {shown(status.message)}")


def item(raw: msgspec.Raw, resource: Resource, api: str) -> tuple[Key, bytes] | None:
    """Key and canonical bytes of an object; None for what is none of this resource.

    `api` is the version it was asked for in; the bytes are in the one that we store.

    Who manages which field is nobody's business here, and often most of the bytes.
    """
    try:
        document: Document = _OBJECT.decode(raw)
        meta = document.get("metadata")
        key = _key(meta, resource) if isinstance(meta, dict) else None
        if key is None or not isinstance(meta, dict):
            return None
        meta.pop("managedFields", None)
        document = _stored(document, resource.kind, api)
        if resource.name in addresses.SIFTED:
            document = addresses.sifted(document)
        value = codec.encode(document)
    except (*_JUNK, *_UNFIT, IsthmusError):
        return None
    return (key, value) if len(value) <= MAX_VALUE else None


def _stored(document: Document, kind: Kind, api: str) -> Document:
    if kind.convert is not None and api != kind.stored:
        document = kind.convert(document, api, kind.stored)
    return {**document, "apiVersion": kind.api_version(), "kind": kind.name}


def _key(meta: dict[str, Any], resource: Resource) -> Key | None:
    name, namespace = meta.get("name"), meta.get("namespace", "")
    if not resource.kind.namespaced:
        return Key(resource.name, "", name) if _is_name(name) and not namespace else None
    return Key(resource.name, namespace, name) if _is_name(name) and _is_name(namespace) else None


def _is_name(text: object) -> TypeGuard[str]:
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_NAME
        and text.isascii()
        and text.isprintable()
        and "/" not in text
    )
