"""Living beside client-side apply: the annotation in which kubectl keeps what it applied.

Kubernetes does this for the manager `kubectl` alone, so that people can change from one to the
other: fields that kubectl applied on its side, and that nobody changed since, are no conflict; and
the annotation, where there is one, keeps saying what was applied last.
"""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.errors import IsthmusError
from isthmus.model.document import read_json, text
from isthmus.model.kind import Document
from isthmus.model.metacheck import MAX_ANNOTATIONS
from isthmus.model.walk import normalise
from isthmus.serve.kube.apply.compare import applied_fields, compare
from isthmus.serve.kube.apply.fields import EMPTY, FieldSet
from isthmus.serve.kube.apply.writing import Writing

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def own(writing: Writing, live: Document | None) -> FieldSet:
    """The fields that kubectl applied on its side and that still have their value."""
    said = _annotation(live or {})
    if writing.manager != KUBECTL or not said:
        return EMPTY
    try:
        last = read_json(said.encode())
    except (IsthmusError, UnicodeEncodeError):
        return EMPTY
    if text(last, "apiVersion") != writing.api_version:
        return EMPTY
    schema = writing.version.schema
    normalise(schema, last)
    view = writing.ownable(last)
    change = compare(schema, writing.ownable(live or {}), view)
    return applied_fields(schema, view).difference(change.written)


def noted(writing: Writing, document: Document, config: Document) -> Document:
    """The document with the configuration in its annotation, if it is kubectl's and has one."""
    if writing.manager != KUBECTL or not _annotation(document):
        return document
    metadata = document["metadata"]
    annotations = dict(metadata["annotations"])
    said = _said(config)
    annotations[ANNOTATION] = said
    if sum(len(name.encode()) + len(each.encode()) for name, each in annotations.items()) > (
        MAX_ANNOTATIONS
    ):
        return document
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _said(config: Document) -> str:
    """The configuration as kubectl writes it: without the annotation itself, one line."""
    metadata = dict(config.get("metadata") or {})
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        metadata["annotations"] = {n: v for n, v in annotations.items() if n != ANNOTATION}
    shown = {**config, "metadata": metadata}
    return msgspec.json.encode(shown, order="sorted").decode() + "\n"


def _annotation(document: Document) -> str:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    said = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return said if isinstance(said, str) else ""
