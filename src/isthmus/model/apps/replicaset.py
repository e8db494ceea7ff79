"""ReplicaSet, and ControllerRevision (a pod template that a StatefulSet has, or had)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.apps.common import (
    CONTAINERS,
    IMAGES,
    SELECTOR,
    count_faults,
    default_template,
    forget_status,
    selector_and_template_faults,
)
from isthmus.model.columns import AGE, NONE, number_column
from isthmus.model.document import ensure, get, items, settle, text, truth
from isthmus.model.faults import wrong_type
from isthmus.model.kind import Column, Document, Kind, Scale, Version
from isthmus.model.meta import Condition, CountedMeta, LabelSelector, Meta, View
from isthmus.model.metacheck import unchanged
from isthmus.model.wire.schemas import schema_of


class ReplicaSetSpec(View, frozen=True):
    """apps/v1 ReplicaSetSpec."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Mapping[str, Any] = {}
    min_ready_seconds: int = 0


class ReplicaSetStatus(View, frozen=True):
    """apps/v1 ReplicaSetStatus."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(View, frozen=True):
    """apps/v1 ReplicaSet."""

    metadata: CountedMeta = CountedMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ControllerRevision(View, frozen=True):
    """apps/v1 ControllerRevision."""

    metadata: Meta = Meta()
    data: Mapping[str, Any] = {}
    revision: int = 0


def _default(document: Document) -> None:
    settle(ensure(document, "spec"), "replicas", 1)


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    yield from count_faults(document, "replicas", "minReadySeconds")
    yield from selector_and_template_faults(document, "deployment")
    yield from unchanged(document, old, "spec.selector")


def _controller(document: Document, _now: float) -> str:
    for owner in items(document, "metadata.ownerReferences"):
        if truth(owner, "controller"):
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind").lower()
            return f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{owner['name']}"
    return NONE


def _revision_faults(document: Document, old: Document | None) -> Iterator[Cause]:
    data = get(document, "data")
    if data is not None and not isinstance(data, dict):
        yield wrong_type("data", data, "must be an object")
    yield from unchanged(document, old, "data")


REPLICA_SET: Final = Kind(
    group="apps",
    name="ReplicaSet",
    plural="replicasets",
    singular="replicaset",
    short_names=("rs",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            schema_of("apps.v1.ReplicaSet"),
            columns=(
                number_column("Desired", "spec.replicas"),
                number_column("Current", "status.replicas"),
                number_column("Ready", "status.readyReplicas"),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ),
        ),
    ),
    stored="v1",
    view=ReplicaSet,
    scale=Scale(),
    default=(_default, default_template),
    carry=(forget_status,),
    check=(_check,),
    field_selectors={"status.replicas": "status.replicas"},
    custom=False,
)

CONTROLLER_REVISION: Final = Kind(
    group="apps",
    name="ControllerRevision",
    plural="controllerrevisions",
    singular="controllerrevision",
    versions=(
        Version(
            "v1",
            schema_of("apps.v1.ControllerRevision"),
            columns=(
                Column("Controller", _controller),
                number_column("Revision", "revision"),
                AGE,
            ),
        ),
    ),
    stored="v1",
    view=ControllerRevision,
    status=False,
    check=(_revision_faults,),
    generation=False,
    custom=False,
)
