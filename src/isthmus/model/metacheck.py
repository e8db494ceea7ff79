"""Faults of metadata, the same for every kind (Kubernetes: ValidateObjectMeta and its update)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, number, strings, text, texts, truth
from isthmus.model.faults import forbidden, immutable, invalid, required, too_long, too_many
from isthmus.model.kind import Document, Kind
from isthmus.model.names import label_problems, label_value_problems, qualified_problems

MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of an object, keys and values."""

MAX_ENTRIES: Final = 1024
"""Labels, finalizers or owners of one object; nobody means more."""

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_KEPT: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")


def metadata_faults(document: Document, kind: Kind, old: Document | None) -> list[Cause]:
    """Every fault of `metadata`; with `old`, also of changing what may not change.

    Stands any document. Names are checked on create only: what is stored may stay.
    """
    meta = mapping(document, "metadata")
    found = chain(
        _name_faults(meta, kind) if old is None else _kept_faults(meta, mapping(old, "metadata")),
        _namespace_faults(meta, kind),
        labels_faults(texts(meta, "labels"), "metadata.labels"),
        annotations_faults(texts(meta, "annotations"), "metadata.annotations"),
        _finalizer_faults(meta, kind, None if old is None else mapping(old, "metadata")),
        _owner_faults(meta),
    )
    return list(found)


def _name_faults(meta: Mapping[str, Any], kind: Kind) -> Iterator[Cause]:
    name, prefix = text(meta, "name"), text(meta, "generateName")
    if prefix:
        # Something will be put behind it, so a trailing dash is fine.
        masked = prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        for problem in kind.grammar(masked):
            yield invalid("metadata.generateName", prefix, problem)
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    for problem in kind.grammar(name):
        yield invalid("metadata.name", name, problem)


def _kept_faults(meta: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for name in _KEPT:
        now, before = meta.get(name), old.get(name)
        if now != before and (before or name in ("name", "namespace")):
            yield immutable(f"metadata.{name}", now)
    if number(meta, "generation") < number(old, "generation"):
        yield invalid("metadata.generation", meta.get("generation"), "must not be decremented")


def _namespace_faults(meta: Mapping[str, Any], kind: Kind) -> Iterator[Cause]:
    namespace = text(meta, "namespace")
    if not kind.namespaced:
        if namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
        return
    if not namespace:
        yield required("metadata.namespace")
        return
    for problem in label_problems(namespace):
        yield invalid("metadata.namespace", namespace, problem)


def labels_faults(labels: Mapping[str, str], path: str) -> Iterator[Cause]:
    """Faults of labels that stand at `path`."""
    if len(labels) > MAX_ENTRIES:
        yield too_many(path, len(labels), MAX_ENTRIES)
        return
    for key, value in labels.items():
        for problem in qualified_problems(key):
            yield invalid(path, key, problem)
        for problem in label_value_problems(value):
            yield invalid(path, value, problem)


def annotations_faults(annotations: Mapping[str, str], path: str) -> Iterator[Cause]:
    """Faults of annotations that stand at `path`: keys as labels have, but of any case."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS:
        yield too_long(path, MAX_ANNOTATIONS)
        return
    for key in annotations:
        for problem in qualified_problems(key.lower()):
            yield invalid(path, key, problem)


def _finalizer_faults(
    meta: Mapping[str, Any], kind: Kind, old: Mapping[str, Any] | None
) -> Iterator[Cause]:
    path, finalizers = "metadata.finalizers", strings(meta, "finalizers")
    if len(finalizers) > MAX_ENTRIES:
        yield too_many(path, len(finalizers), MAX_ENTRIES)
        return
    for finalizer in finalizers:
        # Custom resources and their definitions may have finalizers of one word.
        if not (kind.custom or kind.cleanup):
            yield from finalizer_faults(finalizer, path)
        else:
            yield from (invalid(path, finalizer, each) for each in qualified_problems(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        both = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid(path, finalizers, both)
    if old is not None and get(old, "deletionTimestamp"):
        new = sorted(set(finalizers) - set(strings(old, "finalizers")))
        if new:
            because = "no new finalizers can be added if the object is being deleted"
            yield forbidden(path, f"{because}, found new finalizers {', '.join(new)}")


def finalizer_faults(finalizer: str, path: str) -> Iterator[Cause]:
    """Faults of one finalizer: a qualified name, with a prefix unless Kubernetes knows it."""
    problems = qualified_problems(finalizer)
    for problem in problems:
        yield invalid(path, finalizer, problem)
    if not problems and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        says = "name is neither a standard finalizer name nor is it fully qualified"
        yield invalid(path, finalizer, says)


def _owner_faults(meta: Mapping[str, Any]) -> Iterator[Cause]:
    path, owners = "metadata.ownerReferences", items(meta, "ownerReferences")
    if len(owners) > MAX_ENTRIES:
        yield too_many(path, len(owners), MAX_ENTRIES)
        return
    for index, owner in enumerate(owners):
        here = f"{path}[{index}]"
        for name in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, name):
                yield invalid(f"{here}.{name}", "", "must not be empty")
        if (text(owner, "apiVersion"), text(owner, "kind")) == ("v1", "Event"):
            yield invalid(here, "Event", "is disallowed from being an owner")
    controllers = [text(owner, "name") for owner in owners if truth(owner, "controller")]
    if len(controllers) > 1:
        names = " and ".join(controllers[:2])
        says = "Only one reference can have Controller set to true."
        yield invalid(path, controllers, f'{says} Found "true" in references for {names}')


def unchanged(
    new: Document, old: Document | None, *paths: str, also: Callable[[Any], bool] = bool
) -> Iterator[Cause]:
    """The fault of each dotted path whose value was set (`also` true of it) and now differs."""
    for path in paths if old is not None else ():
        before, now = get(old, path), get(new, path)
        if also(before) and now != before:
            yield immutable(path, now)
