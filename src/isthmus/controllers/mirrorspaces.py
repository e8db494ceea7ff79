"""Namespaces that Services of linked clusters need here: made where a Link asks for it."""

from __future__ import annotations

from isthmus.controllers.steps import JSON, Create, Plan, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.exports import MIRROR_CLUSTER, MIRRORED, namespaces_of
from isthmus.mesh.linked import refusal
from isthmus.mesh.links import LINKS
from isthmus.mesh.tables import NAMESPACES
from isthmus.model.annotations.keys import CREATE_NAMESPACES
from isthmus.model.key import ObjectKey


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Link of a namespace."""
    return LINKS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The namespaces that a Link's Services need, if it asks for that; they are never deleted."""
    row = LINKS.get(db, key)
    asked = row is not None and row.metadata.annotations.get(CREATE_NAMESPACES) == "true"
    if row is None or not asked or refusal(db, key) is not None:
        return ()
    return tuple(
        Create("namespaces", "", name, canonical(_namespace(name, row.spec.target_cluster_name)))
        for name in namespaces_of(db, key)
        if NAMESPACES.get(db, ObjectKey(key.cluster, "", name)) is None
    )


def _namespace(name: str, cluster: str) -> JSON:
    labels = {MIRRORED: "true", MIRROR_CLUSTER: cluster}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
