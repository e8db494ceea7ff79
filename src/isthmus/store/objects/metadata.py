"""Metadata that the server owns: what a new object gets, and what an update may not change.

Pure functions on documents. The rules are Kubernetes' API conventions ("Metadata", "Spec and
Status") and, where those are silent, what its API server does.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final
from uuid import UUID

from isthmus.errors import BadRequest, Cause
from isthmus.model import faults
from isthmus.model.kind import Document, Kind
from isthmus.store import codec
from isthmus.store.objects.refusals import MODIFIED, conflict, invalid, quoted

OWNED: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Set by the server once; the same ever after."""

FIXED: Final = ("name", "namespace", "creationTimestamp", *OWNED[2:])

SUFFIX: Final = 5
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, no digits that look like letters: random names spell no words."""

LONGEST_BASE: Final = 63 - SUFFIX


def metadata_of(document: Document) -> Document:
    """The metadata; BadRequest if it is no object. Absent metadata is empty."""
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadRequest("metadata is not an object")
    return metadata


def text_of(metadata: Document, field: str) -> str:
    """A text field of metadata, "" when absent; BadRequest if it is no text."""
    value = metadata.get(field) or ""
    if not isinstance(value, str):
        raise BadRequest(f"metadata.{field} is not a string")
    return value


def finalizers_of(document: Document) -> list[str]:
    """metadata.finalizers; empty when absent or no list."""
    found = metadata_of(document).get("finalizers")
    return list(found) if isinstance(found, list) else []


# -------------------------------------------------------------------- create


def uuid(chance: Random) -> str:
    """A random (version 4) UUID."""
    return str(UUID(int=chance.getrandbits(128), version=4))


def generated(base: str, chance: Random) -> str:
    """A name from metadata.generateName: the base, cut to leave room, and a random suffix."""
    return base[:LONGEST_BASE] + "".join(chance.choice(ALPHABET) for _ in range(SUFFIX))


def placed(kind: Kind, document: Document) -> tuple[str, str]:
    """Where a new object belongs: its namespace ("" if cluster-scoped), its name ("" to generate).

    BadRequest without a namespace, or with a resourceVersion; Invalid without any name.
    """
    metadata = metadata_of(document)
    name, base = text_of(metadata, "name"), text_of(metadata, "generateName")
    if text_of(metadata, "resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    if not (name or base):
        fault = Cause(
            "metadata.name",
            "Required value: name or generateName is required",
            "FieldValueRequired",
        )
        raise invalid(kind, "", [fault])
    namespace = text_of(metadata, "namespace") if kind.namespaced else ""
    if kind.namespaced and not namespace:
        raise BadRequest(f"{kind.resource} {quoted(name or base)}: metadata.namespace is missing")
    return namespace, name


def newborn(kind: Kind, document: Document, *, namespace: str, uid: str, created: str) -> Document:
    """The document as its first version, but for the name.

    What the writer may not say is left out.
    """
    metadata = {
        field: value
        for field, value in metadata_of(document).items()
        if field not in (*OWNED, *codec.NOT_STORED, "namespace", "generation")
    }
    metadata |= {"uid": uid, "creationTimestamp": created}
    if namespace:
        metadata["namespace"] = namespace
    if kind.generation:
        metadata["generation"] = 1
    new = {**document, "apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata}
    if kind.status and kind.resource not in _STATUS_AT_BIRTH:
        new.pop("status", None)
    return new


# A Node's agent describes its machine in the same request (Kubernetes does the same).
_STATUS_AT_BIRTH: Final = frozenset({"nodes"})


# -------------------------------------------------------------------- update


def require_version(kind: Kind, name: str, old: Document, wanted: Document) -> None:
    """Conflict if the wanted document was made from another version, or for another object."""
    metadata, held = metadata_of(wanted), metadata_of(old)
    uid, version = text_of(metadata, "uid"), text_of(metadata, "resourceVersion")
    if uid and uid != held.get("uid"):
        raise conflict(kind, name, other_uid(uid, held.get("uid")))
    if version in ("", "0", held.get("resourceVersion")):
        return
    if not (version.isascii() and version.isdecimal()):
        fault = Cause(
            "metadata.resourceVersion",
            f"Invalid value: {quoted(version)}: must be a decimal number",
        )
        raise invalid(kind, name, [fault])
    raise conflict(kind, name, MODIFIED)


def other_uid(wanted: str, held: object) -> str:
    """The object that the writer means is gone, and another has its name."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {held}"


