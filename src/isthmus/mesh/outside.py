"""What leaves the cluster, as one class of clients sees it: the map of all addresses, and names."""

from __future__ import annotations

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.outbound import Tcp
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.attachment import egress_class
from isthmus.mesh.budget import Payer, told_ports
from isthmus.mesh.census import Place
from isthmus.mesh.egress import (
    Region,
    all_claims,
    annotated_opaque_ports,
    network_ref,
    opaque_ports,
    regions,
    visible,
)
from isthmus.mesh.outbound import outbound
from isthmus.mesh.scope import refused_networks
from isthmus.mesh.settings import settings
from isthmus.model.annotations import Ports
from isthmus.model.key import ObjectKey

ANY_PORT = 0
"""Stands for all ports of an EgressNetwork that no route speaks of."""


@query
def outside(db: View, where: Place) -> tuple[Region, ...]:
    """The map of addresses for clients of a class (`egress_class`), by longest prefix.

    Addresses that only Services have are refused, whoever claims them: a Service's own port is
    found before any of this is asked.
    """
    own = settings(db)
    return regions(all_claims(db, where), refused_networks(db, where.cluster), own.cluster_networks)


@query
def egress_names(db: View, where: Place) -> tuple[OutboundName, ...]:
    """What clients of a class are told of EgressNetworks: each port with routes, then all others.

    A port at which one network has routes is told of every network: a proxy that looks at ports
    before addresses must know it for all.
    """
    ports = _told(db, where)
    return tuple(
        OutboundName(network_ref(network), port, where.namespace)
        for network in visible(db, where)
        for port in (*ports, ANY_PORT)
    )


def _told(db: View, where: Place) -> tuple[int, ...]:
    """The ports that routes speak of: the owners' of the networks, and the clients' own."""
    owners = {network.namespace for network in visible(db, where)}
    found = {
        port
        for owner in owners
        for namespace in (owner, where.namespace)
        for port in told_ports(db, Payer(Place(where.cluster, owner), namespace))
    }
    return tuple(sorted(found))


@query
def egress_parents(db: View, where: Place) -> tuple[Ref, ...]:
    """The EgressNetworks that clients in a namespace see, as references."""
    return tuple(network_ref(network) for network in visible(db, where))


@query
def unseen_ports(db: View, where: Place) -> Ports:
    """The ports at which nobody looks for a protocol: opaque whatever may be behind them.

    Default ones, where no EgressNetwork says otherwise and no route declares what is spoken; and
    those at which routes make every EgressNetwork opaque.
    """
    seen = visible(db, where)
    lists = [opaque_ports(db, network) for network in seen]
    common = _in_all([settings(db).default_opaque_ports, *lists])
    spoken = {each.port for each in egress_names(db, where) if not _is_tcp(db, each)}
    raw = {(port, port) for port in set(_told(db, where)) - spoken}
    return Ports(tuple(sorted(_without(common, spoken) | raw)))


def _is_tcp(db: View, name: OutboundName) -> bool:
    return isinstance(outbound(db, name).protocol, Tcp)


def _in_all(lists: list[Ports]) -> list[tuple[int, int]]:
    """The ranges that all of the lists have."""
    common = list(lists[0].ranges)
    for other in lists[1:]:
        common = [
            (max(low, first), min(high, last))
            for low, high in common
            for first, last in other.ranges
            if max(low, first) <= min(high, last)
        ]
    return common


def _without(ranges: list[tuple[int, int]], ports: set[int]) -> set[tuple[int, int]]:
    for port in ports:
        ranges = [
            part
            for low, high in ranges
            for part in ((low, min(high, port - 1)), (max(low, port + 1), high))
            if part[0] <= part[1]
        ]
    return set(ranges)


@query
def opaque_somewhere(db: View, network: ObjectKey, where: Place) -> bool:
    """Whether an EgressNetwork lists opaque ports that are looked at for another one's sake."""
    listed = annotated_opaque_ports(db, network)
    if listed is None:
        return False
    unseen = unseen_ports(db, where)
    return any(not unseen.holds(low) or not unseen.holds(high) for low, high in listed.ranges)


def egress_place(db: View, where: Place) -> Place:
    """The class of clients that a namespace is of, as a place."""
    return Place(where.cluster, egress_class(db, where))
