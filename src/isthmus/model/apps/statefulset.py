"""StatefulSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.apps.common import (
    CONTAINERS,
    IMAGES,
    READY,
    Strategy,
    count_faults,
    default_template,
    forget_status,
    selector_and_template_faults,
)
from isthmus.model.columns import AGE
from isthmus.model.core.proxywords import template_annotations
from isthmus.model.document import ensure, mapping, number, settle, text
from isthmus.model.faults import forbidden, invalid, one_of
from isthmus.model.kind import Document, Kind, Scale, Version
from isthmus.model.meta import Condition, CountedMeta, LabelSelector, View
from isthmus.model.names import subdomain_problems
from isthmus.model.wire.schemas import schema_of


class Ordinals(View, frozen=True):
    """Where a StatefulSet begins to count."""

    start: int = 0


class StatefulSetSpec(View, frozen=True):
    """apps/v1 StatefulSetSpec with Kubernetes' defaults; the template is whole."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Mapping[str, Any] = {}
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    ordinals: Ordinals = Ordinals()
    revision_history_limit: int = 10


class StatefulSetStatus(View, frozen=True):
    """apps/v1 StatefulSetStatus."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int = 0
    conditions: tuple[Condition, ...] = ()


class StatefulSet(View, frozen=True):
    """apps/v1 StatefulSet."""

    metadata: CountedMeta = CountedMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    settle(spec, "replicas", 1)
    settle(spec, "podManagementPolicy", "OrderedReady")
    settle(spec, "revisionHistoryLimit", 10)
    strategy = ensure(spec, "updateStrategy")
    settle(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        settle(ensure(strategy, "rollingUpdate"), "partition", 0)
    retention = ensure(spec, "persistentVolumeClaimRetentionPolicy")
    settle(retention, "whenDeleted", "Retain")
    settle(retention, "whenScaled", "Retain")


_CHANGEABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    yield from count_faults(document, "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from selector_and_template_faults(document, "statefulset")
    policy = text(document, "spec.podManagementPolicy")
    yield from one_of("spec.podManagementPolicy", policy, ("OrderedReady", "Parallel"))
    strategy = text(document, "spec.updateStrategy.type")
    yield from one_of("spec.updateStrategy.type", strategy, ("RollingUpdate", "OnDelete"))
    partition = number(document, "spec.updateStrategy.rollingUpdate.partition")
    if partition < 0:
        says = "must be greater than or equal to 0"
        yield invalid("spec.updateStrategy.rollingUpdate.partition", partition, says)
    service = text(document, "spec.serviceName")
    for problem in subdomain_problems(service) if service else ():
        yield invalid("spec.serviceName", service, problem)
    if old is not None and _fixed(document) != _fixed(old):
        listed = ", ".join(f"'{name}'" for name in _CHANGEABLE)
        says = f"updates to statefulset spec for fields other than {listed} are forbidden"
        yield forbidden("spec", says)


def _fixed(document: Document) -> dict[str, Any]:
    spec = mapping(document, "spec")
    return {name: value for name, value in spec.items() if name not in _CHANGEABLE}


STATEFUL_SET: Final = Kind(
    group="apps",
    name="StatefulSet",
    plural="statefulsets",
    singular="statefulset",
    short_names=("sts",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            schema_of("apps.v1.StatefulSet"),
            columns=(READY, AGE, CONTAINERS, IMAGES),
        ),
    ),
    stored="v1",
    view=StatefulSet,
    scale=Scale(),
    default=(_default, default_template),
    carry=(forget_status,),
    check=(_check,),
    warn=(template_annotations,),
    custom=False,
)
