"""ReplicaSet: so many pods from one template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from isthmus.controllers.claims import claim
from isthmus.controllers.names import child, suffix
from isthmus.controllers.pods import (
    BURST,
    READY,
    available,
    condition,
    is_active,
    is_ready,
    lives,
    owner_reference,
    pod_from,
    wait_for,
)
from isthmus.controllers.steps import Create, Delete, Plan, Update, canonical, without_zeros
from isthmus.controllers.time import seconds
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import (
    PODS,
    PODS_BY_CONTROLLER,
    REPLICASET_PODS,
    REPLICASETS,
)
from isthmus.model.apps import ReplicaSet
from isthmus.model.core import Pod
from isthmus.model.key import ObjectKey

RESOURCE = "replicasets.apps"
POD_NAME = 63
"""Pods' names become host names."""

COST = "controller.kubernetes.io/pod-deletion-cost"


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every ReplicaSet of a namespace."""
    return REPLICASETS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Pods to adopt, release, create and delete, and the status."""
    row = REPLICASETS.get(db, key)
    if row is None or not lives(db, key):
        return ()
    owner = owner_reference("apps/v1", "ReplicaSet", row.metadata)
    staying = not row.metadata.deletion_timestamp
    held = claim(
        "pods",
        owner,
        REPLICASET_PODS.members(db, key),
        PODS_BY_CONTROLLER.get(db, row.metadata.uid),
        lambda pod: PODS.get(db, pod),
        adopting=staying,
    )
    active = {name: pod for name, pod in held.mine.items() if is_active(pod)}
    steps: list[Update | Create | Delete] = [*held.adopted, *held.released]
    # What is about to be adopted counts, or its place would be filled twice.
    missing = row.spec.replicas - len(active) - len(held.adopted)
    if staying and missing > 0:
        steps += _births(db, key, row, held.mine, missing)
    elif staying and missing < 0:
        steps += _deaths(active, -missing)
    steps += _status(db, key, row, active)
    return (*steps, *wait_for(db, active, row.spec.min_ready_seconds))


def _births(
    db: View, key: ObjectKey, row: ReplicaSet, present: Mapping[ObjectKey, Pod], count: int
) -> list[Create]:
    """New pods. Their names depend on the pods that are there: a replaced pod has a new name."""
    owner = owner_reference("apps/v1", "ReplicaSet", row.metadata)
    uids = sorted(pod.metadata.uid for pod in present.values())
    seed = suffix(row.metadata.uid, *uids, length=30)
    extra = {"metadata": {"generateName": f"{key.name}-"}}
    births: list[Create] = []
    tried = 0
    while len(births) < min(count, BURST):
        name = child(key.name, seed, str(tried), limit=POD_NAME)
        tried += 1
        if PODS.get(db, key._replace(name=name)) is None:
            births.append(pod_from(row.spec.template, key.namespace, name, owner, extra))
    return births


def _deaths(active: Mapping[ObjectKey, Pod], count: int) -> list[Delete]:
    crowd = Counter(pod.spec.node_name for pod in active.values())
    order = sorted(active.items(), key=lambda item: _worth(item[1], crowd))
    return [Delete("pods", key.namespace, key.name, pod.metadata.uid) for key, pod in order[:count]]


def _worth(pod: Pod, crowd: Mapping[str, int]) -> tuple[int | str, ...]:
    """Kubernetes' order of sacrifice: unplaced, pending, unready, cheap, crowded, young."""
    ready = condition(pod.status.conditions, READY)
    return (
        bool(pod.spec.node_name),
        {"Unknown": 1, "Running": 2}.get(pod.status.phase, 0),
        is_ready(pod),
        _cost(pod),
        -crowd[pod.spec.node_name] if pod.spec.node_name else 0,
        -seconds(ready.last_transition_time) if ready and is_ready(pod) else 0,
        -seconds(pod.metadata.creation_timestamp),
        pod.metadata.name,
    )


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(COST, "0"))
    except ValueError:
        return 0


def _status(
    db: View, key: ObjectKey, row: ReplicaSet, active: Mapping[ObjectKey, Pod]
) -> Sequence[Update]:
    wanted = ((row.spec.template.get("metadata") or {}).get("labels") or {}).items()
    pods, min_ready = active.values(), row.spec.min_ready_seconds
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(wanted <= pod.metadata.labels.items() for pod in pods),
        "readyReplicas": sum(is_ready(pod) for pod in pods),
        "availableReplicas": sum(available(db, pod, min_ready) for pod in pods),
        "observedGeneration": row.metadata.generation,
    }
    now = row.status
    held = {
        "replicas": now.replicas,
        "fullyLabeledReplicas": now.fully_labeled_replicas,
        "readyReplicas": now.ready_replicas,
        "availableReplicas": now.available_replicas,
        "observedGeneration": now.observed_generation,
    }
    if status == held:
        return ()
    merge = canonical({"status": without_zeros(status, "replicas")})
    return (Update(RESOURCE, key.namespace, key.name, row.metadata.uid, merge, "status"),)
