"""Namespaces: the ones that must be, what each begins with, and how one ends."""

from __future__ import annotations

from collections import Counter

from isthmus.controllers.lives import FINALIZER, NAME_LABEL
from isthmus.controllers.merge import REMOVE
from isthmus.controllers.pods import condition
from isthmus.controllers.settings import SETTINGS
from isthmus.controllers.steps import JSON, Create, Delete, Plan, Step, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import BY_NAMESPACE, CENSUS, CensusKey, Place
from isthmus.mesh.tables import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from isthmus.model.core import Namespace
from isthmus.model.key import ObjectKey

DEFAULTS = ("default", "kube-node-lease", "kube-public", "kube-system")
ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
CA_FIELD = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
ABOUT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc."
)


@query
def defaults(db: View, cluster: str) -> Plan:
    """The namespaces that every cluster has."""
    settings = SETTINGS.get(db, cluster)
    if settings is None:
        return ()
    return tuple(
        Create("namespaces", "", name, canonical(_namespace(name)))
        for name in sorted({*DEFAULTS, settings.control_plane_namespace})
        if NAMESPACES.get(db, ObjectKey(cluster, "", name)) is None
    )


def _namespace(name: str) -> JSON:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@query
def default_keys(_db: View, where: Place) -> tuple[str, ...]:
    """The cluster, once."""
    return () if where.namespace else (where.cluster,)


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Namespace of a cluster."""
    return () if where.namespace else NAMESPACES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """What a namespace begins with while it lives; its content and its finalizer when it goes."""
    row = NAMESPACES.get(db, key)
    if row is None:
        return ()
    if row.metadata.deletion_timestamp:
        return _end(db, key, row)
    steps: list[Step] = []
    if row.metadata.labels.get(NAME_LABEL) != key.name:
        merge = canonical({"metadata": {"labels": {NAME_LABEL: key.name}}})
        steps.append(Update("namespaces", "", key.name, row.metadata.uid, merge))
    if SERVICE_ACCOUNTS.get(db, ObjectKey(key.cluster, key.name, ACCOUNT)) is None:
        steps.append(_account(key.name))
    settings = SETTINGS.get(db, key.cluster)
    if settings is not None and settings.root_ca:
        steps += _root_ca(db, key, settings.root_ca)
    return tuple(steps)


def _account(namespace: str) -> Create:
    metadata = {"name": ACCOUNT, "namespace": namespace}
    document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    return Create("serviceaccounts", namespace, ACCOUNT, canonical(document))


def _root_ca(db: View, key: ObjectKey, pem: str) -> list[Step]:
    held = CONFIG_MAPS.get(db, ObjectKey(key.cluster, key.name, ROOT_CA))
    if held is None:
        metadata = {"name": ROOT_CA, "namespace": key.name, "annotations": {DESCRIPTION: ABOUT_CA}}
        data = {CA_FIELD: pem}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        return [Create("configmaps", key.name, ROOT_CA, canonical(document))]
    if dict(held.data) == {CA_FIELD: pem}:
        return []
    gone = {name: None for name in held.data if name != CA_FIELD}
    merge = canonical({"data": {**gone, CA_FIELD: pem}})
    return [Update("configmaps", key.name, ROOT_CA, held.metadata.uid, merge)]


def _end(db: View, key: ObjectKey, row: Namespace) -> Plan:
    """Delete the content of every kind; when none is left, the finalizer goes, and so it goes."""
    content = BY_NAMESPACE.get(db, Place(key.cluster, key.name))
    if not content:
        if FINALIZER not in row.spec.finalizers:
            return ()
        merge = canonical({"spec": {f"{REMOVE}finalizers": [FINALIZER]}})
        return (Update("namespaces", "", key.name, row.metadata.uid, merge, "finalize"),)
    steps: list[Step] = []
    finalizers: Counter[str] = Counter()
    for at in content:
        found = CENSUS.get(db, at)
        if found is None:
            continue
        if found.metadata.deletion_timestamp:
            finalizers.update(found.metadata.finalizers)
        else:
            steps.append(Delete(at.resource, at.namespace, at.name, found.metadata.uid))
    return (*steps, *_tell(row, key, content, finalizers))


def _tell(
    row: Namespace, key: ObjectKey, content: tuple[CensusKey, ...], finalizers: Counter[str]
) -> Plan:
    """The conditions that say what a namespace still waits for (Kubernetes' types and reasons)."""
    kinds = Counter(at.resource for at in content)
    left = ", ".join(
        f"{kind} has {count} resource instances" for kind, count in sorted(kinds.items())
    )
    held = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
    )
    wanted = [
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            f"Some resources are remaining: {left}",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True" if held else "False",
            "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {held}"
            if held
            else "All content-preserving finalizers finished",
        ),
    ]
    conditions = []
    for kind, status, reason, message in wanted:
        now = condition(row.status.conditions, kind)
        if now is None or (now.status, now.reason, now.message) != (status, reason, message):
            said = {"type": kind, "status": status, "reason": reason, "message": message}
            conditions.append(said)
    if not conditions:
        return ()
    merge = canonical({"status": {"conditions": conditions}})
    return (Update("namespaces", "", key.name, row.metadata.uid, merge, "status"),)
