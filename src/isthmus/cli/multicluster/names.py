"""Names, labels, annotations and selectors of the multicluster objects."""

from __future__ import annotations

from typing import Final

NAMESPACE: Final = "linkerd-multicluster"
GATEWAY: Final = "linkerd-gateway"
REMOTE_ACCESS: Final = "linkerd-service-mirror-remote-access-default"
"""The account of linked clusters, its ClusterRole and their binding."""

CREDENTIALS: Final = "cluster-credentials-"
CREDENTIALS_TYPE: Final = "mirror.linkerd.io/remote-kubeconfig"

CLUSTER_NAME: Final = "multicluster.linkerd.io/cluster-name"
TRUST_DOMAIN: Final = "multicluster.linkerd.io/trust-domain"
CLUSTER_DOMAIN: Final = "multicluster.linkerd.io/cluster-domain"
OWN_NAME: Final = "multicluster.isthmus.dev/cluster"
"""On a Link: what the target calls itself (its `--cluster`). Names at its gateway say that."""

EXTENSION: Final = "linkerd.io/extension"
CREATED_BY: Final = "linkerd.io/created-by"
MIRRORED: Final = "mirror.linkerd.io/mirrored-service"
MIRROR_CLUSTER: Final = "mirror.linkerd.io/cluster-name"
REMOTE_DISCOVERY: Final = "multicluster.linkerd.io/remote-discovery"
LOCAL_DISCOVERY: Final = "multicluster.linkerd.io/local-discovery"
GATEWAY_IDENTITY: Final = "mirror.linkerd.io/gateway-identity"
PROBE_PERIOD: Final = "mirror.linkerd.io/probe-period"
PROBE_PATH: Final = "mirror.linkerd.io/probe-path"
MULTICLUSTER_GATEWAY: Final = "mirror.linkerd.io/multicluster-gateway"

GATEWAY_PORT: Final = "mc-gateway"
PROBE_PORT: Final = "mc-probe"

SELECTOR: Final = "mirror.linkerd.io/exported=true"
REMOTE_DISCOVERY_SELECTOR: Final = "mirror.linkerd.io/exported=remote-discovery"
FEDERATED_SELECTOR: Final = "mirror.linkerd.io/federated=member"

LINKS: Final = "/apis/multicluster.linkerd.io/v1alpha3/links"
LINK_VERSION: Final = "multicluster.linkerd.io/v1alpha3"
