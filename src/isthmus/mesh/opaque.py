"""Opaque ports: whose session is not looked at. One query for every side (decision 2).

What is declared beats the default list: an annotation beats everything, then what the port's
`appProtocol` or a route on it says. Servers can only add opaque ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.policy_tables import (
    EXTERNAL_WORKLOADS,
    SERVER_PODS,
    SERVER_WORKLOADS,
    SERVERS,
    SERVICE_WORKLOADS,
)
from isthmus.mesh.routes import declares_protocol
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import PODS, SERVICE_PODS, SERVICES
from isthmus.model.annotations import Ports
from isthmus.model.annotations.keys import OPAQUE_PORTS
from isthmus.model.core import Pod
from isthmus.model.key import ObjectKey

Ranges = tuple[tuple[int, int], ...]

DECLARED: Final = frozenset({"http", "kubernetes.io/ws", "kubernetes.io/h2c", "grpc"})
"""Values of `appProtocol` that name a protocol the mesh speaks; any other one means opaque."""

_MOST: Final = 4096
"""Items of one list that are looked at."""


class OfService(msgspec.Struct, frozen=True):
    """A Service's port, as its clients dial it."""

    service: ObjectKey
    port: int


class OfPod(msgspec.Struct, frozen=True):
    """A port of a pod: a container's, or one of its host that leads there."""

    pod: ObjectKey
    port: int


class OfWorkload(msgspec.Struct, frozen=True):
    """A port of an ExternalWorkload."""

    workload: ObjectKey
    port: int


class OfNobody(msgspec.Struct, frozen=True):
    """A port of an address that the mesh does not know."""

    port: int


Where = OfService | OfPod | OfWorkload | OfNobody


@query
def opaque(db: View, where: Where) -> bool:
    """Whether the port is opaque."""
    match where:
        case OfService(service, port):
            return _service(db, service, port)
        case OfPod(pod, port):
            return _pod(db, pod, port)
        case OfWorkload(workload, port):
            return _workload(db, workload, port)
        case OfNobody(port):
            return _by_default(db, port)


@query
def service_opaque_ports(db: View, service: ObjectKey) -> Ranges | None:
    """What a Service's annotation says; names are those of its ports. None without annotation."""
    row = SERVICES.get(db, service)
    if row is None:
        return None
    named = ((port.name, port.port) for port in row.spec.ports)
    return annotated(row.metadata.annotations, named)


@query
def pod_opaque_ports(db: View, pod: ObjectKey) -> Ranges | None:
    """What a pod's annotation says; names are those of its containers' ports."""
    row = PODS.get(db, pod)
    if row is None:
        return None
    return annotated(row.metadata.annotations, ((name, at) for name, at, _ in _ports(row)))


@query
def workload_opaque_ports(db: View, workload: ObjectKey) -> Ranges | None:
    """What an ExternalWorkload's annotation says; names are those of its ports."""
    row = EXTERNAL_WORKLOADS.get(db, workload)
    if row is None:
        return None
    return annotated(row.metadata.annotations, ((port.name, port.port) for port in row.spec.ports))


def annotated(
    annotations: Mapping[str, str], named: Iterable[tuple[str, int]], key: str = OPAQUE_PORTS
) -> Ranges | None:
    """The ports of an annotation that lists them; None if there is no such annotation.

    A name wins over a number or range of the same spelling; what is neither is passed over.
    """
    text = annotations.get(key)
    if text is None:
        return None
    names: dict[str, list[int]] = {}
    for name, port in named:
        names.setdefault(name, []).append(port)
    found: set[tuple[int, int]] = set()
    for item in filter(None, map(str.strip, text.split(",", _MOST)[:_MOST])):
        if item in names:
            found.update((port, port) for port in names[item])
        else:
            found.update(_range(item))
    return tuple(sorted(found))


def _range(item: str) -> Iterable[tuple[int, int]]:
    low, dash, high = (part.strip() for part in item.partition("-"))
    first, last = _number(low), _number(high if dash else low)
    if first is not None and last is not None and first <= last:
        yield first, last


