"""StatefulSet: pods with names that stay, made and replaced in order.

A template is kept as a ControllerRevision, so that pods below the partition come back as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.controllers.claims import Claim, claim
from isthmus.controllers.names import template_hash
from isthmus.controllers.pods import (
    BURST,
    Template,
    available,
    available_at,
    is_finished,
    is_ready,
    lives,
    owner_reference,
    pod_from,
)
from isthmus.controllers.steps import (
    JSON,
    Create,
    Delete,
    Plan,
    Step,
    Update,
    Wait,
    canonical,
    without_zeros,
)
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import (
    PODS,
    PODS_BY_CONTROLLER,
    REVISIONS,
    REVISIONS_BY_CONTROLLER,
    STATEFULSET_PODS,
    STATEFULSETS,
)
from isthmus.model.apps import ControllerRevision, StatefulSet
from isthmus.model.core import Pod
from isthmus.model.key import ObjectKey

RESOURCE = "statefulsets.apps"
REVISION = "controllerrevisions.apps"

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"


class State(NamedTuple):
    """Everything that one plan looks at. `pods` are by ordinal."""

    key: ObjectKey
    row: StatefulSet
    pods: Mapping[int, Pod]
    revisions: Mapping[str, ControllerRevision]
    update: str
    """The name of the revision of the present template."""
    current: str
    """The name of the revision that the rollout leaves."""

    @property
    def ordinals(self) -> range:
        """The ordinals that should have a pod."""
        start = self.row.spec.ordinals.start
        return range(start, start + self.row.spec.replicas)

    @property
    def partition(self) -> int:
        """Pods below this ordinal keep their revision."""
        strategy = self.row.spec.update_strategy
        return strategy.rolling_update.partition if strategy.rolling_update else 0

    @property
    def in_order(self) -> bool:
        """One pod after the other (podManagementPolicy OrderedReady)."""
        return self.row.spec.pod_management_policy != "Parallel"


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every StatefulSet of a namespace."""
    return STATEFULSETS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The revision to keep, pods to adopt, release, create and delete, and the status."""
    row = STATEFULSETS.get(db, key)
    if row is None or not lives(db, key):
        return ()
    held = _claim(db, key, row)
    state = _state(db, key, row, held.mine)
    steps: list[Step] = [*held.adopted, *held.released]
    if not row.metadata.deletion_timestamp:
        steps += _revise(state)
        # Names are fixed, so what is about to be adopted must be ours before anything is counted.
        if not held.adopted:
            steps += _move(db, state)
        steps += _forget(state)
    return (*steps, *_status(db, state))


def _claim(db: View, key: ObjectKey, row: StatefulSet) -> Claim[Pod]:
    members = STATEFULSET_PODS.members(db, key)
    return claim(
        "pods",
        owner_reference("apps/v1", "StatefulSet", row.metadata),
        [pod for pod in members if _ordinal(key.name, pod.name) is not None],
        PODS_BY_CONTROLLER.get(db, row.metadata.uid),
        lambda pod: PODS.get(db, pod),
        adopting=not row.metadata.deletion_timestamp,
    )


def _ordinal(name: str, pod: str) -> int | None:
    """The ordinal in a pod's name, None for a pod whose name is not of this set."""
    digits = pod.removeprefix(f"{name}-")
    sound = digits != pod and digits.isdecimal() and digits.isascii() and len(digits) < 11
    return int(digits) if sound and str(int(digits)) == digits else None


def _state(db: View, key: ObjectKey, row: StatefulSet, mine: Mapping[ObjectKey, Pod]) -> State:
    owned = REVISIONS_BY_CONTROLLER.get(db, row.metadata.uid)
    revisions = {one.name: found for one in owned if (found := REVISIONS.get(db, one)) is not None}
    digest = template_hash(dict(row.spec.template), row.status.collision_count)
    update = f"{key.name}-{digest}"
    pods = {
        at: pod for one, pod in mine.items() if (at := _ordinal(key.name, one.name)) is not None
    }
    return State(key, row, pods, revisions, update, row.status.current_revision or update)


def _revise(state: State) -> list[Step]:
    """Keep the present template under the highest number."""
    key, row = state.key, state.row
    top = max((one.revision for one in state.revisions.values()), default=0)
    found = state.revisions.get(state.update)
    if found is not None:
        if found.revision == top:
            return []
        again = canonical({"revision": top + 1})
        return [Update(REVISION, key.namespace, state.update, found.metadata.uid, again)]
    digest = state.update.rpartition("-")[2]
    labels = ((row.spec.template.get("metadata") or {}).get("labels") or {}) | {
        "controller.kubernetes.io/hash": digest
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": state.update,
            "namespace": key.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference("apps/v1", "StatefulSet", row.metadata)],
        },
        "data": {"spec": {"template": {**row.spec.template, "$patch": "replace"}}},
        "revision": top + 1,
    }
    return [Create(REVISION, key.namespace, state.update, canonical(document))]


def _forget(state: State) -> list[Step]:
    """Revisions beyond the history limit that no pod has."""
    live = {state.update, state.current}
    live |= {pod.metadata.labels.get(REVISION_LABEL, "") for pod in state.pods.values()}
    spare = sorted(
        (one.revision, name, one) for name, one in state.revisions.items() if name not in live
    )
    excess = len(spare) - max(0, state.row.spec.revision_history_limit)
    return [
        Delete(REVISION, state.key.namespace, name, one.metadata.uid)
        for _, name, one in spare[: max(0, excess)]
    ]


