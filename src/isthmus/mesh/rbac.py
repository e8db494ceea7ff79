"""Who has which rights: roles and bindings as tables, and one query per question.

A user is asked about under every name that they have: their own and that of each group. Each name
is filed where bindings mention it (`held_by`), so neither the number of roles nor that of bindings
matters for an answer. A binding to a role that is missing gives nothing. Everything stays inside
one cluster: a binding of one never speaks for a user of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import Index, Table, View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import Source, place
from isthmus.model.key import ObjectKey
from isthmus.model.meta import LabelSelector
from isthmus.model.names import label_problems, subdomain_problems
from isthmus.model.rbac import ClusterRole, PolicyRule, Role, RoleBinding, RoleRef, Subject
from isthmus.model.selectors import selects

USER: Final = "User"
GROUP: Final = "Group"
ACCOUNT: Final = "ServiceAccount"

ROLES: Table[ObjectKey, Role] = Table("roles")
CLUSTER_ROLES: Table[ObjectKey, ClusterRole] = Table("clusterroles", scope=place)
ROLE_BINDINGS: Table[ObjectKey, RoleBinding] = Table("rolebindings")
CLUSTER_ROLE_BINDINGS: Table[ObjectKey, RoleBinding] = Table("clusterrolebindings")

LISTED: Final = frozenset({"clusterroles"})
"""The tables whose names may be listed: aggregation attends ClusterRoles one by one."""


class Holder(NamedTuple):
    """One name of somebody, and where their rights are asked for ("": in the whole cluster).

    `kind` is User or Group; a ServiceAccount is the user that its tokens name.
    """

    cluster: str
    namespace: str
    kind: str
    name: str


class Label(NamedTuple):
    """A pair that a ClusterRole bears."""

    cluster: str
    name: str
    value: str


def account_user(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount; "" for what cannot be one.

    No colon gets in: `a:b` and `c` must not be read as `a` and `b:c`.
    """
    if next(iter((*label_problems(namespace), *subdomain_problems(name))), None):
        return ""
    return f"system:serviceaccount:{namespace}:{name}"


def _holders(key: ObjectKey, row: RoleBinding) -> Iterable[Holder]:
    for subject in row.subjects:
        kind, name = _named(subject, key.namespace)
        if name:
            yield Holder(key.cluster, key.namespace, kind, name)


def _named(subject: Subject, namespace: str) -> tuple[str, str]:
    """Whom a subject means; a name of "" is nobody."""
    match subject.kind:
        case "User" | "Group":
            return subject.kind, subject.name
        case "ServiceAccount":
            return USER, account_user(subject.namespace or namespace, subject.name)
        case _:
            return USER, ""


def _labels(key: ObjectKey, row: ClusterRole) -> Iterable[Label]:
    return (Label(key.cluster, *pair) for pair in row.metadata.labels.items())


HELD: Index[ObjectKey, RoleBinding, Holder] = Index("rolebindings_held", ROLE_BINDINGS, _holders)
HELD_EVERYWHERE: Index[ObjectKey, RoleBinding, Holder] = Index(
    "clusterrolebindings_held", CLUSTER_ROLE_BINDINGS, _holders
)
CLUSTER_ROLES_BY_LABEL: Index[ObjectKey, ClusterRole, Label] = Index(
    "clusterroles_by_label", CLUSTER_ROLES, _labels
)


# ---------------------------------------------------------------------------------- who may what


class Grant(msgspec.Struct, frozen=True):
    """Rules that somebody has, and by what."""

    because: str
    rules: tuple[PolicyRule, ...]


class Asker(NamedTuple):
    """Somebody under all their names, asking about one place ("": the whole cluster)."""

    cluster: str
    namespace: str
    user: str
    groups: tuple[str, ...]


@query
def role_rules(
    db: View, cluster: str, namespace: str, kind: str, name: str
) -> tuple[PolicyRule, ...] | None:
    """The rules of a role as a binding in `namespace` names it; None if there is no such role."""
    match kind:
        case "ClusterRole":
            cluster_role = CLUSTER_ROLES.get(db, ObjectKey(cluster, "", name))
            return cluster_role.rules if cluster_role is not None else None
        case "Role" if namespace:
            role = ROLES.get(db, ObjectKey(cluster, namespace, name))
            return role.rules if role is not None else None
        case _:
            return None


