"""policy.linkerd.io: who may reach what, and what leaves the cluster (facts of Linkerd's CRDs).

Faults are those of the CRD schemas and of Linkerd's admission webhook; Isthmus has no webhook,
the API server itself refuses.
"""

from typing import Final

from isthmus.model.kind import Kind
from isthmus.model.policy.authentication import (
    MESH_TLS_AUTHENTICATION,
    NETWORK_AUTHENTICATION,
    MeshTlsAuthentication,
    MeshTlsAuthenticationSpec,
    NetworkAuthentication,
    NetworkAuthenticationSpec,
)
from isthmus.model.policy.authorization import (
    AUTHORIZATION_POLICY,
    SERVER_AUTHORIZATION,
    Account,
    AuthorizationPolicy,
    AuthorizationPolicySpec,
    Client,
    MeshTls,
    ServerAuthorization,
    ServerAuthorizationSpec,
    ServerChoice,
)
from isthmus.model.policy.egress import EGRESS_NETWORK, EgressNetwork, EgressNetworkSpec
from isthmus.model.policy.httproute import HTTP_ROUTE
from isthmus.model.policy.parts import GROUP, Network
from isthmus.model.policy.ratelimit import (
    HTTP_LOCAL_RATE_LIMIT_POLICY,
    HttpLocalRateLimitPolicy,
    Override,
    Rate,
    RateLimitSpec,
)
from isthmus.model.policy.server import PROTOCOLS, SERVER, Server, ServerSpec

KINDS: Final[tuple[Kind, ...]] = (
    AUTHORIZATION_POLICY,
    EGRESS_NETWORK,
    HTTP_LOCAL_RATE_LIMIT_POLICY,
    HTTP_ROUTE,
    MESH_TLS_AUTHENTICATION,
    NETWORK_AUTHENTICATION,
    SERVER_AUTHORIZATION,
    SERVER,
)

__all__ = [
    "AUTHORIZATION_POLICY",
    "EGRESS_NETWORK",
    "GROUP",
    "HTTP_LOCAL_RATE_LIMIT_POLICY",
    "HTTP_ROUTE",
    "KINDS",
    "MESH_TLS_AUTHENTICATION",
    "NETWORK_AUTHENTICATION",
    "PROTOCOLS",
    "SERVER",
    "SERVER_AUTHORIZATION",
    "Account",
    "AuthorizationPolicy",
    "AuthorizationPolicySpec",
    "Client",
    "EgressNetwork",
    "EgressNetworkSpec",
    "HttpLocalRateLimitPolicy",
    "MeshTls",
    "MeshTlsAuthentication",
    "MeshTlsAuthenticationSpec",
    "Network",
    "NetworkAuthentication",
    "NetworkAuthenticationSpec",
    "Override",
    "Rate",
    "RateLimitSpec",
    "Server",
    "ServerAuthorization",
    "ServerAuthorizationSpec",
    "ServerChoice",
    "ServerSpec",
]
