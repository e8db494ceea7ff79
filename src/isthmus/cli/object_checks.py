"""The check of `isthmus check` for what people wrote: which objects say that they have no effect.

Conditions as `docs/conditions.md` has them. What an API does not serve is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from isthmus.cli.checks import Category, Check
from isthmus.cli.cluster import Cluster
from isthmus.errors import NotFound, UserFault
from isthmus.model.conditions import is_well

Document = dict[str, Any]

WRITER: Final = "linkerd.io/policy-controller"
"""Whose entries of a route's parents are ours."""
PATHS: Final = {
    "HTTPRoute": "/apis/gateway.networking.k8s.io/v1/httproutes",
    "GRPCRoute": "/apis/gateway.networking.k8s.io/v1/grpcroutes",
    "TLSRoute": "/apis/gateway.networking.k8s.io/v1/tlsroutes",
    "TCPRoute": "/apis/gateway.networking.k8s.io/v1/tcproutes",
    "HTTPRoute.policy.linkerd.io": "/apis/policy.linkerd.io/v1beta3/httproutes",
    "Server": "/apis/policy.linkerd.io/v1beta3/servers",
    "ServerAuthorization": "/apis/policy.linkerd.io/v1beta1/serverauthorizations",
    "AuthorizationPolicy": "/apis/policy.linkerd.io/v1alpha1/authorizationpolicies",
    "MeshTLSAuthentication": "/apis/policy.linkerd.io/v1alpha1/meshtlsauthentications",
    "NetworkAuthentication": "/apis/policy.linkerd.io/v1alpha1/networkauthentications",
    "HTTPLocalRateLimitPolicy": "/apis/policy.linkerd.io/v1alpha1/httplocalratelimitpolicies",
    "EgressNetwork": "/apis/policy.linkerd.io/v1alpha1/egressnetworks",
    "ServiceProfile": "/apis/linkerd.io/v1alpha2/serviceprofiles",
    "Service": "/api/v1/services",
}
PAGE: Final = "500"
SHOWN: Final = 10


class Told(NamedTuple):
    """A condition that is not well, of an object."""

    kind: str
    namespace: str
    name: str
    condition: Document

    def __str__(self) -> str:
        said = self.condition
        what = f"{said.get('type')} is {said.get('status')} ({said.get('reason')})"
        message = f": {said['message']}" if said.get("message") else ""
        return f"* {self.kind} {self.namespace}/{self.name}: {what}{message}"


def category(connect: Callable[[], Cluster]) -> Category:
    """One warning, with a line for each condition that is not well."""
    what = "routes, policies and Services do what they say"
    return Category(
        "isthmus-objects", (Check(what, "conditions", partial(_effect, connect), warns=True),)
    )


def _effect(connect: Callable[[], Cluster]) -> str:
    cluster = connect()
    lines = [str(each) for kind in PATHS for each in _of_kind(cluster, kind)]
    if lines:
        more = [f"* and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise UserFault("\n".join(lines[:SHOWN] + more))
    return ""


def _of_kind(cluster: Cluster, kind: str) -> Iterator[Told]:
    try:
        found = cluster.get(PATHS[kind], limit=PAGE).get("items") or []
    except NotFound:
        return
    for each in found:
        meta = each.get("metadata") or {}
        for condition in unwell(each.get("status") or {}):
            yield Told(kind, meta.get("namespace", ""), meta.get("name", ""), condition)


def unwell(status: Document) -> Iterator[Document]:
    """The conditions of a status, those for a route's parents too, that are not well."""
    held = [*(status.get("conditions") or [])]
    for parent in status.get("parents") or []:
        if parent.get("controllerName") == WRITER:
            held += parent.get("conditions") or []
    for condition in held:
        if not is_well(str(condition.get("type")), str(condition.get("status"))):
            yield condition
