"""Living beside client-side apply: the annotation in which kubectl keeps what it applied.

Kubernetes does this for the manager `kubectl` alone, so that people can change from one to the
other: fields that kubectl applied on its side, and that nobody changed since, are no conflict; and
the annotation, where there is one, keeps saying what was applied last.
"""

from __future__ import annotations

from typing import Final

from isthmus.errors import IsthmusError
from isthmus.model.document import mapping, read_json, text
from isthmus.model.kind import Document
from isthmus.model.metacheck import MAX_ANNOTATIONS
from isthmus.model.walk import normalise
from isthmus.serve.kube.apply.compare import applied_fields, compare
from isthmus.serve.kube.apply.fields import EMPTY, FieldSet
from isthmus.serve.kube.apply.writing import Writing
from isthmus.store.codec import encode

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def own(writing: Writing, live: Document | None) -> FieldSet:
    """The fields that kubectl applied on its side and that still have their value."""
    last = _last(writing, live or {}) if writing.manager == KUBECTL else None
    if last is None or text(last, "apiVersion") != writing.api_version:
        return EMPTY
    view, schema = writing.ownable(last), writing.version.schema
    change = compare(schema, writing.ownable(live or {}), view)
    return applied_fields(schema, view).difference(change.written)


def noted(writing: Writing, document: Document, config: Document) -> Document:
    """The document with the configuration in its annotation, if it is kubectl's and has one.

    One that says the same in other words stays as it is.
    """
    if writing.manager != KUBECTL or not _annotation(document):
        return document
    plain = _plain(config)
    last = _last(writing, document)
    if last is not None and _plain(last) == plain:
        return document
    metadata = document["metadata"]
    said = encode(plain).decode() + "\n"
    annotations = {**metadata["annotations"], ANNOTATION: said}
    if sum(len(name) + len(each) for name, each in annotations.items()) > MAX_ANNOTATIONS:
        return document
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _plain(config: Document) -> Document:
    """The configuration without the annotation itself."""
    metadata = dict(mapping(config, "metadata"))
    held = mapping(metadata, "annotations")
    annotations = {name: value for name, value in held.items() if name != ANNOTATION}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**config, "metadata": metadata}


def _last(writing: Writing, document: Document) -> Document | None:
    """What kubectl applied last; None if the annotation is missing or cannot be read."""
    try:
        last = read_json(_annotation(document).encode())
    except (IsthmusError, UnicodeEncodeError):
        return None
    normalise(writing.version.schema, last)
    return last


def _annotation(document: Document) -> str:
    said = mapping(document, "metadata.annotations").get(ANNOTATION)
    return said if isinstance(said, str) else ""
