"""Deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.apps.common import (
    CONTAINERS,
    IMAGES,
    READY,
    SELECTOR,
    Strategy,
    count_faults,
    default_template,
    forget_status,
    percent,
    selector_and_template_faults,
    share_faults,
)
from isthmus.model.columns import AGE, number_column
from isthmus.model.core.proxywords import template_annotations
from isthmus.model.document import ensure, get, mapping, number, settle, text
from isthmus.model.faults import forbidden, invalid, one_of
from isthmus.model.kind import Document, Kind, Scale, Version
from isthmus.model.meta import Condition, CountedMeta, LabelSelector, View
from isthmus.model.metacheck import unchanged
from isthmus.model.wire.schemas import schema_of


class DeploymentSpec(View, frozen=True):
    """apps/v1 DeploymentSpec with Kubernetes' defaults; the template is whole."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Mapping[str, Any] = {}
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    paused: bool = False
    progress_deadline_seconds: int = 600


class DeploymentStatus(View, frozen=True):
    """apps/v1 DeploymentStatus."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    collision_count: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(View, frozen=True):
    """apps/v1 Deployment."""

    metadata: CountedMeta = CountedMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    settle(spec, "replicas", 1)
    settle(spec, "revisionHistoryLimit", 10)
    settle(spec, "progressDeadlineSeconds", 600)
    strategy = ensure(spec, "strategy")
    settle(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = ensure(strategy, "rollingUpdate")
        settle(rolling, "maxUnavailable", "25%")
        settle(rolling, "maxSurge", "25%")


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    yield from count_faults(document, "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from selector_and_template_faults(document, "deployment")
    yield from _strategy_faults(document)
    deadline, ready = "spec.progressDeadlineSeconds", number(document, "spec.minReadySeconds")
    if number(document, deadline, 600) <= ready:
        yield invalid(deadline, number(document, deadline), "must be greater than minReadySeconds")
    yield from unchanged(document, old, "spec.selector")


def _strategy_faults(document: Document) -> Iterator[Cause]:
    path = "spec.strategy"
    kind = text(document, f"{path}.type")
    yield from one_of(f"{path}.type", kind, ("Recreate", "RollingUpdate"))
    rolling = mapping(document, f"{path}.rollingUpdate")
    if kind == "Recreate" and get(document, f"{path}.rollingUpdate") is not None:
        says = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden(f"{path}.rollingUpdate", says)
        return
    surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    yield from share_faults(surge, f"{path}.rollingUpdate.maxSurge")
    yield from share_faults(unavailable, f"{path}.rollingUpdate.maxUnavailable")
    if (percent(unavailable) or 0) > 100:
        yield invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, "must not exceed 100%")
    if rolling and surge in (0, "0%") and unavailable in (0, "0%"):
        says = "may not be 0 when `maxSurge` is 0"
        yield invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, says)


DEPLOYMENT: Final = Kind(
    group="apps",
    name="Deployment",
    plural="deployments",
    singular="deployment",
    short_names=("deploy",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            schema_of("apps.v1.Deployment"),
            columns=(
                READY,
                number_column("Up-to-date", "status.updatedReplicas"),
                number_column("Available", "status.availableReplicas"),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ),
        ),
    ),
    stored="v1",
    view=Deployment,
    warn=(template_annotations,),
    scale=Scale(),
    default=(_default, default_template),
    carry=(forget_status,),
    check=(_check,),
    custom=False,
)
