"""Roles: those that must be, and those that gather the rules of others.

Default roles and bindings are made when they are missing and completed when something of theirs is;
what people add to them stays. Who does not want that says so on the object (AUTO_UPDATE "false").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from isthmus.controllers.default_roles import (
    BINDINGS,
    ROLES,
    TO,
    DefaultBinding,
    DefaultRole,
)
from isthmus.controllers.steps import JSON, Create, Delete, Plan, Step, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, aggregated
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Meta
from isthmus.model.rbac import GROUP as RBAC

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPED = {"kubernetes.io/bootstrapping": "rbac-defaults"}
ROLE_RESOURCE = f"clusterroles.{RBAC}"
BINDING_RESOURCE = f"clusterrolebindings.{RBAC}"


@query
def default_keys(_db: View, where: Place) -> tuple[str, ...]:
    """The cluster, once."""
    return () if where.namespace else (where.cluster,)


@query
def defaults(db: View, cluster: str) -> Plan:
    """What the default roles and bindings of a cluster lack."""
    steps: list[Step] = []
    for role in ROLES:
        steps += _role(db, cluster, role)
    for binding in BINDINGS:
        steps += _binding(db, cluster, binding)
    return tuple(steps)


def role_document(role: DefaultRole) -> dict[str, JSON]:
    """The ClusterRole as it is made."""
    document = _document("ClusterRole", role.name, _labels(role))
    if role.gathers:
        selectors = msgspec.to_builtins(role.selectors)
        document["aggregationRule"] = {"clusterRoleSelectors": selectors}
    document["rules"] = msgspec.to_builtins(role.rules)
    return document


def binding_document(binding: DefaultBinding) -> dict[str, JSON]:
    """The ClusterRoleBinding as it is made."""
    document = _document("ClusterRoleBinding", binding.name, BOOTSTRAPPED)
    document["roleRef"] = msgspec.to_builtins(binding.role)
    document["subjects"] = msgspec.to_builtins(binding.subjects)
    return document


def _document(kind: str, name: str, labels: Mapping[str, str]) -> dict[str, JSON]:
    annotations = {AUTO_UPDATE: "true"}
    metadata = {"name": name, "labels": dict(labels), "annotations": annotations}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}


def _labels(role: DefaultRole) -> dict[str, str]:
    contributed = {f"{TO}{role.contributes}": "true"} if role.contributes else {}
    return BOOTSTRAPPED | contributed


def _role(db: View, cluster: str, role: DefaultRole) -> Plan:
    row = CLUSTER_ROLES.get(db, ObjectKey(cluster, "", role.name))
    if row is None:
        return (Create(ROLE_RESOURCE, "", role.name, canonical(role_document(role))),)
    if _left_alone(row.metadata):
        return ()
    merge = _metadata(row.metadata, _labels(role))
    if role.gathers:
        gathering = row.aggregation_rule
        selectors = gathering.cluster_role_selectors if gathering is not None else ()
        if wanted := _completed(selectors, role.selectors):
            merge["aggregationRule"] = {"clusterRoleSelectors": wanted}
    elif wanted := _completed(row.rules, role.rules):
        merge["rules"] = wanted
    return _update(ROLE_RESOURCE, row.metadata, merge)


def _binding(db: View, cluster: str, binding: DefaultBinding) -> Plan:
    row = CLUSTER_ROLE_BINDINGS.get(db, ObjectKey(cluster, "", binding.name))
    if row is None:
        return (Create(BINDING_RESOURCE, "", binding.name, canonical(binding_document(binding))),)
    if _left_alone(row.metadata):
        return ()
    if row.role_ref != binding.role:  # what is bound cannot be changed
        return (Delete(BINDING_RESOURCE, "", binding.name, row.metadata.uid),)
    merge = _metadata(row.metadata, BOOTSTRAPPED)
    if wanted := _completed(row.subjects, binding.subjects):
        merge["subjects"] = wanted
    return _update(BINDING_RESOURCE, row.metadata, merge)


def _left_alone(meta: Meta) -> bool:
    return bool(meta.deletion_timestamp) or meta.annotations.get(AUTO_UPDATE) == "false"


def _metadata(meta: Meta, labels: Mapping[str, str]) -> dict[str, JSON]:
    """The labels and the annotation that are missing, as a merge."""
    found: dict[str, JSON] = {}
    lacking = {name: text for name, text in labels.items() if meta.labels.get(name) != text}
    if lacking:
        found["labels"] = lacking
    if AUTO_UPDATE not in meta.annotations:
        found["annotations"] = {AUTO_UPDATE: "true"}
    return {"metadata": found} if found else {}


def _completed(held: Sequence[Any], wanted: Sequence[Any]) -> list[JSON]:
    """What is there and what is missing, if something is."""
    missing = [each for each in wanted if each not in held]
    return [msgspec.to_builtins(each) for each in (*held, *missing)] if missing else []


def _update(resource: str, meta: Meta, merge: Mapping[str, JSON]) -> Plan:
    return (Update(resource, "", meta.name, meta.uid, canonical(merge)),) if merge else ()


# ----------------------------------------------------------------------------------- aggregation


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every ClusterRole."""
    return () if where.namespace else CLUSTER_ROLES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The rules that a ClusterRole gathers, where it has others."""
    row, rules = CLUSTER_ROLES.get(db, key), aggregated(db, key)
    if row is None or rules is None or rules == row.rules or row.metadata.deletion_timestamp:
        return ()
    merge = canonical({"rules": msgspec.to_builtins(rules)})
    return (Update(ROLE_RESOURCE, "", key.name, row.metadata.uid, merge),)


@query
def settled(db: View, cluster: str) -> bool:
    """Whether every default role and binding is there, with all that it should have."""
    gathering = (ObjectKey(cluster, "", role.name) for role in ROLES if role.gathers)
    return not defaults(db, cluster) and not any(plan(db, key) for key in gathering)
