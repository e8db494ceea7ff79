"""Roles and bindings in tables, as a cluster has them when its controllers have settled."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import to_builtins

from isthmus.controllers.default_roles import BINDINGS, ROLES
from isthmus.controllers.roles import binding_document, role_document
from isthmus.engine import Change, Database, Put
from isthmus.mesh.rbac import RBAC_SOURCES, aggregated
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Document
from isthmus.model.rbac import GROUP
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.rbac import Rbac
from isthmus.store.codec import encode

HERE = "here"


def put(document: Document, cluster: str = HERE) -> Change:
    """A role or binding as the board puts it there."""
    kind = BUILT_IN.by_api_version(document["apiVersion"], document["kind"])
    assert kind is not None
    source = RBAC_SOURCES[kind.resource]
    meta = document["metadata"]
    key = ObjectKey(cluster, meta.get("namespace", ""), meta["name"])
    return Put(source.table, key, source.row(encode(document)))


def defaults(cluster: str = HERE) -> Iterator[Change]:
    """The default roles and bindings; the gathering roles still empty."""
    for role in ROLES:
        yield put(role_document(role), cluster)
    for binding in BINDINGS:
        yield put(binding_document(binding), cluster)


def authorizer(*documents: Document) -> Rbac:
    """An authorizer over the default roles and more."""
    db = Database()
    db.commit(defaults())
    db.commit([put(document) for document in documents])
    for role in ROLES:
        rules = db.read(aggregated, ObjectKey(HERE, "", role.name))
        if rules is not None:
            document = role_document(role)
            document["rules"] = to_builtins(rules)
            db.commit([put(document)])
    return Rbac(db, HERE)


def role(name: str, *rules: Document, namespace: str = "") -> Document:
    """A Role, or without a namespace a ClusterRole."""
    return _document("Role", name, namespace) | {"rules": list(rules)}


def binding(name: str, to: str, *subjects: Document, namespace: str = "") -> Document:
    """A binding to the role `Kind/name`."""
    kind, _, named = to.partition("/")
    reference = {"apiGroup": GROUP, "kind": kind, "name": named}
    return _document("RoleBinding", name, namespace) | {
        "roleRef": reference,
        "subjects": list(subjects),
    }


def _document(kind: str, name: str, namespace: str) -> Document:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    prefix = "" if namespace else "Cluster"
    return {"apiVersion": f"{GROUP}/v1", "kind": f"{prefix}{kind}", "metadata": metadata}


def user(name: str) -> Document:
    """A subject."""
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> Document:
    """A subject."""
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(namespace: str, name: str) -> Document:
    """A subject."""
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def allow(verbs: str, resources: str, *, groups: str = "", names: str = "") -> Document:
    """A rule; each part a list by commas."""
    rule: Document = {
        "verbs": verbs.split(","),
        "apiGroups": groups.split(","),
        "resources": resources.split(","),
    }
    return rule | ({"resourceNames": names.split(",")} if names else {})


def allow_urls(verbs: str, urls: str) -> Document:
    """A rule about paths."""
    return {"verbs": verbs.split(","), "nonResourceURLs": urls.split(",")}
