"""A Deployment's status: counts, and what `kubectl rollout status` and `wait` read."""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.controllers.merge import TOUCH
from isthmus.controllers.pods import condition
from isthmus.controllers.rollout import bounds
from isthmus.controllers.steps import JSON, Step, Update, Wait, canonical, difference, without_zeros
from isthmus.controllers.time import due, seconds
from isthmus.engine import View
from isthmus.model.apps import Deployment, ReplicaSet
from isthmus.model.apps.deployment import DeploymentStatus
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Condition

Said = tuple[str, str, str]
"""(status, reason, message) of a condition."""

DONE = "NewReplicaSetAvailable"
LATE = "ProgressDeadlineExceeded"
FOREVER = 2**31 - 1
"""progressDeadlineSeconds that means: never."""


def status_steps(
    db: View,
    key: ObjectKey,
    row: Deployment,
    name: str,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    *,
    born: bool,
) -> tuple[Step, ...]:
    """The status to write, if it differs, and the deadline to wait for.

    `name` is the new ReplicaSet's, there or not; `born` says that it is being created right now.
    """
    counts = _counts(row, new, old)
    progressing = condition(row.status.conditions, "Progressing")
    said, touch = _progress(db, row, counts, progressing, name, born=born)
    changed = without_zeros(difference(_present(row.status), counts))
    conditions = _conditions(
        row, {"Progressing": said, "Available": _available(row, counts)}, touch
    )
    if conditions:
        changed["conditions"] = conditions
    steps: list[Step] = []
    if changed:
        merge, meta = canonical({"status": changed}), row.metadata
        steps.append(Update("deployments.apps", key.namespace, key.name, meta.uid, merge, "status"))
    if progressing and not touch and said[1] not in (DONE, LATE, "DeploymentPaused"):
        moment = _deadline(row, progressing)
        if moment is not None and not due(db, moment):
            steps.append(Wait(moment))
    return tuple(steps)


def _counts(row: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> dict[str, int]:
    every = [*old, *([new] if new else [])]
    available = sum(one.status.available_replicas for one in every)
    return {
        "observedGeneration": row.metadata.generation,
        "replicas": sum(one.status.replicas for one in every),
        "updatedReplicas": new.status.replicas if new else 0,
        "readyReplicas": sum(one.status.ready_replicas for one in every),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(one.spec.replicas for one in every) - available),
    }


def _present(status: DeploymentStatus) -> dict[str, int]:
    return {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "unavailableReplicas": status.unavailable_replicas,
    }


def _complete(row: Deployment, counts: dict[str, int]) -> bool:
    wanted = row.spec.replicas
    return counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted


def _moved(status: DeploymentStatus, counts: dict[str, int]) -> bool:
    """Whether the counts are nearer to the end than those told last."""
    left = counts["replicas"] - counts["updatedReplicas"]
    return (
        counts["updatedReplicas"] > status.updated_replicas
        or left < status.replicas - status.updated_replicas
        or counts["readyReplicas"] > status.ready_replicas
        or counts["availableReplicas"] > status.available_replicas
    )


def _progress(
    db: View,
    row: Deployment,
    counts: dict[str, int],
    now: Condition | None,
    name: str,
    *,
    born: bool,
) -> tuple[Said, bool]:
    """What to say of progress, and whether its time begins anew."""
    if row.spec.paused:
        return ("Unknown", "DeploymentPaused", "Deployment is paused"), now is None
    if born:
        return ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"'), True
    same = now is not None and f'"{name}"' in now.message
    if _complete(row, counts):
        said = ("True", DONE, f'ReplicaSet "{name}" has successfully progressed.')
        return said, not (same and now is not None and now.reason == DONE)
    if now is None or not same:
        return ("True", "FoundNewReplicaSet", f'Found new replica set "{name}"'), True
    held = (now.status, now.reason, now.message)
    if now.reason == DONE and counts["replicas"] == counts["updatedReplicas"]:
        return held, False
    if _moved(row.status, counts):
        return ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'), True
    moment = _deadline(row, now)
    if now.reason not in (DONE, LATE) and moment is not None and due(db, moment):
        return ("False", LATE, f'ReplicaSet "{name}" has timed out progressing.'), True
    return held, False


def _deadline(row: Deployment, progressing: Condition) -> int | None:
    limit = row.spec.progress_deadline_seconds
    if limit >= FOREVER or not progressing.last_update_time:
        return None
    return seconds(progressing.last_update_time) + limit


def _available(row: Deployment, counts: dict[str, int]) -> Said:
    limits = bounds(row.spec)
    slack = 0 if row.spec.strategy.type == "Recreate" else limits.unavailable
    if counts["availableReplicas"] + slack >= row.spec.replicas:
        return "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    text = "Deployment does not have minimum availability."
    return "False", "MinimumReplicasUnavailable", text


def _conditions(row: Deployment, said: dict[str, Said], touch: bool) -> list[JSON]:  # noqa: FBT001
    """The conditions that differ from what is there."""
    result = []
    for kind, (status, reason, message) in said.items():
        now = condition(row.status.conditions, kind)
        differs = now is None or (now.status, now.reason, now.message) != (status, reason, message)
        if differs or (kind == "Progressing" and touch):
            fields: dict[str, JSON] = {"type": kind, "status": status, "reason": reason}
            if differs or touch:
                fields["lastUpdateTime"] = TOUCH
            result.append(fields | {"message": message})
    return result
