"""The roles that every cluster has, and who has them from the start.

Names, labels and meaning are Kubernetes' ("Default roles and role bindings"). `view`, `edit` and
`admin` gather what others contribute by label, so that the mesh's own kinds are in them without
being named here: whoever may see or edit workloads may see or edit what says how they talk. `view`
shows no Secrets, and nobody but `admin` and above gives rights.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from isthmus.model.meta import LabelSelector
from isthmus.model.rbac import GROUP as RBAC
from isthmus.model.rbac import PolicyRule, RoleRef, Subject
from isthmus.model.registry import BUILT_IN

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
EVERY: Final = (*WRITE[:3], *READ, *WRITE[3:])
CREATE: Final = ("create",)
ALL: Final = ("*",)
CORE: Final = ("",)

TO: Final = "rbac.authorization.k8s.io/aggregate-to-"
"""The label by which a ClusterRole contributes to `view`, `edit` or `admin`."""

AUTHORIZATION: Final = "authorization.k8s.io"
AUTHENTICATION: Final = "authentication.k8s.io"


class DefaultRole(NamedTuple):
    """A ClusterRole: its rules, or the name under which others contribute to it (`gathers`)."""

    name: str
    rules: tuple[PolicyRule, ...] = ()
    contributes: str = ""
    gathers: str = ""

    @property
    def selectors(self) -> tuple[LabelSelector, ...]:
        """Of its aggregation rule."""
        return (LabelSelector(match_labels={f"{TO}{self.gathers}": "true"}),)


class DefaultBinding(NamedTuple):
    """A ClusterRoleBinding of the role of the same name."""

    name: str
    groups: tuple[str, ...]

    @property
    def role(self) -> RoleRef:
        """What is bound."""
        return RoleRef(api_group=RBAC, kind="ClusterRole", name=self.name)

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """To whom."""
        return tuple(Subject(kind="Group", api_group=RBAC, name=group) for group in self.groups)


def _rule(groups: tuple[str, ...], verbs: tuple[str, ...], *resources: str) -> PolicyRule:
    return PolicyRule(verbs=verbs, api_groups=groups, resources=resources)


def _urls(*urls: str) -> PolicyRule:
    return PolicyRule(verbs=("get",), non_resource_urls=urls)


_WORKLOADS: Final = (
    "deployments", "deployments/scale", "replicasets", "replicasets/scale",
    "statefulsets", "statefulsets/scale",
)  # fmt: skip

_VIEWED: Final = (
    _rule(
        CORE, READ,
        "configmaps", "endpoints", "events", "namespaces", "namespaces/status", "pods", "pods/log",
        "pods/status", "serviceaccounts", "services", "services/status",
    ),
    _rule(
        ("apps",), READ,
        "controllerrevisions", *_WORKLOADS, "deployments/status", "replicasets/status",
        "statefulsets/status",
    ),
    _rule(("batch",), READ, "jobs", "jobs/status"),
    _rule(("coordination.k8s.io",), READ, "leases"),
    _rule(("discovery.k8s.io",), READ, "endpointslices"),
)  # fmt: skip

# Endpoints and slices are not among them: who writes those speaks for addresses that may be
# anybody's (Kubernetes took them out for the same reason, CVE-2021-25740).
_EDITED: Final = (
    _rule(
        CORE, READ,
        "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy",
    ),
    _rule(CORE, ("impersonate",), "serviceaccounts"),
    _rule(
        CORE, WRITE,
        "configmaps", "events", "pods", "pods/attach", "pods/exec", "pods/portforward",
        "pods/proxy", "secrets", "serviceaccounts", "services", "services/proxy",
    ),
    _rule(CORE, CREATE, "pods/eviction", "serviceaccounts/token"),
    _rule(("apps",), WRITE, *_WORKLOADS),
    _rule(("batch",), WRITE, "jobs"),
    _rule(("coordination.k8s.io",), WRITE, "leases"),
)  # fmt: skip

_ADMINISTERED: Final = (
    _rule((AUTHORIZATION,), CREATE, "localsubjectaccessreviews"),
    _rule((RBAC,), EVERY, "rolebindings", "roles"),
)


def _mesh(verbs: tuple[str, ...], *, status: bool) -> tuple[PolicyRule, ...]:
    """The mesh's own namespaced kinds, a rule per API group."""
    resources: defaultdict[str, list[str]] = defaultdict(list)
    for kind in BUILT_IN:
        if kind.custom and kind.namespaced and kind.persisted:
            resources[kind.group].append(kind.plural)
            if status and kind.status:
                resources[kind.group].append(f"{kind.plural}/status")
    return tuple(
        _rule((group,), verbs, *sorted(names)) for group, names in sorted(resources.items())
    )


_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_VERSION: Final = ("/version", "/version/")

ROLES: Final = (
    DefaultRole(
        "cluster-admin", (_rule(ALL, ALL, *ALL), PolicyRule(verbs=ALL, non_resource_urls=ALL))
    ),
    DefaultRole("admin", gathers="admin"),
    DefaultRole("edit", gathers="edit", contributes="admin"),
    DefaultRole("view", gathers="view", contributes="edit"),
    DefaultRole("system:aggregate-to-admin", _ADMINISTERED, "admin"),
    DefaultRole("system:aggregate-to-edit", _EDITED, "edit"),
    DefaultRole("system:aggregate-to-view", _VIEWED, "view"),
    DefaultRole("isthmus:aggregate-to-edit", _mesh(WRITE, status=False), "edit"),
    DefaultRole("isthmus:aggregate-to-view", _mesh(READ, status=True), "view"),
    DefaultRole(
        "system:discovery",
        (
            _urls(
                "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH, *_VERSION
            ),
        ),
    ),
    DefaultRole("system:public-info-viewer", (_urls(*_HEALTH, *_VERSION),)),
    DefaultRole(
        "system:basic-user",
        (
            _rule((AUTHORIZATION,), CREATE, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            _rule((AUTHENTICATION,), CREATE, "selfsubjectreviews"),
        ),
    ),
    DefaultRole(
        "system:auth-delegator",
        (
            _rule((AUTHENTICATION,), CREATE, "tokenreviews"),
            _rule((AUTHORIZATION,), CREATE, "subjectaccessreviews"),
        ),
    ),
    DefaultRole(
        "system:service-account-issuer-discovery",
        (_urls("/.well-known/openid-configuration", "/openid/v1/jwks"),),
    ),
)

_KNOWN: Final = "system:authenticated"
_UNKNOWN: Final = "system:unauthenticated"

BINDINGS: Final = (
    DefaultBinding("cluster-admin", ("system:masters",)),
    DefaultBinding("system:discovery", (_KNOWN,)),
    DefaultBinding("system:basic-user", (_KNOWN,)),
    DefaultBinding("system:public-info-viewer", (_KNOWN, _UNKNOWN)),
    DefaultBinding("system:service-account-issuer-discovery", ("system:serviceaccounts",)),
)
