"""Tables of the mesh's own kinds and of what the destination reads, with indexes and joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import OPERATORS, Index, Join, Labelled, Selector, Table
from isthmus.mesh.census import Place
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.tables import PODS, SERVICES, Source, place
from isthmus.model.core import Pod, Service
from isthmus.model.key import ObjectKey
from isthmus.model.meta import LabelSelector, Object, Requirement
from isthmus.model.policy import Server
from isthmus.model.serviceprofile import WrittenProfile, written_profile
from isthmus.model.trafficsplit import TrafficSplit
from isthmus.model.workload import ExternalWorkload

SERVERS: Table[ObjectKey, Server] = Table("servers")
SERVICE_PROFILES: Table[ObjectKey, WrittenProfile] = Table("serviceprofiles", scope=place)
TRAFFIC_SPLITS: Table[ObjectKey, TrafficSplit] = Table("trafficsplits")
EXTERNAL_WORKLOADS: Table[ObjectKey, ExternalWorkload] = Table("externalworkloads")
JOBS: Table[ObjectKey, Object] = Table("jobs")
"""Only whose they are."""

LISTED: Final = frozenset({"serviceprofiles"})
"""The tables here whose names may be listed: a controller attends them object by object."""


class Socket(NamedTuple):
    """An address and port as one cluster sees it."""

    cluster: str
    ip: str
    port: int


def _sockets(key: ObjectKey, row: ExternalWorkload) -> Iterable[Socket]:
    return (
        Socket(key.cluster, canonical_ip(each.ip) or each.ip, port.port)
        for each in row.spec.workload_ips
        for port in row.spec.ports
    )


def _split_service(key: ObjectKey, row: TrafficSplit) -> Iterable[ObjectKey]:
    return (key._replace(name=row.spec.service),)


WORKLOADS_BY_SOCKET: Index[ObjectKey, ExternalWorkload, Socket] = Index(
    "externalworkloads_by_socket", EXTERNAL_WORKLOADS, _sockets
)
SPLITS_BY_SERVICE: Index[ObjectKey, TrafficSplit, ObjectKey] = Index(
    "trafficsplits_by_service", TRAFFIC_SPLITS, _split_service
)


def policy_selector(where: Place, written: LabelSelector | None) -> Selector | None:
    """The selector of a policy: none selects nothing, an empty one everything in its namespace.

    One that says nothing understandable selects nothing.
    """
    if written is None or not all(map(_understood, written.match_expressions)):
        return None
    parts = [(part.key, part.operator, part.values) for part in written.match_expressions]
    return Selector(where, written.match_labels, parts)  # type: ignore[arg-type]  # as understood


def _understood(part: Requirement) -> bool:
    listed = part.operator in ("In", "NotIn")
    return part.operator in OPERATORS and bool(part.values) == listed


def _server_pods(key: ObjectKey, row: Server) -> Selector | None:
    return policy_selector(place(key), row.spec.pod_selector)


def _server_workloads(key: ObjectKey, row: Server) -> Selector | None:
    return policy_selector(place(key), row.spec.external_workload_selector)


def _service_selector(key: ObjectKey, row: Service) -> Selector | None:
    if not row.spec.selector or row.spec.type == "ExternalName":
        return None
    return Selector(place(key), row.spec.selector)


def _pod_labels(key: ObjectKey, row: Pod) -> Labelled:
    return Labelled(place(key), row.metadata.labels)


def _workload_labels(key: ObjectKey, row: ExternalWorkload) -> Labelled:
    return Labelled(place(key), row.metadata.labels)


SERVER_PODS: Join[ObjectKey, Server, ObjectKey, Pod] = Join(
    "server_pods", SERVERS, _server_pods, PODS, _pod_labels
)
SERVER_WORKLOADS: Join[ObjectKey, Server, ObjectKey, ExternalWorkload] = Join(
    "server_workloads", SERVERS, _server_workloads, EXTERNAL_WORKLOADS, _workload_labels
)
SERVICE_WORKLOADS: Join[ObjectKey, Service, ObjectKey, ExternalWorkload] = Join(
    "service_workloads", SERVICES, _service_selector, EXTERNAL_WORKLOADS, _workload_labels
)

POLICY_SOURCES: Final[Mapping[str, Source]] = {
    "servers.policy.linkerd.io": Source(SERVERS, msgspec.json.Decoder(Server).decode),
    "serviceprofiles.linkerd.io": Source(SERVICE_PROFILES, written_profile),
    "trafficsplits.split.smi-spec.io": Source(
        TRAFFIC_SPLITS, msgspec.json.Decoder(TrafficSplit).decode
    ),
    "externalworkloads.workload.linkerd.io": Source(
        EXTERNAL_WORKLOADS, msgspec.json.Decoder(ExternalWorkload).decode
    ),
    "jobs.batch": Source(JOBS, msgspec.json.Decoder(Object).decode),
}
"""By the resource part of store keys."""