def _number(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535
    return int(text) if fits else None


def holds(ranges: Ranges, port: int) -> bool:
    """Whether a port is in one of the ranges."""
    return Ports(ranges).holds(port)


# ------------------------------------------------------------------------------ by kind


def _service(db: View, service: ObjectKey, port: int) -> bool:
    listed = service_opaque_ports(db, service)
    if listed is not None:
        return holds(listed, port)
    declared = service_declares(db, service, port)
    return _by_default(db, port) if declared is None else declared


@query
def service_declares(db: View, service: ObjectKey, port: int) -> bool | None:
    """Whether what is declared of a Service's port makes it opaque; None if nothing is."""
    row = SERVICES.get(db, service)
    if row is None:
        return None
    said = [each.app_protocol.lower() for each in row.spec.ports if each.port == port]
    if any(said):
        return not DECLARED.intersection(said)
    return False if declares_protocol(db, service, port) else None


def _pod(db: View, pod: ObjectKey, port: int) -> bool:
    listed = pod_opaque_ports(db, pod)
    if listed is not None and holds(listed, port):
        return True
    if listed is None and _by_default(db, port) and not _pod_declared(db, pod, port):
        return True
    return any(
        _server(db, server, pod_port_names(db, pod, port), port)
        for server in SERVER_PODS.selectors(db, pod)
    )


def _workload(db: View, workload: ObjectKey, port: int) -> bool:
    listed = workload_opaque_ports(db, workload)
    if listed is not None and holds(listed, port):
        return True
    if listed is None and _by_default(db, port) and not _workload_declared(db, workload, port):
        return True
    names = workload_port_names(db, workload, port)
    return any(
        _server(db, server, names, port) for server in SERVER_WORKLOADS.selectors(db, workload)
    )


def _by_default(db: View, port: int) -> bool:
    return settings(db).default_opaque_ports.holds(port)


@query
def opaque_server_port(db: View, server: ObjectKey) -> int | str | None:
    """The port that a Server declares opaque, None if it declares none so."""
    row = SERVERS.get(db, server)
    return row.spec.port if row is not None and row.spec.proxy_protocol == "opaque" else None


def _server(db: View, server: ObjectKey, names: tuple[str, ...], port: int) -> bool:
    said = opaque_server_port(db, server)
    return said == port or said in names


def _pod_declared(db: View, pod: ObjectKey, port: int) -> bool:
    """Whether a Service that leads to this port declares a protocol for it."""
    names = pod_port_names(db, pod, port)
    services = SERVICE_PODS.selectors(db, pod)
    return any(leads_declared(db, service, port, names) for service in services)


def _workload_declared(db: View, workload: ObjectKey, port: int) -> bool:
    names = workload_port_names(db, workload, port)
    services = SERVICE_WORKLOADS.selectors(db, workload)
    return any(leads_declared(db, service, port, names) for service in services)


@query
def leads_declared(db: View, service: ObjectKey, port: int, names: tuple[str, ...]) -> bool:
    """Whether a Service leads to a port (of these names) of its members and declares a protocol."""
    row = SERVICES.get(db, service)
    return row is not None and any(
        service_declares(db, service, each.port) is False
        for each in row.spec.ports
        if (each.target_port or each.port) == port or each.target_port in names
    )


@query
def pod_port_names(db: View, pod: ObjectKey, port: int) -> tuple[str, ...]:
    """What a pod calls a port, by the container's number or by the host's."""
    row = PODS.get(db, pod)
    found = _ports(row) if row is not None else ()
    return tuple(sorted({name for name, at, host in found if port in (at, host)}))


@query
def workload_port_names(db: View, workload: ObjectKey, port: int) -> tuple[str, ...]:
    """What an ExternalWorkload calls a port."""
    row = EXTERNAL_WORKLOADS.get(db, workload)
    ports = row.spec.ports if row is not None else ()
    return tuple(sorted({each.name for each in ports if each.name and each.port == port}))


def _ports(row: Pod) -> Iterable[tuple[str, int, int]]:
    """(name, container port, host port) of named ports, those of init containers too."""
    return (
        (port.name, port.container_port, port.host_port)
        for container in (*row.spec.init_containers, *row.spec.containers)
        for port in container.ports
        if port.name
    )
