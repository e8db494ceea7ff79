"""RBAC: what one decision of the authorizer costs, among two hundred roles and bindings."""

from __future__ import annotations

import time

from bench.table import Figure
from isthmus.controllers.default_roles import BINDINGS, ROLES
from isthmus.controllers.roles import binding_document, role_document
from isthmus.engine import Change, Database, Put
from isthmus.mesh.rbac import RBAC_SOURCES, aggregated
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Document
from isthmus.model.rbac import GROUP
from isthmus.serve.kube.auth import Attributes, User
from isthmus.serve.kube.rbac import Rbac
from isthmus.store.codec import encode

HERE = "bench"
MANY = 200
ROUNDS = 20_000
COLD = 2_000
KNOWN = ("system:authenticated",)


def put(document: Document) -> Change:
    """The row of a role or binding."""
    meta = document["metadata"]
    source = RBAC_SOURCES[f"{document['kind'].lower()}s.{GROUP}"]
    key = ObjectKey(HERE, meta.get("namespace", ""), meta["name"])
    return Put(source.table, key, source.row(encode(document)))


def bound(name: str, role: str, user: str, namespace: str = "") -> Document:
    """A binding of a ClusterRole to a user."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


def cluster() -> Rbac:
    """The default roles, many more, and a viewer of one namespace."""
    db = Database()
    db.commit(put(role_document(role)) for role in ROLES)
    db.commit(put(binding_document(binding)) for binding in BINDINGS)
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
    for number in range(MANY):
        role = {"kind": "ClusterRole", "metadata": {"name": f"r{number}"}, "rules": [rule]}
        db.commit([put(role), put(bound(f"b{number}", f"r{number}", f"u{number}"))])
    db.commit([put(bound("viewer", "view", "viewer", "a"))])
    source = RBAC_SOURCES[f"clusterroles.{GROUP}"]
    for name in ("view", "edit", "admin"):
        key = ObjectKey(HERE, "", name)
        rules = db.read(aggregated, key)
        row = source.row(b'{"metadata":{"name":"%s"}}' % name.encode())
        db.commit([Put(source.table, key, type(row)(metadata=row.metadata, rules=rules))])
    return Rbac(db, HERE)


def cost(rights: Rbac, user: User, asked: Attributes) -> float:
    """Microseconds of one decision, when it was asked before."""
    rights.decide(user, asked)
    start = time.perf_counter()
    for _ in range(ROUNDS):
        rights.decide(user, asked)
    return (time.perf_counter() - start) / ROUNDS * 1e6


def figures() -> list[Figure]:
    """Warm, by who asks; and cold."""
    rights = cluster()
    pods = Attributes("list", "", "v1", "pods", "", "a")
    account = User("system:serviceaccount:a:x", ("system:serviceaccounts", *KNOWN))
    warm = [
        ("cluster-wide right", User("u7", KNOWN), pods),
        ("view in one namespace", User("viewer", KNOWN), pods),
        ("refused account", account, pods),
        ("a path", account, Attributes("get", path="/api")),
    ]
    found = [
        Figure(f"authorize: {name}", cost(rights, user, asked), "us", "≤ 20")
        for name, user, asked in warm
    ]
    start = time.perf_counter()
    for number in range(COLD):
        rights.decide(User(f"new-{number}", KNOWN), pods)
    spent = (time.perf_counter() - start) / COLD * 1e6
    return [*found, Figure("authorize: somebody new", spent, "us")]
