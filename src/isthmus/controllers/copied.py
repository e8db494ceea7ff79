"""Labels and annotations of Services that controllers make: what is copied, and whose a key is.

A key that a person sets stays as it is (decision 7). What was copied is recorded on the object, by
a digest of each value: a value that is not the recorded one was set by somebody else, and is theirs
from then on. The keys that say what the Service is, the *marks*, are always ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from isthmus.controllers.steps import JSON, canonical, drop_empty
from isthmus.mesh.candidates import REMOTE_NAME
from isthmus.mesh.exports import MIRROR_CLUSTER, MIRROR_ROOT, MIRRORED
from isthmus.mesh.services import LOCAL_MEMBER, REMOTE_CLUSTER, REMOTE_SERVICE
from isthmus.model.core import Service
from isthmus.model.meta import Meta, View

RECORD: Final = "multicluster.isthmus.dev/copied"
MARKS: Final = frozenset(
    {
        MIRRORED,
        MIRROR_CLUSTER,
        MIRROR_ROOT,
        REMOTE_CLUSTER,
        REMOTE_SERVICE,
        LOCAL_MEMBER,
        REMOTE_NAME,
    }
)
OPAQUE: Final = "config.linkerd.io/opaque-ports"
"""Copied whatever is excluded: without it, clients speak wrongly to the port (linkerd2 #5770)."""

_OURS: Final = ("mirror.linkerd.io", "multicluster.linkerd.io/", "multicluster.isthmus.dev/")
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "service.kubernetes.io/topology-aware-hints",
        "service.kubernetes.io/topology-mode",
    }
)
"""Of the other cluster alone: what kubectl applied there, how zones weigh (linkerd2 #11223)."""


class Keys(NamedTuple):
    """Labels and annotations."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Record(View, frozen=True):
    """What was copied: digests of the values."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def copies(meta: Meta, no_labels: Sequence[str], no_annotations: Sequence[str]) -> Keys:
    """What of a Service's metadata its stand-in takes over; exclusions as a Link lists them."""
    labels = {n: v for n, v in meta.labels.items() if _copied(n, no_labels)}
    notes = {n: v for n, v in meta.annotations.items() if n == OPAQUE or _copied(n, no_annotations)}
    return Keys(labels, notes)


def _copied(name: str, exclusions: Sequence[str]) -> bool:
    return (
        not name.startswith(_OURS)
        and name not in _NOT_COPIED
        and not any(excludes(each, name) for each in exclusions)
    )


def excludes(entry: str, name: str) -> bool:
    """Whether an exclusion means a key: the key itself, or `group/*` for all of its group."""
    return name.startswith(entry[:-1]) if entry.endswith("/*") else name == entry


def metadata(row: Service | None, marks: Keys, copied: Keys) -> dict[str, JSON]:
    """The merge patch from what a Service has (None: a new one) to its marks and copies, or {}."""
    held = row.metadata if row is not None else Meta()
    record = _recorded(held.annotations.get(RECORD))
    known = (None, None) if record is None else (record.labels, record.annotations)
    labels, of_labels = _patch(held.labels, marks.labels, copied.labels, known[0])
    notes, of_notes = _patch(held.annotations, marks.annotations, copied.annotations, known[1])
    said = drop_empty({"labels": of_labels, "annotations": of_notes})
    # Also an empty one is written: without any, everything that we would copy is ours.
    text = canonical(said).decode()
    if text != held.annotations.get(RECORD):
        notes[RECORD] = text
    return drop_empty({"labels": labels, "annotations": notes})


def marked(row: Service | None, marks: Keys) -> dict[str, JSON]:
    """As `metadata`, for what copies nothing, and so has nothing to record."""
    held = row.metadata if row is not None else Meta()
    labels, _ = _patch(held.labels, marks.labels, {}, {})
    notes, _ = _patch(held.annotations, marks.annotations, {}, {})
    return drop_empty({"labels": labels, "annotations": notes})


def _recorded(text: str | None) -> Record | None:
    """What the object says was copied; None if it does not, or nonsense."""
    try:
        return msgspec.json.decode(text, type=Record) if text is not None else None
    except msgspec.MsgspecError:
        return None


def _patch(
    now: Mapping[str, str],
    marks: Mapping[str, str],
    copied: Mapping[str, str],
    record: Mapping[str, str] | None,
) -> tuple[dict[str, str | None], dict[str, str]]:
    """The patch, and what is ours afterwards. Without a record, what we would copy is ours."""
    patch: dict[str, str | None] = dict.fromkeys(MARKS & now.keys() - marks.keys())
    patch |= {name: value for name, value in marks.items() if now.get(name) != value}
    ours: dict[str, str] = {}
    for name, value in copied.items():
        held = now.get(name)
        if held in (None, value) or record is None or record.get(name) == digest(held):
            ours[name] = digest(value)
            patch |= {} if held == value else {name: value}
    for name, said in (record or {}).items():
        if name in now and name not in copied and name not in marks and digest(now[name]) == said:
            patch[name] = None
    return patch, ours


def digest(value: str | None) -> str:
    """Enough to tell whether a value is the one that was written."""
    return hashlib.sha256((value or "").encode()).hexdigest()[:8]
