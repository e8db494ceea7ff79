"""Routes of every kind, found by what they attach to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.engine import Index, Table, View, query
from isthmus.mesh.tables import Source
from isthmus.model.gateway import GrpcRoute, HttpRoute, ParentRef, TcpRoute, TlsRoute
from isthmus.model.key import ObjectKey

HTTP_ROUTES: Table[ObjectKey, HttpRoute] = Table("httproutes")
POLICY_HTTP_ROUTES: Table[ObjectKey, HttpRoute] = Table("policy_httproutes")
GRPC_ROUTES: Table[ObjectKey, GrpcRoute] = Table("grpcroutes")
TLS_ROUTES: Table[ObjectKey, TlsRoute] = Table("tlsroutes")
TCP_ROUTES: Table[ObjectKey, TcpRoute] = Table("tcproutes")


class ParentPort(NamedTuple):
    """What a route names as a parent. `port` is 0 where it means every port."""

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str
    port: int


def _parents(key: ObjectKey, row: Any) -> Iterable[ParentPort]:  # noqa: ANN401  # every route
    parents: tuple[ParentRef, ...] = row.spec.parent_refs
    return (
        ParentPort(
            key.cluster,
            "" if ref.group == "core" else ref.group,
            ref.kind,
            ref.namespace or key.namespace,
            ref.name,
            ref.port,
        )
        for ref in parents
    )


HTTP_BY_PARENT: Index[ObjectKey, HttpRoute, ParentPort] = Index(
    "httproutes_by_parent", HTTP_ROUTES, _parents
)
POLICY_HTTP_BY_PARENT: Index[ObjectKey, HttpRoute, ParentPort] = Index(
    "policy_httproutes_by_parent", POLICY_HTTP_ROUTES, _parents
)
GRPC_BY_PARENT: Index[ObjectKey, GrpcRoute, ParentPort] = Index(
    "grpcroutes_by_parent", GRPC_ROUTES, _parents
)
TLS_BY_PARENT: Index[ObjectKey, TlsRoute, ParentPort] = Index(
    "tlsroutes_by_parent", TLS_ROUTES, _parents
)
TCP_BY_PARENT: Index[ObjectKey, TcpRoute, ParentPort] = Index(
    "tcproutes_by_parent", TCP_ROUTES, _parents
)

_DECLARING: Final[tuple[Index[ObjectKey, Any, ParentPort], ...]] = (
    HTTP_BY_PARENT,
    POLICY_HTTP_BY_PARENT,
    GRPC_BY_PARENT,
    TLS_BY_PARENT,
)


@query
def declares_protocol(db: View, service: ObjectKey, port: int) -> bool:
    """Whether a route says what a Service's port speaks; a TCPRoute says nothing about it.

    Only routes of the Service's own namespace (producer routes) count: those of other namespaces
    are for their own clients, and this is true for everybody.
    """
    parent = ParentPort(service.cluster, "", "Service", service.namespace, service.name, port)
    return any(
        route.namespace == service.namespace
        for index in _DECLARING
        for asked in (parent, parent._replace(port=0))
        for route in index.get(db, asked)
    )


ROUTE_SOURCES: Final[Mapping[str, Source]] = {
    "httproutes.gateway.networking.k8s.io": Source(
        HTTP_ROUTES, msgspec.json.Decoder(HttpRoute).decode
    ),
    "httproutes.policy.linkerd.io": Source(
        POLICY_HTTP_ROUTES, msgspec.json.Decoder(HttpRoute).decode
    ),
    "grpcroutes.gateway.networking.k8s.io": Source(
        GRPC_ROUTES, msgspec.json.Decoder(GrpcRoute).decode
    ),
    "tlsroutes.gateway.networking.k8s.io": Source(
        TLS_ROUTES, msgspec.json.Decoder(TlsRoute).decode
    ),
    "tcproutes.gateway.networking.k8s.io": Source(
        TCP_ROUTES, msgspec.json.Decoder(TcpRoute).decode
    ),
}
"""By the resource part of store keys."""
