"""Scopes: which upstreams a proxy is told of (decision 17).

An annotation of the workload or its namespace narrows them; by default it is everything. The names
in a scope are one value for all proxies that have it.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.asked import GetKey
from isthmus.mesh.attachment import classed, consumed
from isthmus.mesh.candidates import Member
from isthmus.mesh.census import Place
from isthmus.mesh.endpoints import groups
from isthmus.mesh.outbound import parent_key, parent_ref
from isthmus.mesh.routes import SERVICE
from isthmus.mesh.sets import sets
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import NAMESPACES, SERVICES
from isthmus.mesh.targets import headless, vips
from isthmus.mesh.workloads import note
from isthmus.model.annotations import Problem, Upstream, upstreams
from isthmus.model.annotations.keys import UPSTREAMS
from isthmus.model.key import ObjectKey

Scope = tuple[Upstream, ...]

EVERYTHING: Final[Scope] = (Upstream("*", "*"),)


@query
def scope(db: View, workload: Ref) -> Scope:
    """The upstreams a workload asks for; everything where that is not understood."""
    said = note(db, workload, UPSTREAMS)
    found = upstreams(said) if said is not None else EVERYTHING
    return EVERYTHING if isinstance(found, Problem) else tuple(sorted(set(found)))


@query
def in_scope(db: View, cluster: str, wanted: Scope) -> tuple[OutboundName, ...]:
    """The upstreams in a scope, sorted: every TCP port of every Service of the cluster."""
    return tuple(
        name
        for namespace in NAMESPACES.names(db, Place(cluster, ""))
        if _touched(wanted, namespace.name)
        for name in declared(db, Place(cluster, namespace.name))
        if _holds(wanted, name)
    )


@query
def upstreams_of(db: View, where: Place, wanted: Scope) -> tuple[OutboundName, ...]:
    """The upstreams in a scope as proxies in a namespace know them.

    A namespace with routes of its own to some of them has names of its own for those; all others
    share the one value of their scope.
    """
    shared = in_scope(db, where.cluster, wanted)
    theirs = {ref for ref in consumed(db, where) if ref.kind == SERVICE}
    if not theirs:
        return shared
    return tuple(
        classed(db, OutboundName(name.parent, name.port, where.namespace))
        if name.parent in theirs
        else name
        for name in shared
    )


@query
def consumer_class(db: View, where: Place) -> str:
    """The class of clients that a namespace is of for Services: itself if it has own routes."""
    return where.namespace if any(ref.kind == SERVICE for ref in consumed(db, where)) else ""


@query
def out_of_scope(db: View, cluster: str, wanted: Scope) -> tuple[OutboundName, ...]:
    """The upstreams that are not in a scope: what is refused."""
    if wanted == EVERYTHING:
        return ()
    return tuple(
        name
        for namespace in NAMESPACES.names(db, Place(cluster, ""))
        for name in declared(db, Place(cluster, namespace.name))
        if not _holds(wanted, name)
    )


def _touched(wanted: Scope, namespace: str) -> bool:
    return any(each.namespace in ("*", namespace) for each in wanted)


def _holds(wanted: Scope, name: OutboundName) -> bool:
    return any(each.holds(name.parent.namespace, name.parent.name) for each in wanted)


@query
def declared(db: View, where: Place) -> tuple[OutboundName, ...]:
    """Every TCP port of the Services of a namespace, sorted."""
    return tuple(name for service in SERVICES.names(db, where) for name in ports_of(db, service))


@query
def ports_of(db: View, service: ObjectKey) -> tuple[OutboundName, ...]:
    """The TCP ports of a Service, as upstreams of all namespaces; none of a mere name."""
    row = SERVICES.get(db, service)
    if row is None or row.spec.type == "ExternalName":
        return ()
    found = {each.port for each in row.spec.ports if each.protocol == "TCP"}
    return tuple(OutboundName(parent_ref(service), port, "") for port in sorted(found))


# -------------------------------------------------------------------------------- addresses


@query
def refused_networks(db: View, cluster: str) -> tuple[str, ...]:
    """Where only Services have addresses: what no Service's port is behind there is refused."""
    strays = (
        ip
        for namespace in NAMESPACES.names(db, Place(cluster, ""))
        for ip in stray_vips(db, Place(cluster, namespace.name))
    )
    return (*settings(db).service_networks, *sorted(set(map(_single, strays))))


@query
def stray_vips(db: View, where: Place) -> tuple[str, ...]:
    """The ClusterIPs of a namespace that are outside the networks they usually come from."""
    found = (ip for service in SERVICES.names(db, where) for ip in vips(db, service))
    networks = [ip_network(each, strict=False) for each in settings(db).service_networks]
    return tuple(sorted({ip for ip in found if not _inside(ip, networks)}))


def _inside(ip: str, networks: list[IPv4Network | IPv6Network]) -> bool:
    return any(ip_address(ip) in each for each in networks)


def _single(ip: str) -> str:
    return f"{ip}/128" if ":" in ip else f"{ip}/32"


@query
def instances(db: View, name: OutboundName) -> tuple[Member, ...]:
    """Who is dialled by an own address: the ready members behind a port of a headless Service."""
    service = parent_key(name.parent)
    if not headless(db, service):
        return ()
    parts = sets(db, GetKey(service, name.port, "", ""))
    return tuple(one for part in parts for group in groups(db, part) for one in group.members)
