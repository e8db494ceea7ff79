"""Deployment: ReplicaSets that lead from one pod template to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from isthmus.controllers import rollout
from isthmus.controllers.claims import Claim, claim
from isthmus.controllers.deployment_status import status_steps
from isthmus.controllers.names import template_hash
from isthmus.controllers.pods import Template, is_finished, lives, owner_reference
from isthmus.controllers.rollout import Held, Targets
from isthmus.controllers.steps import (
    JSON,
    Create,
    Delete,
    Plan,
    Step,
    Update,
    canonical,
    drop_empty,
)
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import (
    DEPLOYMENT_REPLICASETS,
    DEPLOYMENTS,
    PODS,
    PODS_BY_CONTROLLER,
    REPLICASETS,
    REPLICASETS_BY_CONTROLLER,
)
from isthmus.model.apps import Deployment, ReplicaSet
from isthmus.model.key import ObjectKey

RESOURCE = "deployments.apps"
REPLICASET = "replicasets.apps"

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = frozenset(
    {REVISION, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration"}
)
"""Annotations of a Deployment that say nothing about its ReplicaSets."""


class Sets(NamedTuple):
    """The ReplicaSets of a Deployment: the one of its template, if there, and the others by age."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Deployment of a namespace."""
    return DEPLOYMENTS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """ReplicaSets to adopt, release, create, scale and clear away, and the status."""
    row = DEPLOYMENTS.get(db, key)
    if row is None or not lives(db, key):
        return ()
    held = _claim(db, key, row)
    sets = _sort(row, held.mine.values())
    staying = not row.metadata.deletion_timestamp
    steps: list[Step] = [*held.adopted, *held.released]
    # An adopted ReplicaSet may be the new one: wait until it is ours.
    if staying and not held.adopted:
        steps += _move(db, key, row, sets)
        steps += _clear(key, row, sets)
    born = any(isinstance(step, Create) for step in steps)
    name = sets.new.metadata.name if sets.new else _new_name(row)
    return (*steps, *status_steps(db, key, row, name, sets.new, sets.old, born=born))


def _claim(db: View, key: ObjectKey, row: Deployment) -> Claim[ReplicaSet]:
    return claim(
        REPLICASET,
        owner_reference("apps/v1", "Deployment", row.metadata),
        DEPLOYMENT_REPLICASETS.members(db, key),
        REPLICASETS_BY_CONTROLLER.get(db, row.metadata.uid),
        lambda one: REPLICASETS.get(db, one),
        adopting=not row.metadata.deletion_timestamp,
    )


def _sort(row: Deployment, mine: Iterable[ReplicaSet]) -> Sets:
    by_age = sorted(
        mine, key=lambda one: (one.metadata.creation_timestamp, revision_of(one), one.metadata.name)
    )
    wanted = _plain(row.spec.template)
    new = next((one for one in by_age if _plain(one.spec.template) == wanted), None)
    return Sets(new, tuple(one for one in by_age if one is not new))


def _plain(template: Template) -> JSON:
    """The template without the hash that we put into it, and without emptiness."""
    meta = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (meta.pop("labels", None) or {}).items() if k != HASH}
    return {**template, "metadata": drop_empty({**meta, "labels": labels})}


def revision_of(one: ReplicaSet | Deployment) -> int:
    """The number in the revision annotation, 0 if there is none."""
    text = one.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _new_name(row: Deployment) -> str:
    digest = template_hash(_plain(row.spec.template), row.status.collision_count)
    return f"{row.metadata.name[: 253 - len(digest) - 1]}-{digest}"


def _held(one: ReplicaSet) -> Held:
    status = one.status
    return Held(one.metadata.name, one.spec.replicas, status.replicas, status.available_replicas)


def _targets(db: View, row: Deployment, sets: Sets) -> Targets:
    limits = rollout.bounds(row.spec)
    new = _held(sets.new) if sets.new else None
    old = [_held(one) for one in sets.old]
    if row.spec.paused:
        return rollout.paused(row.spec.replicas, new, old, limits)
    new = new or Held(_new_name(row), 0, 0, 0)
    if row.spec.strategy.type == "Recreate":
        return rollout.recreating(row.spec.replicas, new, old, old_pods=_running(db, sets.old))
    return rollout.rolling(row.spec.replicas, limits, new, old)


def _running(db: View, old: Sequence[ReplicaSet]) -> bool:
    """Whether a pod of an old ReplicaSet may still run, be it on its way out."""
    keys = (key for one in old for key in PODS_BY_CONTROLLER.get(db, one.metadata.uid))
    return any((pod := PODS.get(db, key)) is not None and not is_finished(pod) for key in keys)


