"""What controllers ask about pods, and the pods they make. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.controllers.steps import JSON, Create, Wait, canonical, drop_empty
from isthmus.controllers.time import due, seconds
from isthmus.engine import View
from isthmus.mesh.tables import NAMESPACES
from isthmus.model.core import Pod
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Condition, CountedMeta

READY = "Ready"

BURST = 500
"""Pods that one plan creates; the next plan creates the next (Kubernetes: burstReplicas)."""

Template = Mapping[str, JSON]
"""A PodTemplateSpec as JSON values, which nobody changes."""


def lives(db: View, key: ObjectKey) -> bool:
    """Whether the object's namespace exists and stays; nothing can be created in it otherwise."""
    row = NAMESPACES.get(db, ObjectKey(key.cluster, "", key.namespace))
    return row is not None and not row.metadata.deletion_timestamp


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of this type."""
    return next((one for one in conditions if one.type == kind), None)


def is_ready(pod: Pod) -> bool:
    """The pod's own word for it: condition Ready is True."""
    found = condition(pod.status.conditions, READY)
    return found is not None and found.status == "True"


def is_finished(pod: Pod) -> bool:
    """All containers ended and will not start again."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out."""
    return not is_finished(pod) and not pod.metadata.deletion_timestamp


def available(db: View, pod: Pod, min_ready: int) -> bool:
    """Ready, and for `min_ready` seconds already (spec.minReadySeconds)."""
    return is_ready(pod) and (min_ready <= 0 or due(db, available_at(pod, min_ready)))


def available_at(pod: Pod, min_ready: int) -> int:
    """When a ready pod becomes available."""
    found = condition(pod.status.conditions, READY)
    return seconds(found.last_transition_time if found else "") + min_ready


def wait_for(db: View, pods: Mapping[ObjectKey, Pod], min_ready: int) -> tuple[Wait, ...]:
    """The next moment at which a ready pod becomes available."""
    moments = [
        available_at(pod, min_ready)
        for pod in pods.values()
        if is_ready(pod) and not available(db, pod, min_ready)
    ]
    return (Wait(min(moments)),) if moments else ()


def owner_reference(api_version: str, kind: str, meta: CountedMeta) -> dict[str, JSON]:
    """The reference that makes `meta`'s object the controller of another."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(
    template: Template, namespace: str, name: str, owner: Mapping[str, JSON], extra: Template
) -> Create:
    """The pod that a template describes.

    `extra` is merged over it, two levels deep: `{"metadata": {"labels": {...}}, "spec": {...}}`.
    """
    meta, spec = template.get("metadata") or {}, dict(template.get("spec") or {})
    more = extra.get("metadata") or {}
    metadata = {
        "name": name,
        "generateName": more.get("generateName"),
        "namespace": namespace,
        "labels": (meta.get("labels") or {}) | (more.get("labels") or {}),
        "annotations": meta.get("annotations"),
        "finalizers": meta.get("finalizers"),
        "ownerReferences": [dict(owner)],
    }
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec |= {"serviceAccountName": account, "serviceAccount": account, **(extra.get("spec") or {})}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": drop_empty(metadata),
        "spec": spec,
    }
    return Create("pods", namespace, name, canonical(document))