def _move(db: View, state: State) -> list[Step]:
    """Pods to create and delete now; in order, nothing happens beyond the first unfinished one."""
    steps: list[Step] = []
    for ordinal in state.ordinals:
        pod = state.pods.get(ordinal)
        if pod is None:
            # A pod of somebody else that has the name is in the way until it goes.
            if PODS.get(db, state.key._replace(name=f"{state.key.name}-{ordinal}")) is None:
                steps.append(_birth(state, ordinal))
        elif is_finished(pod) and not pod.metadata.deletion_timestamp:
            steps.append(_death(state, pod))
        elif _healthy(pod) and not available(db, pod, state.row.spec.min_ready_seconds):
            steps.append(Wait(available_at(pod, state.row.spec.min_ready_seconds)))
        elif _healthy(pod):
            continue
        if state.in_order or len(steps) >= BURST:
            return steps
    steps += _condemn(state)
    if steps and (state.in_order or any(not isinstance(step, Wait) for step in steps)):
        return steps
    return [*steps, *_replace(state)]


def _healthy(pod: Pod) -> bool:
    running = pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
    return running and is_ready(pod)


def _condemn(state: State) -> list[Step]:
    """Pods outside the ordinals: the highest first, one after the other when in order."""
    surplus = sorted((at for at in state.pods if at not in state.ordinals), reverse=True)
    steps: list[Step] = []
    for ordinal in surplus:
        pod = state.pods[ordinal]
        if not pod.metadata.deletion_timestamp:
            steps.append(_death(state, pod))
        if state.in_order:
            break
    return steps


def _replace(state: State) -> list[Step]:
    """Rolling update: from the highest ordinal down to the partition, one pod at a time."""
    if state.row.spec.update_strategy.type == "OnDelete":
        return []
    surplus = any(at not in state.ordinals for at in state.pods)
    for ordinal in reversed(state.ordinals):
        pod = state.pods.get(ordinal)
        if pod is None or surplus or ordinal < state.partition:
            return []
        if pod.metadata.labels.get(REVISION_LABEL) != state.update:
            return [] if pod.metadata.deletion_timestamp else [_death(state, pod)]
        if not _healthy(pod):
            return []
    return []


def _death(state: State, pod: Pod) -> Delete:
    return Delete("pods", state.key.namespace, pod.metadata.name, pod.metadata.uid)


def _birth(state: State, ordinal: int) -> Create:
    revision, template = _template_for(state, ordinal)
    name = f"{state.key.name}-{ordinal}"
    labels = {
        POD_NAME_LABEL: name,
        POD_INDEX_LABEL: str(ordinal),
        REVISION_LABEL: revision,
    }
    extra: dict[str, JSON] = {
        "metadata": {"labels": labels, "generateName": f"{state.key.name}-"},
        "spec": {"hostname": name},
    }
    if state.row.spec.service_name:
        extra["spec"]["subdomain"] = state.row.spec.service_name
    owner = owner_reference("apps/v1", "StatefulSet", state.row.metadata)
    return pod_from(template, state.key.namespace, name, owner, extra)


def _template_for(state: State, ordinal: int) -> tuple[str, Template]:
    """Below the partition the revision that the rollout leaves, else the present one."""
    kept = state.revisions.get(state.current)
    rolls = state.row.spec.update_strategy.type != "OnDelete"
    if rolls and ordinal < state.partition and kept is not None and state.current != state.update:
        template = dict((kept.data.get("spec") or {}).get("template") or {})
        template.pop("$patch", None)
        return state.current, template
    return state.update, state.row.spec.template


def _status(db: View, state: State) -> Sequence[Update]:
    row, now = state.row, state.row.status
    present = {
        "observedGeneration": now.observed_generation,
        "replicas": now.replicas,
        "readyReplicas": now.ready_replicas,
        "availableReplicas": now.available_replicas,
        "currentReplicas": now.current_replicas,
        "updatedReplicas": now.updated_replicas,
        "currentRevision": now.current_revision,
        "updateRevision": now.update_revision,
    }
    status = _counts(db, state)
    if status == present:
        return ()
    status = without_zeros(status, "replicas", "availableReplicas")
    merge, meta = canonical({"status": status}), row.metadata
    return (Update(RESOURCE, state.key.namespace, meta.name, meta.uid, merge, "status"),)


def _counts(db: View, state: State) -> dict[str, int | str]:
    pods = state.pods.values()
    ready = [pod for pod in pods if _healthy(pod)]
    min_ready = state.row.spec.min_ready_seconds
    staying = [pod for pod in pods if not pod.metadata.deletion_timestamp]
    revisions = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in staying]
    updated = revisions.count(state.update)
    current = state.current
    rolls = state.row.spec.update_strategy.type != "OnDelete"
    if rolls and updated == len(pods) == len(ready) == state.row.spec.replicas:
        current = state.update  # the rollout is over
    return {
        "observedGeneration": state.row.metadata.generation,
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(available(db, pod, min_ready) for pod in ready),
        "currentReplicas": revisions.count(current),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": state.update,
    }
