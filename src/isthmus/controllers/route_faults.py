"""What proxies will not do of an object as it is written, in the dialects that are in scope.

Clients' proxies are asked for what they are told of a parent's ports, servers' for what they are
told of a workload's. Only dialects that somebody speaks there have a say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from isthmus.controllers.settings import SETTINGS, Dialect
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Origin, Ref
from isthmus.ir.proxy import InboundName, OutboundName
from isthmus.mesh.attachment import classed, egress_ports, parent_ref
from isthmus.mesh.census import Place
from isthmus.mesh.routes import EGRESS_NETWORK, SERVICE, ParentPort, service_key
from isthmus.mesh.servers import described_ports
from isthmus.mesh.spoken import spoken, spoken_by, spoken_in
from isthmus.mesh.tables import SERVICES
from isthmus.model.key import ObjectKey

Told = Mapping[Ref, tuple[Unsupported, ...]]

_NONE: Final = ()


# --------------------------------------------------------------------------------- clients


@query
def client_faults(db: View, name: OutboundName) -> Told:
    """What clients of a class will not do at a port, by the object that asks for it.

    A producer's word is for every client of the cluster, a consumer's for its own namespace.
    """
    home = name.parent.cluster
    heard = spoken_in(db, Place(home, name.namespace)) if name.namespace else spoken(db, home)
    return _sorted_out(
        each
        for one in _dialects(db, home, heard)
        if one.outbound
        for each in one.outbound(db, name)
    )


@query
def faults_at(db: View, route: Ref, ref: ParentPort) -> tuple[Unsupported, ...]:
    """What clients will not do of a route at a parent that is a Service or an EgressNetwork."""
    found: dict[Unsupported, None] = {}
    for port in _ports(db, ref):
        name = classed(db, OutboundName(parent_ref(ref), port, _audience(route, ref)))
        found |= dict.fromkeys(client_faults(db, name).get(route, _NONE))
    return tuple(found)


def _audience(route: Ref, ref: ParentPort) -> str:
    """A route of the parent's own namespace is for all clients."""
    return "" if route.namespace == ref.namespace else route.namespace


def _ports(db: View, ref: ParentPort) -> tuple[int, ...]:
    if ref.port:
        return (ref.port,)
    if ref.kind == EGRESS_NETWORK:
        return egress_ports(db, service_key(ref))
    return service_ports(db, service_key(ref))


@query
def service_ports(db: View, service: ObjectKey) -> tuple[int, ...]:
    """The TCP ports of a Service."""
    row = SERVICES.get(db, service)
    listed = row.spec.ports if row is not None else ()
    return tuple(sorted({each.port for each in listed if each.protocol in ("", "TCP")}))


@query
def parent_faults(db: View, parent: Ref) -> tuple[Unsupported, ...]:
    """What clients will not do of what a Service or an EgressNetwork says itself."""
    key = ObjectKey(parent.cluster, parent.namespace, parent.name)
    ports = service_ports(db, key) if parent.kind == SERVICE else egress_ports(db, key)
    found: dict[Unsupported, None] = {}
    for port in ports:
        found |= dict.fromkeys(client_faults(db, OutboundName(parent, port, "")).get(parent, _NONE))
    return tuple(found)


# --------------------------------------------------------------------------------- servers


@query
def workload_faults(db: View, name: InboundName) -> Told:
    """What a server will not do on a port, by the object that asks for it."""
    heard = spoken_by(db, name.workload)
    return _sorted_out(
        each
        for one in _dialects(db, name.workload.cluster, heard)
        if one.inbound
        for each in one.inbound(db, name)
    )


@query
def server_faults(db: View, server: ObjectKey) -> Told:
    """The same on all ports that a Server describes."""
    told: dict[Ref, dict[Unsupported, None]] = {}
    for name in described_ports(db, server):
        for ref, faults in workload_faults(db, name).items():
            told.setdefault(ref, {}).update(dict.fromkeys(faults))
    return _frozen(told)


def _dialects(db: View, cluster: str, heard: Iterable[str]) -> tuple[Dialect, ...]:
    settings = SETTINGS.get(db, cluster)
    known = settings.dialects if settings is not None else ()
    return tuple(each for each in known if each.name in heard)


def _sorted_out(faults: Iterable[Unsupported]) -> Told:
    found: dict[Ref, dict[Unsupported, None]] = {}
    for each in faults:
        if isinstance(each.origin, Origin):
            found.setdefault(each.origin.ref, {})[each] = None
    return _frozen(found)


def _frozen(found: Mapping[Ref, Iterable[Unsupported]]) -> Told:
    return MappingProxyType({ref: tuple(found[ref]) for ref in sorted(found, key=_order)})


def _order(ref: Ref) -> tuple[str, ...]:
    return (ref.kind, ref.group, ref.namespace, ref.name)
