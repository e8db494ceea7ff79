"""The mesh's own objects, written as YAML, and what admission says of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from isthmus.errors import Invalid
from isthmus.model.intake import Unreadable, faults, prepare, view, warnings
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import by_api_version


def document(text: str) -> Document:
    """One object in YAML."""
    found: Document = msgspec.yaml.decode(text)
    return found


def of(api_version: str, kind: str, spec: object, **metadata: object) -> Document:
    """An object of this version; `spec` may be YAML."""
    read: Any = msgspec.yaml.decode(spec) if isinstance(spec, str) else deepcopy(spec)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": "orchard", "name": "press", **metadata},
        "spec": read,
    }


def kind_of(written: Document) -> Kind:
    kind = by_api_version(written["apiVersion"], written["kind"])
    assert kind is not None, f"{written['apiVersion']} {written['kind']} is not served"
    return kind


def stored(written: Document) -> Document:
    """The object in the stored version, with its defaults. Nothing unknown may be dropped."""
    kind, present = kind_of(written), written["apiVersion"].rpartition("/")[2]
    version = kind.version(present)
    assert version is not None
    prepared = prepare(kind, version, deepcopy(written))
    assert prepared.unknown == () or kind.keeps_unknown
    made = prepared.document
    if present != kind.stored:
        assert kind.convert is not None
        made = {**kind.convert(made, present, kind.stored), "apiVersion": kind.api_version()}
    return made


def told(written: Document, old: Document | None = None) -> list[str]:
    """Every fault, as `path: message`."""
    try:
        made = stored(written)
    except Invalid as invalid:
        return [f"{cause.path}: {cause.message}" for cause in invalid.causes]
    return [f"{cause.path}: {cause.message}" for cause in faults(kind_of(written), made, old)]


def paths(written: Document) -> list[str]:
    """Where the faults are; that rules were not asked because of them is none."""
    found = (each.partition(":")[0] for each in told(written))
    return [path for path in found if path != "<nil>"]


def warned(written: Document) -> tuple[str, ...]:
    """Every warning about an object that has no fault."""
    assert told(written) == []
    return warnings(kind_of(written), stored(written))


def seen(written: Document) -> Any:  # noqa: ANN401 - any kind's view
    """The view of the stored object, or why there is none."""
    return view(kind_of(written), msgspec.json.encode(written))


def converted(written: Document, version: str) -> Document:
    """The stored object in another version, as a reader of that version gets it."""
    kind = kind_of(written)
    made = stored(written)
    if version != kind.stored:
        assert kind.convert is not None
        made = kind.convert(made, kind.stored, version)
    return {**made, "apiVersion": kind.api_version(version)}


def unreadable(written: Document) -> bool:
    """Whether stored bytes make no view."""
    return isinstance(seen(written), Unreadable)
