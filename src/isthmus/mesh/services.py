"""Services: where their endpoints are found, and when a question about one is refused.

A Service is answered from its own slices, from a Service of a linked cluster (remote discovery, for
flat networks), or as the union of several (federated). All of it follows the objects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.asked import Refused, Why
from isthmus.mesh.clusters import cluster, is_local
from isthmus.mesh.tables import SERVICES
from isthmus.model.key import ObjectKey

REMOTE_CLUSTER: Final = "multicluster.linkerd.io/remote-discovery"
REMOTE_SERVICE: Final = "multicluster.linkerd.io/remote-service"
LOCAL_MEMBER: Final = "multicluster.linkerd.io/local-discovery"
"""The first is a label of a remote Service's stand-in, and an annotation of a federated one."""

_MOST: Final = 1024
"""Members of a federated Service."""


class Topology(StrEnum):
    """Which endpoints an asker sees: all, those hinted to its zone, those on its node."""

    NONE = "none"
    ZONE = "zone"
    NODE = "node"


class SetKey(NamedTuple):
    """The endpoints of one Service as one class of askers sees them.

    `zone` is the asker's. `node` is "" unless the topology is NODE.
    """

    service: ObjectKey
    port: int
    instance: str
    topology: Topology
    zone: str
    node: str


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """No Service, or one that is only a name for something outside. `external` tells them apart."""

    external: bool = False


class Local(msgspec.Struct, frozen=True, tag="local"):
    """Its own slices."""


class Remote(msgspec.Struct, frozen=True, tag="remote"):
    """A Service of a linked cluster; None where the label that names it is missing."""

    cluster: str
    service: ObjectKey | None


class Federated(msgspec.Struct, frozen=True, tag="federated"):
    """The union of these."""

    members: tuple[ObjectKey, ...]


Discovery = Absent | Local | Remote | Federated


@query
def discovery(db: View, service: ObjectKey) -> Discovery:
    """Where the endpoints of a Service are found.

    A Service of a linked cluster has its own slices: what it says of further clusters is said in
    that cluster's names, and would lead through it.
    """
    row = SERVICES.get(db, service)
    if row is None or row.spec.type == "ExternalName":
        return Absent(external=row is not None)
    if not is_local(db, service.cluster):
        return Local()
    notes, labels = row.metadata.annotations, row.metadata.labels
    if REMOTE_CLUSTER in notes or LOCAL_MEMBER in notes:
        members = _members(service, notes.get(LOCAL_MEMBER, ""), notes.get(REMOTE_CLUSTER, ""))
        return Federated(members)
    if REMOTE_CLUSTER in labels:
        where, name = labels[REMOTE_CLUSTER], labels.get(REMOTE_SERVICE, "")
        return Remote(where, ObjectKey(where, service.namespace, name) if name else None)
    return Local()


def _members(service: ObjectKey, local: str, remote: str) -> tuple[ObjectKey, ...]:
    """Local one first, remote ones as written: `<service>@<cluster>`, blanks trimmed, each once."""
    found = [service._replace(name=local.strip())] if local.strip() else []
    for item in remote.split(",", _MOST)[:_MOST]:
        match [part.strip() for part in item.split("@")]:
            case [name, where] if name and where:
                found.append(ObjectKey(where, service.namespace, name))
    return tuple(dict.fromkeys(found))


@query
def keeps_to_node(db: View, service: ObjectKey) -> bool:
    """Whether traffic inside the cluster stays on the client's node."""
    row = SERVICES.get(db, service)
    return row is not None and row.spec.internal_traffic_policy == "Local"


@query
def get_refusal(db: View, service: ObjectKey) -> Refused | None:
    """Why a new question for the endpoints of a Service is refused."""
    match discovery(db, service):
        case Absent(external):
            return _absent(service, external=external)
        case Remote(_, None):
            return Refused(Why.NO_REMOTE_SERVICE, "Remote discovery service missing remote service")
        case Remote(where, _) if cluster(db, where) is None:
            return Refused(Why.NO_CLUSTER, f"Remote cluster not found: {where}")
        case Local() | Remote() | Federated():
            return None


@query
def service_refusal(db: View, service: ObjectKey) -> Refused | None:
    """Why a new question for the profile of a Service is refused."""
    row = SERVICES.get(db, service)
    if row is not None and row.spec.type != "ExternalName":
        return None
    return _absent(service, external=row is not None)


def _absent(service: ObjectKey, *, external: bool) -> Refused:
    name = f"{service.name}.{service.namespace}"
    if external:
        return Refused(Why.EXTERNAL_NAME, f"Service {name} is of type ExternalName")
    return Refused(Why.MISSING, f"Service {name} not found")


class PortState(StrEnum):
    """UNDECLARED: the Service is there, this port of it is not."""

    ABSENT = "absent"
    DECLARED = "declared"
    UNDECLARED = "undeclared"


@query
def port_state(db: View, service: ObjectKey, port: int) -> PortState:
    """Whether a Service has a port. An ExternalName has none of its own: it is absent."""
    row = SERVICES.get(db, service)
    if row is None or row.spec.type == "ExternalName":
        return PortState.ABSENT
    declared = any(each.port == port for each in row.spec.ports)
    return PortState.DECLARED if declared else PortState.UNDECLARED


@query
def first_port(db: View, service: ObjectKey) -> int | None:
    """A port that a Service has; None if it is not there, is only a name, or has none."""
    row = SERVICES.get(db, service)
    ports = row.spec.ports if row is not None and row.spec.type != "ExternalName" else ()
    return ports[0].port if ports else None


@query
def port_name(db: View, service: ObjectKey, port: int) -> str | None:
    """The name of a Service's port, by which slices call it; None if it is not declared.

    Where TCP and UDP share a number, TCP is meant.
    """
    row = SERVICES.get(db, service)
    named = [each for each in row.spec.ports if each.port == port] if row is not None else []
    named.sort(key=lambda each: each.protocol != "TCP")
    return named[0].name if named else None