def _move(db: View, key: ObjectKey, row: Deployment, sets: Sets) -> list[Step]:
    targets = _targets(db, row, sets)
    steps: list[Step] = [
        _scaled(one, targets.old[one.metadata.name], row)
        for one in sets.old
        if one.metadata.name in targets.old
    ]
    if sets.new is None:
        # Recreate holds the new ReplicaSet back, as Kubernetes does, until the old pods are gone.
        held_back = row.spec.strategy.type == "Recreate" and not targets.new and row.spec.replicas
        if not row.spec.paused and not held_back:
            steps.append(_birth(db, key, row, sets, targets.new))
        return steps
    annotations = _annotations(row, sets)
    if sets.new.spec.replicas != targets.new or not _carries(sets.new, annotations):
        steps.append(_scaled(sets.new, targets.new, row, annotations))
    if revision_of(row) != int(annotations[REVISION]):
        steps.append(_note_revision(row, annotations[REVISION]))
    return steps


def _carries(one: ReplicaSet, annotations: Mapping[str, str]) -> bool:
    return annotations.items() <= one.metadata.annotations.items()


def _annotations(row: Deployment, sets: Sets) -> dict[str, str]:
    """What the new ReplicaSet carries: the Deployment's own annotations, and the numbers."""
    surge = rollout.bounds(row.spec).surge
    copied = {k: v for k, v in row.metadata.annotations.items() if k not in NOT_COPIED}
    present = revision_of(sets.new) if sets.new else 0
    beyond = max((revision_of(one) for one in sets.old), default=0) + 1
    return copied | {
        REVISION: str(max(present, beyond)),
        DESIRED: str(row.spec.replicas),
        MOST: str(row.spec.replicas + surge),
    }


def _scaled(
    one: ReplicaSet, replicas: int, row: Deployment, annotations: Mapping[str, str] | None = None
) -> Update:
    merge: dict[str, JSON] = {"spec": {"replicas": replicas}}
    if annotations:
        merge["metadata"] = {"annotations": dict(annotations)}
    meta = one.metadata
    return Update(REPLICASET, row.metadata.namespace, meta.name, meta.uid, canonical(merge))


def _note_revision(row: Deployment, revision: str) -> Update:
    meta, merge = row.metadata, {"metadata": {"annotations": {REVISION: revision}}}
    return Update(RESOURCE, meta.namespace, meta.name, meta.uid, canonical(merge))


def _birth(db: View, key: ObjectKey, row: Deployment, sets: Sets, replicas: int) -> Step:
    """The new ReplicaSet; or, when somebody else has its name, a collision counted."""
    name = _new_name(row)
    if REPLICASETS.get(db, key._replace(name=name)) is not None:
        meta, count = row.metadata, {"status": {"collisionCount": row.status.collision_count + 1}}
        return Update(RESOURCE, key.namespace, key.name, meta.uid, canonical(count), "status")
    digest = name.rpartition("-")[2]
    template = dict(row.spec.template)
    labels = ((template.get("metadata") or {}).get("labels") or {}) | {HASH: digest}
    template["metadata"] = (template.get("metadata") or {}) | {"labels": labels}
    document = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": key.namespace,
            "labels": labels,
            "annotations": _annotations(row, sets),
            "ownerReferences": [owner_reference("apps/v1", "Deployment", row.metadata)],
        },
        "spec": {
            "replicas": replicas,
            "selector": _selector(row, digest),
            "template": template,
            **(
                {"minReadySeconds": row.spec.min_ready_seconds}
                if row.spec.min_ready_seconds
                else {}
            ),
        },
    }
    return Create(REPLICASET, key.namespace, name, canonical(document))


def _selector(row: Deployment, digest: str) -> JSON:
    written = row.spec.selector
    parts = [
        drop_empty({"key": one.key, "operator": one.operator, "values": list(one.values)})
        for one in written.match_expressions
    ]
    labels = {**written.match_labels, HASH: digest}
    return drop_empty({"matchLabels": labels, "matchExpressions": parts})


def _clear(key: ObjectKey, row: Deployment, sets: Sets) -> list[Delete]:
    """Old ReplicaSets beyond the history limit, oldest revision first, once nothing is in them."""
    spare = [one for one in sets.old if not one.metadata.deletion_timestamp]
    spare.sort(key=lambda one: (revision_of(one), one.metadata.creation_timestamp))
    excess = len(spare) - max(0, row.spec.revision_history_limit)
    if excess <= 0 or not _settled(row, sets):
        return []
    return [
        Delete(REPLICASET, key.namespace, one.metadata.name, one.metadata.uid)
        for one in spare[:excess]
        if not one.spec.replicas and not one.status.replicas
    ]


def _settled(row: Deployment, sets: Sets) -> bool:
    """The rollout is over: all pods are new and available."""
    status = sets.new.status if sets.new else None
    return status is not None and status.available_replicas == status.replicas == row.spec.replicas
