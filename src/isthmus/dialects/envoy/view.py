"""Views: the names of all that one sidecar is told, and the cells behind names.

The names of a scope's upstreams are one value for all sidecars that have the scope; a sidecar adds
those of its own ports. What a name stands for is read off the name, so that a stream asks for the
cells it needs and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.dialects.envoy import egress, gateway, inbound, names, outbound, routes
from isthmus.dialects.envoy.clusters import (
    FIXED,
    direct_cluster,
    failover_cluster,
    fixed_cluster,
    target_cluster,
)
from isthmus.dialects.envoy.endpoints import assignment, mode
from isthmus.dialects.xds.ports import read_port
from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.proxy import OutboundName, ProxyKind
from isthmus.mesh.queries import (
    Member,
    ObjectKey,
    Place,
    Scope,
    consumer_class,
    egress_names,
    egress_place,
    endpoint,
    instances,
    network_ref,
    node_of,
    out_of_scope,
    proxy_view,
    scope,
    service_backends,
    upstreams_of,
)
from isthmus.mesh.queries import inbound as inbound_of
from isthmus.mesh.queries import outbound as outbound_of
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES

Cell = tuple[Any, ...]
"""`(query, *key)`."""


class Asker(msgspec.Struct, frozen=True):
    """The sidecar of a workload, and the node it is on ("" where there is none)."""

    workload: Ref
    node: str = ""


class Names(NamedTuple):
    """Names of resources by type, each sorted."""

    clusters: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()


class SidecarView(msgspec.Struct, frozen=True):
    """What one sidecar is told, as names. `scope` is for people."""

    names: Names
    scope: tuple[str, ...]

    @property
    def types(self) -> Mapping[str, tuple[str, ...] | None]:
        """The names in sight, by type."""
        return {
            CLUSTER: self.names.clusters,
            ENDPOINTS: self.names.assignments,
            LISTENER: self.names.listeners,
            ROUTES: self.names.routes,
        }


@query
def asker(db: View, workload: Ref) -> Asker:
    """The class of the sidecar of a workload."""
    return Asker(workload, node_of(db, workload))


@query
def sidecar_view(db: View, workload: Ref) -> SidecarView | None:
    """What the sidecar of a workload is told; None while nothing is known of the workload."""
    found = proxy_view(db, workload)
    if found is None:
        return None
    if found.kind is ProxyKind.GATEWAY:
        return SidecarView(gateway_names(db, workload), scope=found.scope)
    shared = shared_names(db, Place(workload.cluster, workload.namespace), scope(db, workload))
    own = [names.inbound_routes(each.port) for each in found.inbounds]
    own += [
        names.probe_routes(each.port)
        for each in found.inbounds
        if inbound.has_probe_routes(inbound_of(db, each))
    ]
    return SidecarView(
        shared._replace(routes=tuple(sorted((*shared.routes, *own)))), scope=found.scope
    )


@query
def gateway_names(db: View, workload: Ref) -> Names:
    """What a gateway between clusters is told: nothing but what it forwards."""
    found = gateway.gateway_clusters(db, workload)
    return Names(_sorted(*found, names.REFUSED), found, (names.GATEWAY,))


@query
def shared_names(db: View, where: Place, wanted: Scope) -> Names:
    """What all sidecars of a namespace with a scope are told, beside what is their own."""
    consumers = where._replace(namespace=consumer_class(db, where))
    return all_names(db, consumers, egress_place(db, where), wanted)


@query
def all_names(db: View, consumers: Place, clients: Place, wanted: Scope) -> Names:
    """The same by classes of namespaces: for Services, and for what leaves the cluster."""
    inside, out = scope_names(db, consumers, wanted), network_names(db, clients)
    if out == Names():
        return inside
    return Names(*(_sorted(*one, *other) for one, other in zip(inside, out, strict=True)))


@query
def network_names(db: View, where: Place) -> Names:
    """What is told of EgressNetworks: routes, and the clusters that they or connections go to."""
    some = [
        (names.egress(name), told)
        for name in egress_names(db, where)
        if (told := egress.egress_routes(db, name)) is not None
    ]
    resources = [told for _, told in some] + [egress.detect_listener(db, where)]
    keys = _with_members({each for told in resources for each in told.clusters or ()}) - {*FIXED}
    return Names(
        _sorted(*keys), _sorted(*_balanced(keys)), (), _sorted(*(name for name, _ in some))
    )


@query
def scope_names(db: View, where: Place, wanted: Scope) -> Names:
    """What all sidecars of a class of namespaces are told of the Services in a scope."""
    cluster = where.cluster
    parts = [port_names(db, name) for name in upstreams_of(db, where, wanted)]
    told = {listener for part in parts for listener in part.listeners}
    refused = {
        names.address(names.REFUSE, each.ip, each.port)
        for name in out_of_scope(db, cluster, wanted)
        for each in instances(db, name)
        if names.address(names.IP, each.ip, each.port) not in told
    }
    own = (names.DETECT, names.INBOUND, names.OUTBOUND)
    return Names(
        _sorted(*FIXED, *(each for part in parts for each in part.clusters)),
        _sorted(*(each for part in parts for each in part.assignments)),
        _sorted(*own, *told, *refused),
        _sorted(*(each for part in parts for each in part.routes)),
    )


def _sorted(*some: str) -> tuple[str, ...]:
    return tuple(sorted(set(some)))


@query
def port_names(db: View, name: OutboundName) -> Names:
    """What one port of a Service takes: its listener and routes, its clusters, its instances."""
    found = outbound_of(db, name)
    service = ObjectKey(name.parent.cluster, name.parent.namespace, name.parent.name)
    keys = _own(db, service, name.port) | _sent_to(db, name)
    dialled = [each for each in instances(db, name) if _provable(db, each)]
    direct = {_direct(db, each) for each in dialled}
    here = (names.service(name),) if found.fronts else ()
    http = here if routes.http_routes(found) else ()
    return Names(
        _sorted(*keys, *direct),
        _sorted(*_balanced(keys)),
        _sorted(*here, *(names.address(names.IP, each.ip, each.port) for each in dialled)),
        _sorted(*http, *direct),
    )


def _own(db: View, service: ObjectKey, port: int) -> set[str]:
    """The clusters that a Service's port is, whoever sends there: for requests and for bytes."""
    found: set[str] = set()
    for one in service_backends(db, service, port):
        for each in (one.target, *one.failover):
            found.add(routes.key(each))
            if each.linkerd:
                found.add(routes.key(each, names.RAW))
    return found


