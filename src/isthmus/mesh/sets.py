"""Sets: whose slices answer a question for endpoints, and how much of them the asker sees."""

from __future__ import annotations

from isthmus.engine import View, query
from isthmus.mesh.asked import GetKey
from isthmus.mesh.candidates import listing
from isthmus.mesh.clusters import cluster, is_local
from isthmus.mesh.federation import named, portions
from isthmus.mesh.pods import zone_of
from isthmus.mesh.services import (
    Absent,
    Federated,
    Local,
    PortState,
    Remote,
    SetKey,
    Topology,
    discovery,
    keeps_to_node,
    port_state,
)
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SLICES_BY_SERVICE
from isthmus.model.key import ObjectKey


@query
def sets(db: View, key: GetKey) -> tuple[SetKey, ...]:
    """The sets whose union answers: none for a Service that is not there.

    Topology is for what is near: endpoints of other clusters are never filtered by it. Clusters
    that are not known, or known to be dead (decision 18), have none.
    """
    zone = zone_of(db, ObjectKey(settings(db).cluster, "", key.node)) if key.node else ""
    members, instance = _sources(db, key)
    asked = key._replace(instance=instance)
    return tuple(_seen(db, asked, one, zone) for one in members if usable(db, one.cluster))


@query
def all_sets(db: View, service: ObjectKey, port: int, subset: str) -> tuple[SetKey, ...]:
    """Everybody that may ever answer, of clusters that are dead just now too."""
    key = GetKey(service, port, subset, "")
    members, instance = _members(db, key)
    asked = key._replace(instance=instance)
    return tuple(_seen(db, asked, one, "") for one in members if cluster(db, one.cluster))


@query
def usable(db: View, name: str) -> bool:
    """Whether a cluster's endpoints may be sent to."""
    home = cluster(db, name)
    return home is not None and home.usable


def _sources(db: View, key: GetKey) -> tuple[tuple[ObjectKey, ...], str]:
    """Whose slices are meant, and of which host name.

    Who asks for a federated Service that gives its members shares, and not for one of the parts,
    gets those that are first in line and have somebody: it cannot choose by itself.
    """
    found, instance = _members(db, key)
    plan = portions(db, key.service) if instance == key.instance == "" else ()
    for group in plan:
        members = tuple(one for portion in group for one in portion.members)
        if group is plan[-1] or any(somebody(db, one, key.port) for one in members):
            return _with_port(db, members, key.port), ""
    return found, instance


def _members(db: View, key: GetKey) -> tuple[tuple[ObjectKey, ...], str]:
    match discovery(db, key.service):
        case Absent():
            return (), key.instance
        case Local():
            return (key.service,), key.instance
        case Remote(_, remote):
            return ((remote,) if remote is not None else ()), key.instance
        case Federated(members):
            part = named(db, key.service, key.instance) if key.instance else None
            instance = key.instance if part is None else ""
            return _with_port(db, members if part is None else part, key.port), instance


def _with_port(db: View, members: tuple[ObjectKey, ...], port: int) -> tuple[ObjectKey, ...]:
    """A member without the port gives nothing, and does no harm."""
    return tuple(one for one in members if port_state(db, one, port) is PortState.DECLARED)


@query
def somebody(db: View, service: ObjectKey, port: int) -> bool:
    """Whether a member has a ready endpoint behind a port that may be sent to."""
    if not usable(db, service.cluster) or port_state(db, service, port) is not PortState.DECLARED:
        return False
    return any(
        listing(db, part, service, port).candidates for part in SLICES_BY_SERVICE.get(db, service)
    )


def _seen(db: View, key: GetKey, service: ObjectKey, zone: str) -> SetKey:
    topology = Topology.NONE
    if is_local(db, service.cluster):
        topology = Topology.NODE if keeps_to_node(db, service) else Topology.ZONE
    node = key.node if topology is Topology.NODE else ""
    return SetKey(service, key.port, key.instance, topology, zone, node)
