"""Workloads as proxies run beside them: pods and ExternalWorkloads, seen alike.

What people say in annotations of the workload wins over what they say of its namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.identity import parse_identity
from isthmus.ir.names import Identity, Ref
from isthmus.mesh.opaque import OfPod, OfWorkload, opaque, pod_port_names, workload_port_names
from isthmus.mesh.pods import pod_facts, pod_node
from isthmus.mesh.policy_tables import (
    EXTERNAL_WORKLOADS,
    SERVER_PODS,
    SERVER_WORKLOADS,
    SERVERS,
    SERVICE_WORKLOADS,
)
from isthmus.mesh.tables import NAMESPACES, PODS, SERVICE_PODS, SERVICES
from isthmus.model.core import Container, Pod
from isthmus.model.core.pod import HTTPGet
from isthmus.model.key import ObjectKey

EXTERNAL: Final = "workload.linkerd.io"
_LARGEST: Final = 65535


def pod_ref(pod: ObjectKey) -> Ref:
    """A pod as a workload."""
    return Ref(pod.cluster, "", "Pod", pod.namespace, pod.name)


def external_ref(workload: ObjectKey) -> Ref:
    """An ExternalWorkload as a workload."""
    return Ref(workload.cluster, EXTERNAL, "ExternalWorkload", workload.namespace, workload.name)


def workload_key(workload: Ref) -> ObjectKey:
    """Where a workload is found."""
    return ObjectKey(workload.cluster, workload.namespace, workload.name)


def is_pod(workload: Ref) -> bool:
    """Whether it is a pod; else it is an ExternalWorkload."""
    return workload.kind == "Pod"


@query
def note(db: View, workload: Ref, key: str) -> str | None:
    """An annotation of a workload, or else of its namespace; None if neither has it."""
    own = workload_key(workload)
    row = (PODS if is_pod(workload) else EXTERNAL_WORKLOADS).get(db, own)
    if row is None:
        return None
    said = row.metadata.annotations.get(key)
    return said if said is not None else namespace_note(db, workload.cluster, own.namespace, key)


@query
def namespace_note(db: View, cluster: str, namespace: str, key: str) -> str | None:
    """An annotation of a namespace."""
    row = NAMESPACES.get(db, ObjectKey(cluster, "", namespace))
    return row.metadata.annotations.get(key) if row is not None else None


@query
def workload_identity(db: View, workload: Ref) -> Identity | None:
    """What a workload's certificate proves; None for one that is not there or not of this mesh."""
    if is_pod(workload):
        facts = pod_facts(db, workload_key(workload))
        proxied = facts is not None and facts.proxy is not None
        return parse_identity(facts.identity) if facts is not None and proxied else None
    row = EXTERNAL_WORKLOADS.get(db, workload_key(workload))
    return parse_identity(row.spec.mesh_tls.identity) if row is not None else None


@query
def behind_linkerd(db: View, workload: Ref) -> bool:
    """Whether a linkerd2-proxy stands before a workload; of machines outside nobody knows."""
    facts = pod_facts(db, workload_key(workload)) if is_pod(workload) else None
    return facts is not None and facts.proxy is not None and not facts.proxy.envoy


@query
def node_of(db: View, workload: Ref) -> str:
    """The node that a workload is on, "" where there is none."""
    return (pod_node(db, workload_key(workload)) or "") if is_pod(workload) else ""


@query
def is_opaque(db: View, workload: Ref, port: int) -> bool:
    """Whether a workload's port is opaque: the one query, for either kind."""
    key = workload_key(workload)
    return opaque(db, OfPod(key, port) if is_pod(workload) else OfWorkload(key, port))


@query
def port_names(db: View, workload: Ref, port: int) -> tuple[str, ...]:
    """What a workload calls a port."""
    key = workload_key(workload)
    return pod_port_names(db, key, port) if is_pod(workload) else workload_port_names(db, key, port)


@query
def servers_on(db: View, workload: Ref) -> tuple[ObjectKey, ...]:
    """The Servers that select a workload."""
    key = workload_key(workload)
    if is_pod(workload):
        return SERVER_PODS.selectors(db, key)
    return SERVER_WORKLOADS.selectors(db, key)


# --------------------------------------------------------------------------------- ports


@query
def own_ports(db: View, workload: Ref) -> tuple[tuple[str, int], ...]:
    """(name, number) of the TCP ports that a workload declares itself, its proxy's left out."""
    key = workload_key(workload)
    if not is_pod(workload):
        row = EXTERNAL_WORKLOADS.get(db, key)
        return tuple(sorted({(one.name, one.port) for one in row.spec.ports})) if row else ()
    pod = PODS.get(db, key)
    return tuple(sorted(set(_container_ports(pod)))) if pod is not None else ()


def _container_ports(pod: Pod) -> Iterator[tuple[str, int]]:
    for one in _application(pod):
        for port in one.ports:
            if port.protocol == "TCP" and 0 < port.container_port <= _LARGEST:
                yield port.name, port.container_port


def _application(pod: Pod) -> Iterable[Container]:
    """Every container but the sidecar's."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return (one for one in containers if one.name != "linkerd-proxy")


@query
def led_ports(db: View, service: ObjectKey) -> tuple[int | str, ...]:
    """The ports of its members that a Service leads to, as numbers or names."""
    row = SERVICES.get(db, service)
    listed = [each for each in row.spec.ports if each.protocol == "TCP"] if row is not None else []
    found = {each.target_port or each.port for each in listed}
    return tuple(sorted(found, key=lambda port: (isinstance(port, str), str(port))))


@query
def known_ports(db: View, workload: Ref) -> tuple[int, ...]:
    """Every port of a workload that somebody spoke of: containers, Services, Servers, probes."""
    own = own_ports(db, workload)
    found = {number for _, number in own}
    key = workload_key(workload)
    services = (SERVICE_PODS if is_pod(workload) else SERVICE_WORKLOADS).selectors(db, key)
    led = [port for service in services for port in led_ports(db, service)]
    found.update(port for port in led if isinstance(port, int))
    found.update(port for port, _ in probes(db, workload))
    found.update(
        port
        for server in servers_on(db, workload)
        if isinstance(port := server_port(db, server), int)
    )
    return tuple(sorted(port for port in found if 0 < port <= _LARGEST))


@query
def server_port(db: View, server: ObjectKey) -> int | str | None:
    """The port that a Server is about."""
    row = SERVERS.get(db, server)
    return row.spec.port if row is not None else None


# -------------------------------------------------------------------------------- probes


@query
def probes(db: View, workload: Ref) -> tuple[tuple[int, str], ...]:
    """(port, path) of the HTTP probes of a pod's containers, sorted."""
    if not is_pod(workload):
        return ()
    pod = PODS.get(db, workload_key(workload))
    return tuple(sorted(set(_probes(pod)))) if pod is not None else ()


def _probes(pod: Pod) -> Iterator[tuple[int, str]]:
    for one in _application(pod):
        for probe in (one.liveness_probe, one.readiness_probe, one.startup_probe):
            if probe is None or probe.http_get is None:
                continue
            port = _probe_port(one, probe.http_get)
            if 0 < port <= _LARGEST:
                path = probe.http_get.path.partition("?")[0].partition("#")[0]
                yield port, path if path.startswith("/") else f"/{path}"


def _probe_port(container: Container, probe: HTTPGet) -> int:
    """The number; a name is looked for among the container's own ports, in any case."""
    if isinstance(probe.port, int):
        return probe.port
    wanted = probe.port.lower()
    named = (one.container_port for one in container.ports if one.name.lower() == wanted)
    return next(named, 0)
