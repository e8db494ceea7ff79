"""Objects that the tests of controllers write."""

from __future__ import annotations

from isthmus.model import Document


def workload(
    kind: str, name: str, replicas: int = 1, image: str = "x", /, **spec: object
) -> Document:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
            **spec,
        },
    }


def image(name: str) -> Document:
    """The patch of `kubectl set image`."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


def pod(name: str, labels: dict[str, str] | None = None, /, **spec: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def service(name: str = "web", /, **spec: object) -> Document:
    """None in `spec` leaves a field out."""
    fields = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {field: value for field, value in fields.items() if value is not None},
    }


def config(name: str, *owners: Document, namespace: str = "shop") -> Document:
    """A plain object with owners."""
    references = [reference(owner) for owner in owners]
    metadata = {"name": name, "namespace": namespace, "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def reference(owner: Document, *, blocks: bool = True) -> Document:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }


def conditions(document: Document | None) -> dict[str, tuple[str, str]]:
    """Type -> (status, reason)."""
    assert document is not None
    return {one["type"]: (one["status"], one["reason"]) for one in document["status"]["conditions"]}