@query
def held_by(db: View, holder: Holder) -> tuple[Grant, ...]:
    """What the bindings of one place give to one name, in the order of the bindings' names."""
    everywhere = not holder.namespace
    table = CLUSTER_ROLE_BINDINGS if everywhere else ROLE_BINDINGS
    found: list[Grant] = []
    for key in (HELD_EVERYWHERE if everywhere else HELD).get(db, holder):
        row = table.get(db, key)
        if row is None:
            continue
        to = row.role_ref
        rules = role_rules(db, key.cluster, key.namespace, to.kind, to.name)
        if rules:
            found.append(Grant(_because(key, to, holder), rules))
    return tuple(found)


def _because(key: ObjectKey, role: RoleRef, holder: Holder) -> str:
    if key.namespace:
        binding = f'RoleBinding "{key.name}/{key.namespace}"'
    else:
        binding = f'ClusterRoleBinding "{key.name}"'
    return f'RBAC: allowed by {binding} of {role.kind} "{role.name}" to {_told(holder)}'


def _told(holder: Holder) -> str:
    """The subject as Kubernetes tells it: accounts as `ServiceAccount "name/namespace"`."""
    account = holder.name.removeprefix("system:serviceaccount:")
    namespace, colon, name = account.partition(":")
    if holder.kind == USER and account != holder.name and colon:
        return f'{ACCOUNT} "{name}/{namespace}"'
    return f'{holder.kind} "{holder.name}"'


@query
def rights(db: View, asker: Asker) -> tuple[Grant, ...]:
    """Everything that the bindings of one place give to somebody, under whatever name."""
    cluster, namespace, user, groups = asker
    found = list(held_by(db, Holder(cluster, namespace, USER, user)))
    for group in groups:
        found += held_by(db, Holder(cluster, namespace, GROUP, group))
    return tuple(found)


# ----------------------------------------------------------------------------------- aggregation


@query
def aggregated(db: View, key: ObjectKey) -> tuple[PolicyRule, ...] | None:
    """The rules that an aggregating ClusterRole should have; None if it does not aggregate.

    Those of every ClusterRole that one of its selectors selects, each rule once, in the order of
    the roles' names. Of a selected role that aggregates itself, what it selects counts and never
    what stands in it: so the rules follow from what people wrote alone, also around a circle.
    """
    row = CLUSTER_ROLES.get(db, key)
    if row is None or row.aggregation_rule is None:
        return None
    seen, fresh = {key}, [key]
    written: dict[ObjectKey, tuple[PolicyRule, ...]] = {}
    while fresh:
        at = fresh.pop()
        found = CLUSTER_ROLES.get(db, at)
        if found is None:
            continue
        if found.aggregation_rule is None:
            written[at] = found.rules
            continue
        for selector in found.aggregation_rule.cluster_role_selectors:
            new = set(_selected(db, key, selector)) - seen
            seen |= new
            fresh += sorted(new)
    return tuple(dict.fromkeys(rule for at in sorted(written) for rule in written[at]))


def _selected(db: View, key: ObjectKey, selector: LabelSelector) -> Iterator[ObjectKey]:
    """ClusterRoles that bear the labels; only a selector without pairs looks at all of them."""
    for pair in sorted(selector.match_labels.items())[:1]:
        candidates = CLUSTER_ROLES_BY_LABEL.get(db, Label(key.cluster, *pair))
        break
    else:
        candidates = CLUSTER_ROLES.names(db, Place(key.cluster, ""))
    for candidate in candidates:
        row = CLUSTER_ROLES.get(db, candidate)
        if row is not None and selects(selector, row.metadata.labels):
            yield candidate


RBAC_SOURCES: Final[Mapping[str, Source]] = {
    f"{table.name}.rbac.authorization.k8s.io": Source(table, msgspec.json.Decoder(row).decode)
    for table, row in (
        (ROLES, Role),
        (CLUSTER_ROLES, ClusterRole),
        (ROLE_BINDINGS, RoleBinding),
        (CLUSTER_ROLE_BINDINGS, RoleBinding),
    )
}
"""By the resource part of store keys."""
