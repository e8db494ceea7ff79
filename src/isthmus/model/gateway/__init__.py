"""gateway.networking.k8s.io: Gateway API v1.6, routes and gateways.

Schemas and faults are those of the release's standard channel, with three things of the
experimental one: `retry`, parentRefs to one parent that differ by port, and the alpha versions of
TLSRoute and TCPRoute. Faults that Linkerd's admission webhook tells of these kinds are told too.
"""

from typing import Final

from isthmus.model.gateway.gateway import GATEWAY, Address, Gateway, GatewaySpec, Listener
from isthmus.model.gateway.gatewayclass import GATEWAY_CLASS, GatewayClass, GatewayClassSpec
from isthmus.model.gateway.grant import (
    REFERENCE_GRANT,
    GrantFrom,
    GrantTo,
    ReferenceGrant,
    ReferenceGrantSpec,
)
from isthmus.model.gateway.grpcroute import GRPC_ROUTE
from isthmus.model.gateway.httproute import HTTP_ROUTE
from isthmus.model.gateway.parts import API_GROUP
from isthmus.model.gateway.streamroutes import TCP_ROUTE, TLS_ROUTE
from isthmus.model.gateway.views import (
    BackendRef,
    Filter,
    GrpcMatch,
    GrpcRoute,
    GrpcRule,
    HttpMatch,
    HttpRoute,
    HttpRule,
    ParentRef,
    StreamRule,
    TcpRoute,
    TlsRoute,
)
from isthmus.model.kind import Kind

KINDS: Final[tuple[Kind, ...]] = (
    GATEWAY_CLASS,
    GATEWAY,
    GRPC_ROUTE,
    HTTP_ROUTE,
    REFERENCE_GRANT,
    TCP_ROUTE,
    TLS_ROUTE,
)

__all__ = [
    "API_GROUP",
    "GATEWAY",
    "GATEWAY_CLASS",
    "GRPC_ROUTE",
    "HTTP_ROUTE",
    "KINDS",
    "REFERENCE_GRANT",
    "TCP_ROUTE",
    "TLS_ROUTE",
    "Address",
    "BackendRef",
    "Filter",
    "Gateway",
    "GatewayClass",
    "GatewayClassSpec",
    "GatewaySpec",
    "GrantFrom",
    "GrantTo",
    "GrpcMatch",
    "GrpcRoute",
    "GrpcRule",
    "HttpMatch",
    "HttpRoute",
    "HttpRule",
    "Listener",
    "ParentRef",
    "ReferenceGrant",
    "ReferenceGrantSpec",
    "StreamRule",
    "TcpRoute",
    "TlsRoute",
]