def _sent_to(db: View, name: OutboundName) -> set[str]:
    """The clusters that the port's listener and routes send to, aggregates with their members.

    A backend may be out of scope as a Service of its own; as a backend it is told all the same.
    """
    told = (outbound.service_listener(db, name), outbound.service_routes(db, name))
    return _with_members({each for one in told if one is not None for each in one.clusters or ()})


def _with_members(clusters: set[str]) -> set[str]:
    """The clusters, and those that aggregates among them are of."""
    parts = (names.split(each) for each in clusters)
    return clusters.union(*(rest.split("|") for kind, rest in parts if kind == names.FAILOVER))


def _balanced(clusters: set[str]) -> Iterator[str]:
    """Those of the clusters that have endpoints of their own."""
    return (each for each in clusters if names.split(each)[0] == "" and each not in FIXED)


def _provable(db: View, member: Member) -> bool:
    found = endpoint(db, member)
    return found is not None and outbound.provable(found) is not None


def _direct(db: View, member: Member) -> str:
    found = endpoint(db, member)
    proof = outbound.provable(found) if found is not None else None
    if found is None or proof is None:
        return names.REFUSED
    return names.direct(proof, linkerd=mode(found) == "linkerd")


# ----------------------------------------------------------------------- from names to cells


def cell(asker: Asker, type_url: str, name: str) -> Cell | None:
    """The cell that a name stands for; None for one that stands for nothing."""
    find = _BY_TYPE.get(type_url)
    return find(asker, name) if find is not None and len(name) <= names.LONGEST else None


