"""Which routes attach to which parent, for whom, and why others do not (decision 14).

Routes of the parent's own namespace (producer routes) are for all clients. Those of other
namespaces (consumer routes) are for clients of their own namespace. At a Service's port they take
the place of the producer routes there (Gateway API, GEP-1294); at an EgressNetwork's they join them
(Linkerd), since a network's defaults and routes are its owner's word.

Of several kinds of routes at one port the most specific is served: GRPCRoute, HTTPRoute,
TLSRoute, TCPRoute. One that names exactly what a more specific route of the same group names is not
accepted. Routes of one kind stand in the order of the specification: oldest first, then by
namespace and name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.budget import MATCHES, AtPort, Payer, beyond, told_ports
from isthmus.mesh.census import Place
from isthmus.mesh.egress import EGRESS_NETWORKS, network_ref, overlaps, visible
from isthmus.mesh.routes import (
    ALL,
    EGRESS_NETWORK,
    GRPC,
    HTTP,
    POLICY_API,
    SERVICE,
    TLS,
    ParentPort,
    age,
    names_port,
    naming,
    parents,
    port_names,
    service_key,
)
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.tables import SERVICES
from isthmus.model.key import ObjectKey

ACCEPTED: Final = "Accepted"
NO_PARENT: Final = "NoMatchingParent"
CONFLICTED: Final = "RouteReasonConflicted"
"""Linkerd's word; the Gateway API has none for mesh routes."""

TOO_MANY: Final = "TooMany"
"""Our word for what is beyond a budget (see `budget`)."""

NO_CLUSTER_IP: Final = "parent service must have a ClusterIP"
NOT_ACCEPTED: Final = "EgressNetwork parent has not been accepted"


class Acceptance(msgspec.Struct, frozen=True):
    """Whether a parent takes a route: what the condition Accepted says."""

    accepted: bool
    reason: str
    message: str = ""


_YES: Final = Acceptance(accepted=True, reason=ACCEPTED)
_NO: Final = Acceptance(accepted=False, reason=NO_PARENT)


class Served(msgspec.Struct, frozen=True):
    """The routes that a port's clients are told of, by kind, each in order."""

    grpc: tuple[Ref, ...] = ()
    http: tuple[Ref, ...] = ()
    tls: tuple[Ref, ...] = ()
    tcp: tuple[Ref, ...] = ()


# ------------------------------------------------------------------------------- acceptance


@query
def acceptance(db: View, route: Ref, ref: ParentPort) -> Acceptance:
    """Whether the parent that a reference of a route means takes it."""
    match ref.kind:
        case _ if ref.kind == SERVICE and not ref.group:
            found = _by_service(db, ref)
        case _ if ref.kind == EGRESS_NETWORK and ref.group == POLICY_API:
            found = _by_egress_network(db, ref)
        case _:
            return _NO
    if not found.accepted:
        return found
    if _outdone(db, route, ref):
        return Acceptance(accepted=False, reason=CONFLICTED)
    why = _too_many(db, route, ref)
    return Acceptance(accepted=False, reason=TOO_MANY, message=why) if why else found


def _too_many(db: View, route: Ref, ref: ParentPort) -> str:
    """What budget a route is beyond at a parent that takes it else; "" if none."""
    if ref.kind == EGRESS_NETWORK:
        told = told_ports(db, Payer(Place(ref.cluster, ref.namespace), route.namespace))
        if ref.port not in told:
            return (
                f"routes of {route.namespace} name more ports of EgressNetworks in {ref.namespace}"
                f" than {len(told)}, for so many networks; those of the oldest routes count"
            )
    for port in _ports(db, ref):
        if route in beyond(db, AtPort(parent_ref(ref), port, route.kind, route.namespace)):
            return (
                f"hosts and matches of older {route.kind}s of {route.namespace} at port {port}"
                f" leave no room for this one: {MATCHES} pairs at most"
            )
    return ""


def _ports(db: View, ref: ParentPort) -> tuple[int, ...]:
    """The ports that a reference means, of a parent that takes it."""
    if ref.port:
        return (ref.port,)
    service = service_key(ref)
    row = SERVICES.get(db, service)
    ports = {each.port for each in row.spec.ports} if row is not None else set()
    named = (
        each for each in ports if not ref.section or ref.section in port_names(db, service, each)
    )
    return tuple(sorted(named))


def _by_service(db: View, ref: ParentPort) -> Acceptance:
    service = service_key(ref)
    if SERVICES.get(db, service) is None:
        return _NO
    if not _has_address(db, service):
        return msgspec.structs.replace(_NO, message=NO_CLUSTER_IP)
    if ref.port and port_state(db, service, ref.port) is not PortState.DECLARED:
        return msgspec.structs.replace(_NO, message=f"the Service has no port {ref.port}")
    if ref.section and not _has_section(db, service, ref):
        said = f"the Service has no port named {ref.section}"
        return msgspec.structs.replace(_NO, message=said)
    return _YES


@query
def _has_address(db: View, service: ObjectKey) -> bool:
    row = SERVICES.get(db, service)
    if row is None or row.spec.type == "ExternalName":
        return False
    listed = row.spec.cluster_ips or (row.spec.cluster_ip,)
    return any(ip not in ("", "None") for ip in listed)


