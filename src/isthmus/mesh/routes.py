"""Routes of every kind, found by what they attach to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.engine import Index, Table, View, query
from isthmus.ir.names import Ref
from isthmus.mesh.census import Place
from isthmus.mesh.tables import SERVICES, Source, place
from isthmus.model.gateway import GrpcRoute, HttpRoute, ParentRef, TcpRoute, TlsRoute
from isthmus.model.key import ObjectKey

GATEWAY_API: Final = "gateway.networking.k8s.io"
POLICY_API: Final = "policy.linkerd.io"
SERVICE: Final = "Service"
EGRESS_NETWORK: Final = "EgressNetwork"
SERVER: Final = "Server"

HTTP_ROUTES: Table[ObjectKey, HttpRoute] = Table("httproutes", scope=place)
POLICY_HTTP_ROUTES: Table[ObjectKey, HttpRoute] = Table("policy_httproutes", scope=place)
GRPC_ROUTES: Table[ObjectKey, GrpcRoute] = Table("grpcroutes", scope=place)
TLS_ROUTES: Table[ObjectKey, TlsRoute] = Table("tlsroutes", scope=place)
TCP_ROUTES: Table[ObjectKey, TcpRoute] = Table("tcproutes", scope=place)

LISTED: Final = frozenset(
    {"grpcroutes", "httproutes", "policy_httproutes", "tcproutes", "tlsroutes"}
)
"""The tables here whose names may be listed: a controller attends them object by object."""

_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("", "service"): SERVICE,
    (POLICY_API, "egressnetwork"): EGRESS_NETWORK,
    (POLICY_API, "server"): SERVER,
}
"""Kinds of parents that the mesh knows. Case does not count in references."""


class ParentPort(NamedTuple):
    """What a route names as a parent. `port` 0 and `section` "" mean every port.

    A section of a Service is the name of one of its ports (Gateway API).
    """

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str
    port: int
    section: str = ""


class ParentName(NamedTuple):
    """A parent, whatever the port."""

    cluster: str
    kind: str
    namespace: str
    name: str


def parent_port(route: ObjectKey, ref: ParentRef) -> ParentPort:
    """A reference of a route as the parent it means; its kind as written where it is not known."""
    group = "" if ref.group.lower() == "core" else ref.group.lower()
    kind = _KINDS.get((group, ref.kind.lower()), ref.kind)
    namespace = ref.namespace or route.namespace
    return ParentPort(route.cluster, group, kind, namespace, ref.name, ref.port, ref.section_name)


def _ports(key: ObjectKey, row: Any) -> Iterable[ParentPort]:  # noqa: ANN401  # every route
    refs: tuple[ParentRef, ...] = row.spec.parent_refs
    return (parent_port(key, ref) for ref in refs)


def _names(key: ObjectKey, row: Any) -> Iterable[ParentName]:  # noqa: ANN401  # every route
    return {
        ParentName(each.cluster, each.kind, each.namespace, each.name) for each in _ports(key, row)
    }


def _abroad(key: ObjectKey, row: Any) -> Iterable[Place]:  # noqa: ANN401  # every route
    """The route's own namespace, if it is a consumer route of some parent."""
    known = (SERVICE, EGRESS_NETWORK)
    found = (each for each in _ports(key, row) if each.kind in known)
    return {place(key) for each in found if each.namespace != key.namespace}


class Routes(NamedTuple):
    """The routes of one kind of one group, and the ways to find them."""

    group: str
    kind: str
    table: Table[ObjectKey, Any]
    by_parent: Index[ObjectKey, Any, ParentName]
    abroad: Index[ObjectKey, Any, Place]

    def ref(self, key: ObjectKey) -> Ref:
        """A route of these as a reference."""
        return Ref(key.cluster, self.group, self.kind, key.namespace, key.name)


def _routes(group: str, kind: str, table: Table[ObjectKey, Any], name: str) -> Routes:
    return Routes(
        group,
        kind,
        table,
        Index(f"{name}_by_parent", table, _names),
        Index(f"{name}_of_consumers", table, _abroad),
    )


GRPC: Final = _routes(GATEWAY_API, "GRPCRoute", GRPC_ROUTES, "grpcroutes")
HTTP: Final = _routes(GATEWAY_API, "HTTPRoute", HTTP_ROUTES, "httproutes")
POLICY_HTTP: Final = _routes(POLICY_API, "HTTPRoute", POLICY_HTTP_ROUTES, "policy_httproutes")
TLS: Final = _routes(GATEWAY_API, "TLSRoute", TLS_ROUTES, "tlsroutes")
TCP: Final = _routes(GATEWAY_API, "TCPRoute", TCP_ROUTES, "tcproutes")

