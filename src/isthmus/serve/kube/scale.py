"""The scale subresource: any kind with replicas, seen and written as an autoscaling/v1 Scale.

Where a kind keeps its replicas is in its `Kind.scale`, as dotted paths.
"""

from __future__ import annotations

from typing import Any

from isthmus.errors import BadRequest, Cause, Invalid, MethodNotAllowed, Subject
from isthmus.model.kind import Document, Kind, Scale
from isthmus.model.schema import Schema, Type
from isthmus.model.selectors import selector_text
from isthmus.store.objects import Preconditions

MAX_REPLICAS = 2**31 - 1

_TEXT = Schema(type=Type.STRING)
_COUNT = Schema(type=Type.INTEGER, format="int32", minimum=0)

SCHEMA = Schema(
    type=Type.OBJECT,
    ref="io.k8s.api.autoscaling.v1.Scale",
    description="How many replicas there are to be, and how many there are.",
    properties={
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": Schema(type=Type.ANY),
        "spec": Schema(type=Type.OBJECT, properties={"replicas": _COUNT}),
        "status": Schema(type=Type.OBJECT, properties={"replicas": _COUNT, "selector": _TEXT}),
    },
)
"""The schema of a Scale, for patches of it."""

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def of(kind: Kind, document: Document) -> Document:
    """The Scale of an object; MethodNotAllowed for kinds that do not scale."""
    paths = _paths(kind)
    metadata = document.get("metadata") or {}
    status: Document = {"replicas": _count(_at(document, paths.status_replicas))}
    selector = _text(_at(document, paths.selector))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": _count(_at(document, paths.spec_replicas))},
        "status": status,
    }


def applied(kind: Kind, document: Document, scale: Document) -> Document:
    """The object with the replicas of a Scale; `document` stays as it is.

    BadRequest if it is no Scale, Invalid if its replicas cannot be. Its uid and resourceVersion are
    `preconditions`.
    """
    paths = _paths(kind)
    if (scale.get("kind", "Scale"), scale.get("apiVersion", "autoscaling/v1")) != (
        "Scale",
        "autoscaling/v1",
    ):
        raise BadRequest("the scale subresource takes an autoscaling/v1 Scale")
    return _with(document, paths.spec_replicas.split("."), _replicas(scale))


def preconditions(scale: Document) -> Preconditions:
    """What a Scale says of the object it was read from."""
    metadata = scale.get("metadata")
    if not isinstance(metadata, dict):
        return Preconditions()
    uid, revision = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
    if not isinstance(uid, str) or not isinstance(revision, str):
        raise BadRequest("metadata.uid and metadata.resourceVersion must be strings")
    if revision and not (revision.isascii() and revision.isdecimal() and len(revision) < 20):
        raise BadRequest(f'metadata.resourceVersion: Invalid value: "{revision[:64]}"')
    return Preconditions(uid, int(revision or 0))


def _paths(kind: Kind) -> Scale:
    if kind.scale is None:
        raise MethodNotAllowed(f"{kind.resource} has no scale subresource")
    return kind.scale


def _replicas(scale: Document) -> int:
    spec = scale.get("spec")
    if spec is None:
        return 0
    value = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if value is None or isinstance(value, bool) or not isinstance(value, int):
        raise _invalid(scale, "must be an integer", "FieldValueTypeInvalid")
    if not 0 <= value <= MAX_REPLICAS:
        bounds = f"must be between 0 and {MAX_REPLICAS}"
        raise _invalid(scale, f"Invalid value: {value}: {bounds}", "FieldValueInvalid")
    return value


def _invalid(scale: Document, message: str, reason: str) -> Invalid:
    metadata = scale.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    about = Subject(group="autoscaling", kind="Scale", name=name[:253])
    cause = Cause("spec.replicas", message, reason)
    return Invalid(f"spec.replicas: {message}", about=about, causes=(cause,))


def _at(document: Document, path: str) -> Any:  # noqa: ANN401 - any JSON value
    value: Any = document
    for name in path.lstrip(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _with(document: Document, path: list[str], value: object) -> Document:
    """The document with the value at the path; what is on the way is copied, the rest is shared."""
    name, *rest = path
    if not rest:
        return {**document, name: value}
    held = document.get(name)
    return {**document, name: _with(held if isinstance(held, dict) else {}, rest, value)}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> str:
    """A selector as autoscalers read it: text as it is, labels, or a meta/v1 LabelSelector."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    if value.keys() <= {"matchLabels", "matchExpressions"}:
        return selector_text(value)
    return selector_text({"matchLabels": value})
