"""The objects of `multicluster install`: an account for other clusters, and a gateway.

Nothing that mirrors is installed: `isthmus server` does that itself. An account may read what a
linked cluster's mirroring reads and ask for its own tokens, and nothing else; there is no Secret
with a token that never ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from isthmus import __version__
from isthmus.cli.multicluster import names
from isthmus.cli.multicluster.documents import Document, named
from isthmus.cli.multicluster.facts import NAME as CONFIG
from isthmus.cli.multicluster.facts import Facts

RBAC = "rbac.authorization.k8s.io"
POLICY = "policy.linkerd.io"
READ = ("get", "list", "watch")
READABLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("pods", "services", "endpoints", "namespaces")),
    ("discovery.k8s.io", ("endpointslices",)),
    ("apps", ("replicasets",)),
    ("batch", ("jobs",)),
    (POLICY, ("servers",)),
    (POLICY, ("authorizationpolicies", "meshtlsauthentications", "networkauthentications")),
    ("workload.linkerd.io", ("externalworkloads",)),
)
"""What mirroring, endpoints and carried policies of a linked cluster are made from."""

PAUSE = "registry.k8s.io/pause:3.10"
REPLICAS_HA = 3


class Gateway(NamedTuple):
    """What the flags say of the gateway."""

    port: int = 4143
    probe_port: int = 4191
    probe_seconds: int = 3
    service_type: str = "LoadBalancer"
    healthcheck_node_port: int = 0
    replicas: int = 1


def objects(
    facts: Facts, gateway: Gateway | None, *, credentials: bool, kind: bool
) -> Iterator[Document]:
    """Everything, in the order in which it can be applied.

    `credentials`: the account of linked clusters too. `kind`: the definition of Link, for an API
    that does not serve it by itself.
    """
    if kind:
        from isthmus.cli.multicluster.definition import link_definition

        yield link_definition()
    yield named("v1", "Namespace", names.NAMESPACE, labels={names.EXTENSION: "multicluster"})
    if gateway is not None:
        yield from _gateway(facts, gateway)
    if credentials:
        yield from account(names.REMOTE_ACCESS, names.NAMESPACE, facts.namespace)


# --------------------------------------------------------------------------------------- account


def account(name: str, namespace: str, control_plane: str) -> Iterator[Document]:
    """A ServiceAccount for linked clusters, with its rights."""
    labels = {names.EXTENSION: "multicluster"}
    yield named("v1", "ServiceAccount", name, namespace, labels=labels)
    rules = [_rule(group, resources, READ) for group, resources in READABLE]
    yield named(f"{RBAC}/v1", "ClusterRole", name, labels=labels, rules=rules)
    yield _binding("ClusterRoleBinding", "ClusterRole", name, "", namespace)
    tokens = [_rule("", ("serviceaccounts/token",), ("create",), name)]
    yield named(f"{RBAC}/v1", "Role", name, namespace, labels=labels, rules=tokens)
    yield _binding("RoleBinding", "Role", name, namespace, namespace)
    config = [_rule("", ("configmaps",), ("get",), CONFIG)]
    yield named(f"{RBAC}/v1", "Role", name, control_plane, labels=labels, rules=config)
    yield _binding("RoleBinding", "Role", name, control_plane, namespace)


def _rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...], *only: str) -> Document:
    rule: Document = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return rule | ({"resourceNames": list(only)} if only else {})


def _binding(kind: str, role: str, name: str, namespace: str, of: str) -> Document:
    return named(
        f"{RBAC}/v1", kind, name, namespace,
        labels={names.EXTENSION: "multicluster"},
        roleRef={"apiGroup": RBAC, "kind": role, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": of}],
    )  # fmt: skip


# --------------------------------------------------------------------------------------- gateway


def _gateway(facts: Facts, gateway: Gateway) -> Iterator[Document]:
    labels = {"app": names.GATEWAY, names.EXTENSION: "multicluster"}
    where = names.NAMESPACE
    yield named(
        "apps/v1", "Deployment", names.GATEWAY, where,
        labels=labels, spec=_deployment(gateway, labels),
    )  # fmt: skip
    yield named(
        "v1", "Service", names.GATEWAY, where,
        labels={names.EXTENSION: "multicluster"},
        annotations=_annotations(facts, gateway),
        spec=_service(gateway),
    )  # fmt: skip
    yield named("v1", "ServiceAccount", names.GATEWAY, where, labels=labels)
    yield from _policy(labels)


def _annotations(facts: Facts, gateway: Gateway) -> dict[str, str]:
    identity = (
        f"{names.GATEWAY}.{names.NAMESPACE}.serviceaccount.identity"
        f".{facts.namespace}.{facts.trust_domain}"
    )
    return {
        names.GATEWAY_IDENTITY: identity,
        names.PROBE_PERIOD: str(gateway.probe_seconds),
        names.PROBE_PATH: "/ready",
        names.MULTICLUSTER_GATEWAY: "true",
    }


def _service(gateway: Gateway) -> Document:
    spec: Document = {
        "type": gateway.service_type,
        "selector": {"app": names.GATEWAY},
        "ports": [
            {"name": names.GATEWAY_PORT, "port": gateway.port, "targetPort": "linkerd-proxy"},
            {
                "name": names.PROBE_PORT,
                "port": gateway.probe_port,
                "targetPort": "linkerd-admin",
            },
        ],
    }
    if gateway.healthcheck_node_port:
        spec |= {
            "externalTrafficPolicy": "Local",
            "healthCheckNodePort": gateway.healthcheck_node_port,
        }
    return spec


def _deployment(gateway: Gateway, labels: dict[str, str]) -> Document:
    annotations = {
        "linkerd.io/inject": "enabled",
        "config.linkerd.io/proxy-require-identity-inbound-ports": str(gateway.port),
        "config.linkerd.io/enable-gateway": "true",
        "config.linkerd.io/default-inbound-policy": "all-authenticated",
        names.CREATED_BY: f"isthmus/cli {__version__}",
    }
    spec: Document = {
        "serviceAccountName": names.GATEWAY,
        "containers": [{"name": "pause", "image": PAUSE}],
    }
    if gateway.replicas > 1:
        spec["affinity"] = _apart(labels)
    return {
        "replicas": gateway.replicas,
        "selector": {"matchLabels": {"app": names.GATEWAY}},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
    }


def _apart(labels: dict[str, str]) -> Document:
    """Replicas on different nodes; in different zones if there are several."""
    selector = {"matchLabels": labels}
    node = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    zone = {"labelSelector": selector, "topologyKey": "topology.kubernetes.io/zone"}
    terms: dict[str, list[Any]] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [node],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": zone}
        ],
    }
    return {"podAntiAffinity": terms}


def _policy(labels: dict[str, str]) -> Iterator[Document]:
    """Whoever has an identity of the mesh may come, from wherever."""
    where = names.NAMESPACE
    yield named(
        f"{POLICY}/v1beta3", "Server", names.GATEWAY, where,
        labels=labels,
        spec={"podSelector": {"matchLabels": {"app": names.GATEWAY}}, "port": "linkerd-proxy"},
    )  # fmt: skip
    references = [
        {"group": POLICY, "kind": kind, "name": name}
        for kind, name in (
            ("MeshTLSAuthentication", "any-meshed"),
            ("NetworkAuthentication", "source-cluster"),
        )
    ]
    target = {"group": POLICY, "kind": "Server", "name": names.GATEWAY}
    yield named(
        f"{POLICY}/v1alpha1", "AuthorizationPolicy", names.GATEWAY, where,
        labels=labels, spec={"targetRef": target, "requiredAuthenticationRefs": references},
    )  # fmt: skip
    yield named(
        f"{POLICY}/v1alpha1", "MeshTLSAuthentication", "any-meshed", where,
        labels=labels, spec={"identities": ["*"]},
    )  # fmt: skip
    yield named(
        f"{POLICY}/v1alpha1", "NetworkAuthentication", "source-cluster", where,
        labels=labels, spec={"networks": [{"cidr": "0.0.0.0/0"}, {"cidr": "::/0"}]},
    )  # fmt: skip
