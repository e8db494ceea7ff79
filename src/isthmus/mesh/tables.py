"""The mesh's tables, and the indexes and joins over them.

Each table says in its row type what it knows. `names(scope)` may list the tables that are declared
with `scope` (see LISTED), one namespace at a time; everything else is found by key, index or join.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from isthmus.engine import Index, Join, Labelled, Selector, Table
from isthmus.mesh.census import Place
from isthmus.mesh.definitions import DEFINITIONS
from isthmus.mesh.definitions import RESOURCE as DEFINED
from isthmus.mesh.definitions import row as definition
from isthmus.mesh.names import canonical_ip
from isthmus.model.apps import ControllerRevision, Deployment, ReplicaSet, StatefulSet
from isthmus.model.core import (
    ConfigMap,
    Endpoints,
    Namespace,
    Node,
    Pod,
    Service,
    ServiceAccount,
)
from isthmus.model.discovery import EndpointSlice
from isthmus.model.key import ObjectKey
from isthmus.model.meta import LabelSelector, Meta

SERVICE_NAME = "kubernetes.io/service-name"
"""The label that says whose slice an EndpointSlice is."""


def place(key: ObjectKey) -> Place:
    """Where an object lives: the scope of `names`."""
    return Place(key.cluster, key.namespace)


NAMESPACES: Table[ObjectKey, Namespace] = Table("namespaces", scope=place)
SERVICES: Table[ObjectKey, Service] = Table("services", scope=place)
ENDPOINTS: Table[ObjectKey, Endpoints] = Table("endpoints", scope=place)
DEPLOYMENTS: Table[ObjectKey, Deployment] = Table("deployments", scope=place)
REPLICASETS: Table[ObjectKey, ReplicaSet] = Table("replicasets", scope=place)
STATEFULSETS: Table[ObjectKey, StatefulSet] = Table("statefulsets", scope=place)
PODS: Table[ObjectKey, Pod] = Table("pods")
SLICES: Table[ObjectKey, EndpointSlice] = Table("endpointslices")
NODES: Table[ObjectKey, Node] = Table("nodes")
SERVICE_ACCOUNTS: Table[ObjectKey, ServiceAccount] = Table("serviceaccounts")
CONFIG_MAPS: Table[ObjectKey, ConfigMap] = Table("configmaps")
REVISIONS: Table[ObjectKey, ControllerRevision] = Table("controllerrevisions")

LISTED = frozenset(
    {
        "definitions",
        "deployments",
        "endpoints",
        "namespaces",
        "replicasets",
        "services",
        "statefulsets",
    }
)
"""The tables whose names may be listed: those that a controller attends object by object."""


class Address(NamedTuple):
    """An IP address as one cluster sees it."""

    cluster: str
    ip: str


class HostPort(NamedTuple):
    """A port of a node that leads into a pod."""

    cluster: str
    ip: str
    port: int
    protocol: str


def _controller(_key: ObjectKey, row: Any) -> Iterable[str]:  # noqa: ANN401  # every row has metadata
    """The uid of the one owner that manages the object."""
    meta: Meta = row.metadata
    return (owner.uid for owner in meta.owner_references if owner.controller)


def _pod_ips(key: ObjectKey, row: Pod) -> Iterable[Address]:
    return (Address(key.cluster, canonical_ip(ip) or ip) for ip in row.status.ips)


def _host_ports(key: ObjectKey, row: Pod) -> Iterable[HostPort]:
    ips = [each.ip for each in row.status.host_ips] or [row.status.host_ip]
    return (
        HostPort(key.cluster, canonical_ip(ip) or ip, port.host_port, port.protocol)
        for container in (*row.spec.init_containers, *row.spec.containers)
        for port in container.ports
        for ip in ips
        if ip and port.host_port
    )


def _cluster_ips(key: ObjectKey, row: Service) -> Iterable[Address]:
    ips = row.spec.cluster_ips or (row.spec.cluster_ip,)
    return (Address(key.cluster, canonical_ip(ip) or ip) for ip in ips if ip not in ("", "None"))


def _service_of(key: ObjectKey, row: EndpointSlice) -> Iterable[ObjectKey]:
    """The label's Service; without the label, the owners of kind Service."""
    if name := row.metadata.labels.get(SERVICE_NAME):
        return (ObjectKey(key.cluster, key.namespace, name),)
    owners = row.metadata.owner_references
    return (key._replace(name=owner.name) for owner in owners if owner.kind == "Service")


