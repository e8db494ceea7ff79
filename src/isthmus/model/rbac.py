"""The rbac.authorization.k8s.io API group: who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import field

from isthmus.errors import Cause
from isthmus.model.columns import AGE, CREATED_AT, WIDE
from isthmus.model.document import ensure, get, items, mapping, settle, strings, text
from isthmus.model.faults import invalid, not_supported, required
from isthmus.model.kind import Check, Column, Default, Document, Kind, Version
from isthmus.model.meta import LabelSelector, Meta, View
from isthmus.model.names import path_segment_problems, subdomain_problems
from isthmus.model.selectors import selector_faults
from isthmus.model.wire.schemas import schema_of

GROUP: Final = "rbac.authorization.k8s.io"


class PolicyRule(View, frozen=True):
    """What is allowed: verbs on resources of groups, or on URL paths. `*` means all."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(default=(), name="nonResourceURLs")


class Role(View, frozen=True):
    """Role or ClusterRole: rules to bind."""

    metadata: Meta = Meta()
    rules: tuple[PolicyRule, ...] = ()


class AggregationRule(View, frozen=True):
    """Which ClusterRoles' rules are added to this one's."""

    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Role, frozen=True):
    """ClusterRole; its rules may be the sum of others'."""

    aggregation_rule: AggregationRule | None = None


class Subject(View, frozen=True):
    """A ServiceAccount, User or Group."""

    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class RoleRef(View, frozen=True):
    """The role that is bound."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class RoleBinding(View, frozen=True):
    """RoleBinding or ClusterRoleBinding: these subjects have that role."""

    metadata: Meta = Meta()
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = RoleRef()


# -------------------------------------------------------------------------------------- columns


def _role(document: Document, _now: float) -> str:
    return f"{text(document, 'roleRef.kind')}/{text(document, 'roleRef.name')}"


def _subjects_column(name: str, kind: str) -> Column:
    def cell(document: Document, _now: float) -> str:
        return ", ".join(
            f"{text(each, 'namespace')}/{text(each, 'name')}"
            if kind == "ServiceAccount"
            else text(each, "name")
            for each in items(document, "subjects")
            if text(each, "kind") == kind
        )

    return Column(name, cell, priority=WIDE)


_BINDING_COLUMNS: Final = (
    Column("Role", _role),
    AGE,
    _subjects_column("Users", "User"),
    _subjects_column("Groups", "Group"),
    _subjects_column("ServiceAccounts", "ServiceAccount"),
)

# --------------------------------------------------------------------------- defaults and checks


def _default_binding(document: Document) -> None:
    settle(ensure(document, "roleRef"), "apiGroup", GROUP)
    for subject in items(document, "subjects"):
        if text(subject, "kind") in ("User", "Group"):
            settle(subject, "apiGroup", GROUP)


def _role_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    for index, rule in enumerate(items(document, "rules")):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=True)


def _cluster_role_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    for index, rule in enumerate(items(document, "rules")):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=False)
    path = "aggregationRule.clusterRoleSelectors"
    if get(document, "aggregationRule") is not None and not items(document, path):
        yield required(
            path, "at least one clusterRoleSelector required if aggregationRule is non-nil"
        )
    for index, selector in enumerate(items(document, path)):
        yield from selector_faults(selector, f"{path}[{index}]")


def _rule_faults(rule: dict[str, Any], path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not strings(rule, "verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = strings(rule, "nonResourceURLs")
    if urls:
        if namespaced:
            says = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, says)
        if any(strings(rule, name) for name in ("apiGroups", "resources", "resourceNames")):
            says = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, says)
        return
    if not strings(rule, "apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not strings(rule, "resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def _binding_faults(kinds: tuple[str, ...]) -> Check:
    """The check of bindings to roles of these kinds."""

    def check(document: Document, old: Document | None) -> Iterator[Cause]:
        yield from _reference_faults(mapping(document, "roleRef"), kinds)
        for index, subject in enumerate(items(document, "subjects")):
            yield from _subject_faults(subject, f"subjects[{index}]")
        if old is not None and get(old, "roleRef") != get(document, "roleRef"):
            yield invalid("roleRef", get(document, "roleRef"), "cannot change roleRef")

    return check


def _reference_faults(reference: dict[str, Any], kinds: tuple[str, ...]) -> Iterator[Cause]:
    if text(reference, "apiGroup") != GROUP:
        yield not_supported("roleRef.apiGroup", text(reference, "apiGroup"), (GROUP,))
    if text(reference, "kind") not in kinds:
        yield not_supported("roleRef.kind", text(reference, "kind"), kinds)
    name = text(reference, "name")
    if not name:
        yield required("roleRef.name")
    for problem in path_segment_problems(name) if name else ():
        yield invalid("roleRef.name", name, problem)


def _subject_faults(subject: dict[str, Any], path: str) -> Iterator[Cause]:
    name, group = text(subject, "name"), text(subject, "apiGroup")
    if not name:
        yield required(f"{path}.name")
    match text(subject, "kind"):
        case "ServiceAccount":
            for problem in subdomain_problems(name) if name else ():
                yield invalid(f"{path}.name", name, problem)
            if group:
                yield not_supported(f"{path}.apiGroup", group, ("",))
            if not text(subject, "namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if group != GROUP:
                yield not_supported(f"{path}.apiGroup", group, (GROUP,))
        case kind:
            yield not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


# ---------------------------------------------------------------------------------------- records


def _kind(
    name: str,
    view: type[View],
    columns: tuple[Column, ...],
    check: Check,
    default: tuple[Default, ...] = (),
) -> Kind:
    return Kind(
        group=GROUP,
        name=name,
        plural=f"{name.lower()}s",
        singular=name.lower(),
        namespaced=not name.startswith("Cluster"),
        grammar=path_segment_problems,
        versions=(Version("v1", schema_of(f"rbac.v1.{name}"), columns=columns),),
        stored="v1",
        view=view,
        status=False,
        default=default,
        check=(check,),
        generation=False,
        custom=False,
    )


ROLE: Final = _kind("Role", Role, (CREATED_AT,), _role_faults)
CLUSTER_ROLE: Final = _kind("ClusterRole", ClusterRole, (CREATED_AT,), _cluster_role_faults)
ROLE_BINDING: Final = _kind(
    "RoleBinding",
    RoleBinding,
    _BINDING_COLUMNS,
    _binding_faults(("Role", "ClusterRole")),
    (_default_binding,),
)
CLUSTER_ROLE_BINDING: Final = _kind(
    "ClusterRoleBinding",
    RoleBinding,
    _BINDING_COLUMNS,
    _binding_faults(("ClusterRole",)),
    (_default_binding,),
)

KINDS: tuple[Kind, ...] = (ROLE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)
