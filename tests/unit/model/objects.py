"""Objects for tests, and what a write does to them short of storing."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from isthmus.errors import Cause
from isthmus.model.intake import faults, prepare
from isthmus.model.kind import Document, Kind

NOW = 1_767_323_345.0
"""2026-01-02T03:09:05Z, five minutes after every object here was made."""


def made(kind: Kind, *, name: str = "a", **fields: object) -> Document:
    """A document of this kind."""
    metadata = {"name": name, "creationTimestamp": "2026-01-02T03:04:05Z"}
    if kind.namespaced:
        metadata["namespace"] = "ns"
    return {
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": metadata,
        **deepcopy(fields),
    }


def written(kind: Kind, document: Document, old: Document | None = None) -> Document:
    """The document after defaults and what is carried over."""
    document = deepcopy(document)
    prepare(kind, kind.versions[0], document)
    for carry in kind.carry:
        carry(document, old)
    return document


def told(kind: Kind, document: Document, old: Document | None = None) -> list[Cause]:
    """The faults of writing this document."""
    return faults(kind, written(kind, document, old), old)


def paths(kind: Kind, document: Document, old: Document | None = None) -> list[str]:
    """Where the faults are."""
    return [cause.path for cause in told(kind, document, old)]


def row(kind: Kind, document: Document, *, wide: bool = False) -> dict[str, Any]:
    """The cells of `kubectl get`, by column."""
    return {
        column.name: column.cell(document, NOW)
        for column in kind.versions[0].columns
        if wide or not column.priority
    }