ALL: Final = (GRPC, HTTP, POLICY_HTTP, TLS, TCP)

BY_KIND: Final[Mapping[tuple[str, str], Routes]] = {(each.group, each.kind): each for each in ALL}


def key_of(ref: Ref) -> ObjectKey:
    """Where the object of a reference is found."""
    return ObjectKey(ref.cluster, ref.namespace, ref.name)


@query
def naming(db: View, parent: Ref) -> tuple[Ref, ...]:
    """The routes that name a parent, whatever the port and whether or not it takes them: sorted."""
    asked = ParentName(parent.cluster, parent.kind, parent.namespace, parent.name)
    return tuple(each.ref(key) for each in ALL for key in each.by_parent.get(db, asked))


@query
def parents(db: View, route: Ref) -> tuple[ParentPort, ...]:
    """What a route attaches to, in its own order; nothing if there is no such route."""
    row = BY_KIND[route.group, route.kind].table.get(db, key_of(route))
    return tuple(_ports(key_of(route), row)) if row is not None else ()


def names_port(db: View, route: Ref, parent: Ref, port: int) -> ParentPort | None:
    """The reference by which a route attaches to a port of a parent; None if it does not."""
    for ref in parents(db, route):
        if means(ref, parent) and _covers(db, ref, port):
            return ref
    return None


def means(ref: ParentPort, parent: Ref) -> bool:
    """Whether a reference is one to a parent, whatever the port."""
    named = (ref.kind, ref.group, ref.namespace, ref.name)
    return named == (parent.kind, parent.group, parent.namespace, parent.name)


def _covers(db: View, ref: ParentPort, port: int) -> bool:
    if ref.port not in (0, port):
        return False
    return not ref.section or ref.section in port_names(db, service_key(ref), port)


def service_key(ref: ParentPort) -> ObjectKey:
    """Where the parent of a reference is found."""
    return ObjectKey(ref.cluster, ref.namespace, ref.name)


@query
def port_names(db: View, service: ObjectKey, port: int) -> tuple[str, ...]:
    """The names of a Service's port."""
    row = SERVICES.get(db, service)
    ports = row.spec.ports if row is not None else ()
    return tuple(sorted({each.name for each in ports if each.name and each.port == port}))


@query
def declares_protocol(db: View, service: ObjectKey, port: int) -> bool:
    """Whether a route says what a Service's port speaks; a TCPRoute says nothing about it.

    Only routes of the Service's own namespace (producer routes) count: those of other namespaces
    are for their own clients, and this is true for everybody.
    """
    parent = Ref(service.cluster, "", SERVICE, service.namespace, service.name)
    return any(
        names_port(db, route, parent, port) is not None
        for route in naming(db, parent)
        if route.namespace == service.namespace and route.kind != TCP.kind
    )


class Age(NamedTuple):
    """The order of routes among equals (Gateway API). Those without a time come last."""

    timeless: bool
    created: str
    namespace: str
    name: str
    group: str


@query
def age(db: View, route: Ref) -> Age:
    """The age of a route."""
    row = BY_KIND[route.group, route.kind].table.get(db, key_of(route))
    created = row.metadata.creation_timestamp if row is not None else ""
    return Age(not created, created, route.namespace, route.name, route.group)


ROUTE_SOURCES: Final[Mapping[str, Source]] = {
    f"httproutes.{GATEWAY_API}": Source(HTTP_ROUTES, msgspec.json.Decoder(HttpRoute).decode),
    f"httproutes.{POLICY_API}": Source(POLICY_HTTP_ROUTES, msgspec.json.Decoder(HttpRoute).decode),
    f"grpcroutes.{GATEWAY_API}": Source(GRPC_ROUTES, msgspec.json.Decoder(GrpcRoute).decode),
    f"tlsroutes.{GATEWAY_API}": Source(TLS_ROUTES, msgspec.json.Decoder(TlsRoute).decode),
    f"tcproutes.{GATEWAY_API}": Source(TCP_ROUTES, msgspec.json.Decoder(TcpRoute).decode),
}
"""By the resource part of store keys."""
