"""Links between real servers, written by hand as a user would."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import yaml

from tests.support.compact import Compact
from tests.support.meshapi import MeshApi
from tests.support.server import PATIENCE, ServerProcess
from tests.support.until import until

NAMESPACE = "linkerd-multicluster"
LINKS = f"/apis/multicluster.linkerd.io/v1alpha3/namespaces/{NAMESPACE}/links"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
ROLE = "linkerd-service-mirror-remote-access-default"

Kubeconfig = dict[str, Any]
JSON = Any


def admin_of(server: ServerProcess) -> Kubeconfig:
    """The kubeconfig that a server leaves to its owner."""
    read: Kubeconfig = yaml.safe_load(server.kubeconfig.read_text())  # noqa: TID251  # independent
    return read


def with_token(server: ServerProcess, token: str) -> Kubeconfig:
    """The same server, with a bearer token."""
    made = admin_of(server)
    made["users"][0]["user"] = {"token": token}
    return made


def account(server: ServerProcess, seconds: int = 3600) -> str:
    """A token of an account that may read what mirroring needs, and no more."""
    post(server, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    post(server, accounts, {"metadata": {"name": ROLE}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["pods", "services", "endpoints"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": read},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": read},
        {"apiGroups": ["policy.linkerd.io"], "resources": ["servers"], "verbs": read},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["linkerd-config"],
            "verbs": ["get"],
        },
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "resourceNames": [ROLE],
            "verbs": ["create"],
        },
    ]
    post(server, f"{rbac}/clusterroles", {"metadata": {"name": ROLE}, "rules": rules})
    post(
        server,
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": ROLE},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": ROLE,
            },
            "subjects": [{"kind": "ServiceAccount", "name": ROLE, "namespace": NAMESPACE}],
        },
    )
    asked = {"spec": {"expirationSeconds": seconds}}
    made = post(server, f"{accounts}/{ROLE}/token", asked)
    return str(made["status"]["token"])


def secret_of(name: str, kubeconfig: object) -> dict[str, Any]:
    """A Secret of credentials; text is taken as it is."""
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "type": "mirror.linkerd.io/remote-kubeconfig",
        "data": {"kubeconfig": base64.b64encode(text.encode()).decode()},
    }


def link_of(name: str, *, secret: str = "", cluster: str | None = None, **more: JSON) -> JSON:
    """A Link without gateway, for flat networks."""
    annotations = more.pop("annotations", {})
    spec = {
        "targetClusterName": name if cluster is None else cluster,
        "clusterCredentialsSecret": secret or f"cluster-credentials-{name}",
        "targetClusterLinkerdNamespace": "linkerd",
        "remoteDiscoverySelector": {"matchLabels": {"mirror.linkerd.io/exported": "remote"}},
        "federatedServiceSelector": {"matchLabels": {"mirror.linkerd.io/federated": "member"}},
        **more,
    }
    meta = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    return {"metadata": meta, "spec": spec}


def link(server: ServerProcess, name: str, kubeconfig: object, **more: JSON) -> None:
    """Link a cluster: the Secret, then the Link."""
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    post(server, SECRETS, secret_of(f"cluster-credentials-{name}", kubeconfig))
    post(server, LINKS, link_of(name, **more))


def rotate(server: ServerProcess, name: str, kubeconfig: object) -> None:
    """Put other credentials into a Link's Secret."""
    made = secret_of(f"cluster-credentials-{name}", kubeconfig)
    code, told = server.request("PUT", f"{SECRETS}/cluster-credentials-{name}", made)
    assert code == 200, told


def post(server: ServerProcess, path: str, document: JSON) -> JSON:
    code, told = server.request("POST", path, document)
    assert code == 201 or (code == 409 and path.endswith("/namespaces")), (code, told)
    return told


def page(server: ServerProcess) -> dict[str, dict[str, Any]]:
    """What /links tells, by the Link's own name; by the cluster's where a Secret alone links it."""
    code, body = server.admin("/links")
    assert code == 200, body
    return {each["link"].rpartition("/")[2] or each["cluster"]: each for each in json.loads(body)}


def until_link(
    server: ServerProcess, name: str, true: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Wait until the page says so of a link."""

    def found() -> dict[str, Any] | None:
        said = page(server).get(name)
        return said if said is not None and true(said) else None

    return until(found, PATIENCE, lambda: f"{name}: {page(server).get(name)}; {server.log[-2000:]}")


def export(api: MeshApi, *ips: str, name: str = "web") -> None:
    """A Service with these endpoints, in the cluster that has it."""
    eps = [{"ip": ip} for ip in ips]
    service: Compact = {"svc": f"shop/{name}", "ports": [80]}
    api.apply(service, {"slice": f"shop/{name}-1", "svc": name, "ports": [80], "eps": eps})


def stand_in(api: MeshApi, cluster: str, name: str = "web") -> str:
    """A Service here that means one of a linked cluster; the name to ask for."""
    labels = {
        "multicluster.linkerd.io/remote-discovery": cluster,
        "multicluster.linkerd.io/remote-service": name,
    }
    api.apply({"svc": f"shop/{name}-{cluster}", "ports": [80], "labels": labels})
    return f"{name}-{cluster}.shop.svc.cluster.local:80"