PODS_BY_IP: Index[ObjectKey, Pod, Address] = Index("pods_by_ip", PODS, _pod_ips)
PODS_BY_HOST_PORT: Index[ObjectKey, Pod, HostPort] = Index("pods_by_host_port", PODS, _host_ports)
PODS_BY_CONTROLLER: Index[ObjectKey, Pod, str] = Index("pods_by_controller", PODS, _controller)
SERVICES_BY_IP: Index[ObjectKey, Service, Address] = Index("services_by_ip", SERVICES, _cluster_ips)
SLICES_BY_SERVICE: Index[ObjectKey, EndpointSlice, ObjectKey] = Index(
    "slices_by_service", SLICES, _service_of
)
REPLICASETS_BY_CONTROLLER: Index[ObjectKey, ReplicaSet, str] = Index(
    "replicasets_by_controller", REPLICASETS, _controller
)
REVISIONS_BY_CONTROLLER: Index[ObjectKey, ControllerRevision, str] = Index(
    "revisions_by_controller", REVISIONS, _controller
)


def _labelled(key: ObjectKey, row: Any) -> Labelled:  # noqa: ANN401  # every row has metadata
    return Labelled(place(key), row.metadata.labels)


def _service_selector(key: ObjectKey, row: Service) -> Selector | None:
    """None for a Service whose endpoints somebody else writes."""
    if not row.spec.selector or row.spec.type == "ExternalName":
        return None
    return Selector(place(key), row.spec.selector)


def selector(key: ObjectKey, written: LabelSelector) -> Selector | None:
    """A label selector in the object's own namespace; None if empty or not to be understood.

    An empty selector selects everything to Kubernetes, but no workload may have one.
    """
    if not written.match_labels and not written.match_expressions:
        return None
    parts = [(part.key, part.operator, part.values) for part in written.match_expressions]
    return Selector(place(key), written.match_labels, parts)  # type: ignore[arg-type]  # user text


def _workload_selector(key: ObjectKey, row: Any) -> Selector | None:  # noqa: ANN401  # three kinds
    return selector(key, row.spec.selector)


SERVICE_PODS: Join[ObjectKey, Service, ObjectKey, Pod] = Join(
    "service_pods", SERVICES, _service_selector, PODS, _labelled
)
REPLICASET_PODS: Join[ObjectKey, ReplicaSet, ObjectKey, Pod] = Join(
    "replicaset_pods", REPLICASETS, _workload_selector, PODS, _labelled
)
STATEFULSET_PODS: Join[ObjectKey, StatefulSet, ObjectKey, Pod] = Join(
    "statefulset_pods", STATEFULSETS, _workload_selector, PODS, _labelled
)
DEPLOYMENT_REPLICASETS: Join[ObjectKey, Deployment, ObjectKey, ReplicaSet] = Join(
    "deployment_replicasets", DEPLOYMENTS, _workload_selector, REPLICASETS, _labelled
)


class Source(NamedTuple):
    """What the board does with the objects of one resource: `row` makes the facts for `table`.

    `row` raises msgspec.MsgspecError for bytes that do not fit.
    """

    table: Table[ObjectKey, Any]
    row: Any


def _source(table: Table[ObjectKey, Any], row: type[msgspec.Struct]) -> Source:
    return Source(table, msgspec.json.Decoder(row).decode)


SOURCES: Mapping[str, Source] = {
    DEFINED: Source(DEFINITIONS, definition),
    "namespaces": _source(NAMESPACES, Namespace),
    "services": _source(SERVICES, Service),
    "endpoints": _source(ENDPOINTS, Endpoints),
    "pods": _source(PODS, Pod),
    "nodes": _source(NODES, Node),
    "serviceaccounts": _source(SERVICE_ACCOUNTS, ServiceAccount),
    "configmaps": _source(CONFIG_MAPS, ConfigMap),
    "deployments.apps": _source(DEPLOYMENTS, Deployment),
    "replicasets.apps": _source(REPLICASETS, ReplicaSet),
    "statefulsets.apps": _source(STATEFULSETS, StatefulSet),
    "controllerrevisions.apps": _source(REVISIONS, ControllerRevision),
    "endpointslices.discovery.k8s.io": _source(SLICES, EndpointSlice),
}
"""By the resource part of store keys."""
