"""What a watch says: one JSON object per line, made by splicing bytes, and made once per event.

An object's bytes are stored once and shown to many watchers, so a line is three pieces joined. What
a watcher with a selector is told is relative to its selector: an object that begins to match is
ADDED, one that ceases to match is DELETED (Kubernetes API conventions).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from isthmus.errors import Compacted
from isthmus.model.kind import Document
from isthmus.serve.kube.status import refusal
from isthmus.store.contract import Event, Record

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial events of a `sendInitialEvents` watch."""


class EventType(StrEnum):
    """The types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


_HEADS = {kind: b'{"type":"' + kind.encode() + b'","object":' for kind in EventType}


def line(kind: EventType, raw: bytes) -> bytes:
    """One event around the object's JSON bytes, which must hold no newline outside strings."""
    return b"".join((_HEADS[kind], raw, b"}\n"))


def bookmark(api_version: str, kind: str, revision: int, *, initial_end: bool = False) -> bytes:
    """A BOOKMARK: everything up to `revision` has been said.

    `initial_end` marks the end of the initial events, for which kubectl's WatchList waits.
    """
    return line(EventType.BOOKMARK, bookmark_object(api_version, kind, revision, initial_end))


def bookmark_object(api_version: str, kind: str, revision: int, initial_end: bool) -> bytes:  # noqa: FBT001
    """The object of a bookmark: the kind, a resourceVersion, and nothing else."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})


def failure(status: Document) -> bytes:
    """An ERROR around a Status; the stream ends after it."""
    return line(EventType.ERROR, msgspec.json.encode(status))


def expired(asked: int, oldest: int) -> Compacted:
    """What a watch from a forgotten revision gets, in Kubernetes' words."""
    return Compacted(f"too old resource version: {asked} ({oldest})")


def gone(error: Compacted) -> bytes:
    """The ERROR line of a watch that cannot go on: list again. Code 410, reason Expired."""
    return failure(refusal(error, "").status)


class Seen(NamedTuple):
    """A store event as one watcher sees it: the object's stored bytes, and the revision to show."""

    type: EventType
    value: bytes
    revision: int


def relative(event: Event, matches: Callable[[Record], bool] | None = None) -> Seen | None:
    """What a watcher that selects by `matches` is told of a store event; None: nothing.

    A vanishing object is shown as it was last seen, at the revision at which it vanished. `matches`
    None selects everything. Many watchers ask of one record: let `matches` remember its decoding.
    """
    now, before = event.record, event.previous
    in_now = now is not None and (matches is None or matches(now))
    was_in = before is not None and (matches is None or matches(before))
    if in_now and now is not None:
        kind = EventType.MODIFIED if was_in else EventType.ADDED
        return Seen(kind, now.value, event.revision)
    if was_in and before is not None:
        return Seen(EventType.DELETED, before.value, event.revision)
    return None
