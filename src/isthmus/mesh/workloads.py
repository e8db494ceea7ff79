"""Rows of the workloads of apps/v1: the facts that their controllers compare.

Pod templates stay whole (a controller copies them), as plain JSON values that nobody changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.model.meta import Condition, CountedMeta, LabelSelector, Meta, View

Template = Mapping[str, Any]
"""A PodTemplateSpec as JSON values."""


class RollingUpdate(View, frozen=True):
    """Deployment: maxSurge and maxUnavailable, numbers or percentages; StatefulSet: partition."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int = 0


class Strategy(View, frozen=True):
    """How pods are replaced: RollingUpdate, Recreate (Deployment) or OnDelete (StatefulSet)."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(View, frozen=True):
    """apps/v1 DeploymentSpec with Kubernetes' defaults; the template is whole."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Template = {}  # noqa: RUF012  # msgspec copies it
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


class ReplicaSetSpec(View, frozen=True):
    """apps/v1 ReplicaSetSpec."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Template = {}  # noqa: RUF012  # msgspec copies it
    min_ready_seconds: int = 0


class ReplicaSetStatus(View, frozen=True):
    """apps/v1 ReplicaSetStatus."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class ReplicaSet(View, frozen=True):
    """apps/v1 ReplicaSet."""

    metadata: CountedMeta = CountedMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class Ordinals(View, frozen=True):
    """Where a StatefulSet begins to count."""

    start: int = 0


class StatefulSetSpec(View, frozen=True):
    """apps/v1 StatefulSetSpec."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Template = {}  # noqa: RUF012  # msgspec copies it
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


class StatefulSet(View, frozen=True):
    """apps/v1 StatefulSet."""

    metadata: CountedMeta = CountedMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class Revision(View, frozen=True):
    """apps/v1 ControllerRevision: a pod template that a StatefulSet has, or had."""

    metadata: Meta = Meta()
    data: Template = {}  # noqa: RUF012  # msgspec copies it
    revision: int = 0
