"""What a cluster says of itself and of its mesh: the ConfigMap linkerd-config."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from isthmus.cli.cluster import Cluster
from isthmus.errors import NotFound, UserFault

NAME: Final = "linkerd-config"
LINKERD: Final = "linkerd"


class Facts(NamedTuple):
    """One cluster's. `name` is "" if it does not say (Linkerd's own does not); PEM texts too."""

    namespace: str = LINKERD
    name: str = ""
    domain: str = "cluster.local"
    trust_domain: str = "cluster.local"
    networks: str = ""
    version: str = ""
    anchors: str = ""
    issuer: str = ""


def ask(cluster: Cluster, namespace: str | None) -> Facts:
    """The facts of a cluster; its control plane is in `namespace`, else looked for.

    Raises:
        NotFound: there is no such ConfigMap.
        UserFault: several, or it is not understood.
    """
    if namespace is not None:
        return of(cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"))
    listed = cluster.get("/api/v1/configmaps", fieldSelector=f"metadata.name={NAME}")
    found = [each for each in listed.get("items") or [] if isinstance(each, dict)]
    if not found:
        raise NotFound(f"there is no ConfigMap {NAME}")
    if len(found) > 1:
        raise UserFault(f"several ConfigMaps {NAME}; name the control plane's namespace with -L")
    return of(found[0])


def of(config_map: dict[str, Any]) -> Facts:
    """What the ConfigMap says. UserFault if its `values` are no YAML mapping."""
    from isthmus.serve.kube.yaml_body import strict_yaml

    namespace = str((config_map.get("metadata") or {}).get("namespace") or LINKERD)
    body = str((config_map.get("data") or {}).get("values") or "")
    try:
        values, _ = strict_yaml(body.encode()) if body else ({}, None)
    except UserFault as fault:
        raise UserFault(f"ConfigMap {namespace}/{NAME}: {fault.message}") from fault

    def said(key: str, default: str = "") -> str:
        return str(values.get(key) or default)

    return Facts(
        namespace=namespace,
        name=said("clusterName"),
        domain=said("clusterDomain", "cluster.local"),
        trust_domain=said("identityTrustDomain", said("clusterDomain", "cluster.local")),
        networks=said("clusterNetworks"),
        version=said("linkerdVersion"),
        anchors=said("identityTrustAnchorsPEM"),
        issuer=said("identityIssuerPEM"),
    )
