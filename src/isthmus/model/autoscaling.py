"""autoscaling/v1 Scale: not a resource, but the shape that every `/scale` subresource has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, mapping, number, text
from isthmus.model.faults import invalid
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.kind import Scale as Paths
from isthmus.model.meta import Meta, View
from isthmus.model.selectors import selector_text
from isthmus.model.wire.schemas import schema_of


class ScaleSpec(View, frozen=True):
    """How many are wanted."""

    replicas: int = 0


class Scale(View, frozen=True):
    """autoscaling/v1 Scale."""

    metadata: Meta = Meta()
    spec: ScaleSpec = ScaleSpec()


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    replicas = number(document, "spec.replicas")
    if replicas < 0:
        yield invalid("spec.replicas", replicas, "must be greater than or equal to 0")


SCALE: Final = Kind(
    group="autoscaling",
    name="Scale",
    plural="scales",
    singular="scale",
    versions=(Version("v1", schema_of("autoscaling.v1.Scale")),),
    stored="v1",
    view=Scale,
    status=False,
    check=(_check,),
    persisted=False,
    custom=False,
    verbs=("get", "patch", "update"),
)

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(document: Document, paths: Paths) -> Document:
    """The Scale that a workload shows at these paths."""
    metadata = mapping(document, "metadata")
    selector = get(document, paths.selector) if paths.selector else None
    status: dict[str, Any] = {"replicas": number(document, paths.status_replicas)}
    shown = selector if isinstance(selector, str) else selector_text(selector)
    if shown:
        status["selector"] = shown
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": number(document, paths.spec_replicas)},
        "status": status,
    }


def scaled(document: Document, scale: Document, paths: Paths) -> Document:
    """A copy of the workload with the replicas that the Scale wants; the rest is shared."""
    *parents, last = paths.spec_replicas.split(".")
    copy = here = dict(document)
    for name in parents:
        inner = dict(mapping(here, name))
        here[name] = inner
        here = inner
    here[last] = number(scale, "spec.replicas")
    return copy


def scale_name(scale: Document) -> str:
    """The name of the workload that a Scale is about."""
    return text(scale, "metadata.name")