def _cluster(_asker: Asker, name: str) -> Cell | None:
    kind, rest = names.split(name)
    match kind:
        case "":
            if name in FIXED:
                return (fixed_cluster, name)
            return (target_cluster, name)
        case names.DIRECT | names.DIRECT_LINKERD:
            linkerd = "linkerd" if kind == names.DIRECT_LINKERD else ""
            return (direct_cluster, name, rest, linkerd) if rest else None
        case names.FAILOVER:
            return (failover_cluster, tuple(rest.split("|")))
    return None


def _assignment(asker: Asker, name: str) -> Cell | None:
    return (assignment, name, asker.node)


def _listener(asker: Asker, name: str) -> Cell | None:
    kind, rest = names.split(name)
    match kind:
        case "":
            return _own_listener(asker, name)
        case names.SERVICE:
            upstream = _upstream(asker, rest)
            return (outbound.service_listener, upstream) if upstream is not None else None
        case names.IP | names.REFUSE:
            return _address_listener(asker, kind, rest)
    return None


def _own_listener(asker: Asker, name: str) -> Cell | None:
    match name:
        case names.OUTBOUND:
            return (outbound.outbound_listener,)
        case names.DETECT:
            return (egress.detect_listener, _place(asker))
        case names.INBOUND:
            return (inbound.inbound_listener, asker.workload)
        case names.GATEWAY:
            return (gateway.gateway_listener, asker.workload)
    return None


def _address_listener(asker: Asker, kind: str, rest: str) -> Cell | None:
    found = names.read_address(rest)
    if found is None:
        return None
    if kind == names.REFUSE:
        return (outbound.refusing_listener, *found)
    return (outbound.direct_listener, asker.workload.cluster, *found)


def _routes(asker: Asker, name: str) -> Cell | None:
    kind, rest = names.split(name)
    match kind:
        case names.SERVICE:
            upstream = _upstream(asker, rest)
            return (outbound.service_routes, upstream) if upstream is not None else None
        case names.EGRESS:
            network = _network(asker, rest)
            return (egress.egress_routes, network) if network is not None else None
        case names.DIRECT | names.DIRECT_LINKERD:
            return (outbound.direct_routes, name) if rest else None
        case names.IN | names.PROBE:
            port = read_port(rest)
            find = inbound.inbound_routes if kind == names.IN else inbound.probe_routes
            return (find, asker.workload, port) if port is not None else None
    return None


def _upstream(asker: Asker, rest: str) -> OutboundName | None:
    found = names.read_service(rest)
    if found is None:
        return None
    parent = Ref(asker.workload.cluster, "", "Service", found.namespace, found.service)
    return OutboundName(parent, found.port, asker.workload.namespace)


def _network(asker: Asker, rest: str) -> OutboundName | None:
    found = names.read_service(rest)
    if found is None:
        return None
    key = ObjectKey(asker.workload.cluster, found.namespace, found.service)
    return OutboundName(network_ref(key), found.port, asker.workload.namespace)


def _place(asker: Asker) -> Place:
    return Place(asker.workload.cluster, asker.workload.namespace)


_BY_TYPE: Final = {
    CLUSTER: _cluster,
    ENDPOINTS: _assignment,
    LISTENER: _listener,
    ROUTES: _routes,
}


class EnvoyDialect:
    """What the xDS surface is handed for Envoys: which cells hold what a sidecar is told."""

    name: Final = "envoy"

    def view_query(self, asker: Asker, /) -> Cell:
        """The cell of its view."""
        return (sidecar_view, asker.workload)

    def resource_query(self, asker: Asker, type_url: str, name: str, /) -> Cell | None:
        """The cell of a resource."""
        return cell(asker, type_url, name)