@query
def _has_section(db: View, service: ObjectKey, ref: ParentPort) -> bool:
    row = SERVICES.get(db, service)
    ports = [each.port for each in row.spec.ports] if row is not None else []
    return any(
        ref.section in port_names(db, service, port) and ref.port in (0, port) for port in ports
    )


def _by_egress_network(db: View, ref: ParentPort) -> Acceptance:
    network = service_key(ref)
    if EGRESS_NETWORKS.get(db, network) is None:
        return _NO
    if overlaps(db, network):
        return msgspec.structs.replace(_NO, message=NOT_ACCEPTED)
    if ref.section:
        return msgspec.structs.replace(_NO, message="an EgressNetwork has no sections")
    if not ref.port:
        return msgspec.structs.replace(_NO, message="an EgressNetwork parent needs a port")
    return _YES


def _outdone(db: View, route: Ref, ref: ParentPort) -> bool:
    """Whether a more specific route that some client of this one is told of names the same."""
    heard = {route.namespace}
    if ref.kind == EGRESS_NETWORK:
        heard.add(ref.namespace)
    best = [rank for namespace, rank in _most_specific(db, ref) if namespace in heard]
    return min(best, default=_LEAST) < _specificity(route)


@query
def _most_specific(db: View, ref: ParentPort) -> tuple[tuple[str, int], ...]:
    """Of the routes with this reference, the most specific of each namespace."""
    found: dict[str, int] = {}
    for route in naming(db, parent_ref(ref)):
        if ref in parents(db, route):
            rank = _specificity(route)
            found[route.namespace] = min(rank, found.get(route.namespace, rank))
    return tuple(sorted(found.items()))


_ORDER: Final = {each.kind: at for at, each in enumerate((GRPC, HTTP, TLS))}
_LEAST: Final = len(_ORDER)


def _specificity(route: Ref) -> int:
    """0 for the most specific kind."""
    return _ORDER.get(route.kind, _LEAST)


def parent_ref(ref: ParentPort) -> Ref:
    """The parent of a reference, without port and section."""
    return Ref(ref.cluster, ref.group, ref.kind, ref.namespace, ref.name)


# -------------------------------------------------------------------------------- audiences


@query
def candidates(db: View, parent: Ref, port: int) -> tuple[Ref, ...]:
    """The routes that a port of a parent takes, whoever they are for; in the order of ages."""
    found = [route for route in naming(db, parent) if _taken(db, route, parent, port)]
    return tuple(sorted(found, key=lambda route: age(db, route)))


def _taken(db: View, route: Ref, parent: Ref, port: int) -> bool:
    ref = names_port(db, route, parent, port)
    return ref is not None and acceptance(db, route, ref).accepted


@query
def consumers(db: View, parent: Ref, port: int) -> tuple[str, ...]:
    """The namespaces with routes of their own at a port of another namespace's parent: sorted."""
    found = {route.namespace for route in candidates(db, parent, port)}
    return tuple(sorted(found - {parent.namespace}))


def audience(db: View, name: OutboundName) -> str:
    """The class of clients that a namespace is of: itself if it has routes there, "" if not."""
    if not name.namespace or name.namespace not in consumers(db, name.parent, name.port):
        return ""
    return name.namespace


def classed(db: View, name: OutboundName) -> OutboundName:
    """The name under which all clients of one class share a cell."""
    return OutboundName(name.parent, name.port, audience(db, name))


@query
def served(db: View, name: OutboundName) -> Served:
    """What clients of a class are told of."""
    found = candidates(db, name.parent, name.port)
    if not name.namespace:
        heard = {name.parent.namespace}
    elif name.parent.kind == EGRESS_NETWORK:
        heard = {name.parent.namespace, name.namespace}
    else:
        heard = {name.namespace}
    mine = [route for route in found if route.namespace in heard]
    return Served(
        *(_of_kind(mine, kind) for kind in ("GRPCRoute", "HTTPRoute", "TLSRoute", "TCPRoute"))
    )


def _of_kind(routes: Iterable[Ref], kind: str) -> tuple[Ref, ...]:
    return tuple(route for route in routes if route.kind == kind)


# ---------------------------------------------------------------------- classes of namespaces


@query
def consumed(db: View, where: Place) -> tuple[Ref, ...]:
    """The parents in other namespaces that routes of this namespace name, sorted."""
    found = {
        parent_ref(ref)
        for kind in ALL
        for key in kind.abroad.get(db, where)
        for ref in parents(db, kind.ref(key))
        if ref.namespace != where.namespace and ref.kind in (SERVICE, EGRESS_NETWORK)
    }
    return tuple(sorted(found, key=lambda ref: (ref.kind, ref.namespace, ref.name)))


@query
def egress_class(db: View, where: Place) -> str:
    """The class of clients that a namespace is of for what leaves the cluster.

    Itself if it has EgressNetworks of its own, or routes on global ones; "" if not.
    """
    seen = visible(db, where)
    own = any(network.namespace == where.namespace for network in seen)
    theirs = {network_ref(each) for each in seen}
    return where.namespace if own or theirs.intersection(consumed(db, where)) else ""


@query
def egress_ports(db: View, network: ObjectKey) -> tuple[int, ...]:
    """The ports of an EgressNetwork that routes which it takes speak of, sorted."""
    parent = network_ref(network)
    found = {
        ref.port
        for route in naming(db, parent)
        for ref in parents(db, route)
        if parent_ref(ref) == parent and acceptance(db, route, ref).accepted
    }
    return tuple(sorted(found))