def successor(kind: Kind, old: Document, wanted: Document, subresource: str) -> Document:
    """The next version: from `wanted` what this write may change, everything else from `old`."""
    match subresource:
        case "status":
            new = _with(old, "status", wanted.get("status"))
            metadata = {"managedFields": metadata_of(wanted).get("managedFields")}
            new["metadata"] = _merged(metadata_of(old), metadata)
        case "finalize":
            new = {**old, "spec": _merged(old.get("spec"), _finalizers(wanted))}
        case _:
            new = {**wanted, "apiVersion": kind.api_version(), "kind": kind.name}
            new["metadata"] = _kept(old, wanted)
            if kind.status:
                new = _with(new, "status", old.get("status"))
            if kind.resource == "namespaces":
                new["spec"] = _merged(new.get("spec"), _finalizers(old))
    return new


def _finalizers(namespace: Document) -> Document:
    spec = namespace.get("spec")
    return {"finalizers": spec.get("finalizers") if isinstance(spec, dict) else None}


def _kept(old: Document, wanted: Document) -> Document:
    held = metadata_of(old)
    metadata = dict(metadata_of(wanted))
    for field in ("name", "namespace", *OWNED, "generation"):
        metadata.pop(field, None)
        if field in held:
            metadata[field] = held[field]
    return metadata


def _with(document: Document, field: str, value: Any) -> Document:  # noqa: ANN401 - any JSON value
    rest = {name: each for name, each in document.items() if name != field}
    return rest if value is None else {**rest, field: value}


def _merged(base: Any, changes: Document) -> Document:  # noqa: ANN401 - any JSON value
    merged = {**(base if isinstance(base, dict) else {}), **changes}
    return {field: value for field, value in merged.items() if value is not None}


def lets_go(old: Document, new: Document) -> bool:
    """Whether a write only takes finalizers from an object that is marked.

    Nothing else may hold that up: stored objects may break rules that came later.
    """
    held, now = metadata_of(old), metadata_of(new)
    if not held.get("deletionTimestamp"):
        return False
    fewer = set(_texts(now.get("finalizers"))) < set(_texts(held.get("finalizers")))
    return fewer and _fixed(old) == _fixed(new)


_MOVING: Final = frozenset({"finalizers", "managedFields", "resourceVersion", "generation"})


def _fixed(document: Document) -> Document:
    apart = ("apiVersion", "kind", "metadata")
    kept = {name: value for name, value in document.items() if name not in apart}
    meta = metadata_of(document)
    return kept | {"metadata": {name: meta[name] for name in meta if name not in _MOVING}}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def update_faults(old: Document, wanted: Document) -> Iterator[Cause]:
    """Fixed fields that `wanted` gives another value than `old` has.

    One that is left out is no fault: it stays as it is.
    """
    held, metadata = metadata_of(old), metadata_of(wanted)
    for field in FIXED:
        value = metadata.get(field)
        if value is not None and value != "" and value != held.get(field):
            yield faults.immutable(f"metadata.{field}", value)


def counted(kind: Kind, old: Document, new: Document) -> Document:
    """`new` with the next generation, if what it asks for differs from what `old` asks for."""
    if not kind.generation or _wishes(kind, old) == _wishes(kind, new):
        return new
    held = metadata_of(old).get("generation")
    generation = held + 1 if isinstance(held, int) else 1
    return {**new, "metadata": {**metadata_of(new), "generation": generation}}


def _wishes(kind: Kind, document: Document) -> bytes:
    return codec.wishes(document, status=kind.status)


def with_old_times(old: Document, new: Document) -> Document:
    """`new` with the managedFields of `old`, if they differ only in the times of the writes."""
    held, fields = (metadata_of(each).get("managedFields") for each in (old, new))
    if held == fields or _timeless(held) != _timeless(fields):
        return new
    return {**new, "metadata": {**metadata_of(new), "managedFields": held}}


def _timeless(managed: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(managed, list):
        return managed
    return [_with(each, "time", None) if isinstance(each, dict) else each for each in managed]
