"""Pods as endpoints of a Service: which are in, at which ports, in which condition. Pure."""

from __future__ import annotations

from isthmus.controllers.families import IPV4, family_of
from isthmus.controllers.pods import is_finished, is_ready
from isthmus.engine import View, query
from isthmus.mesh.tables import NODES, PODS, SERVICES
from isthmus.model.core import Pod, Service, ServicePort
from isthmus.model.discovery import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    ForZone,
)
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Reference

ZONE = "topology.kubernetes.io/zone"
HEADLESS = "service.kubernetes.io/headless"
SAME_ZONE = ("PreferClose", "PreferSameZone")
"""Values of spec.trafficDistribution that hint every endpoint to its own zone."""


def is_headless(service: Service) -> bool:
    """Known by its endpoints' addresses alone."""
    return service.spec.cluster_ip == "None"


def families_of(service: Service) -> tuple[str, ...]:
    """The address types that the Service has slices for."""
    if service.spec.ip_families:
        return service.spec.ip_families
    return tuple(filter(None, (family_of(service.spec.cluster_ip),))) or (IPV4,)


def address_of(pod: Pod, family: str) -> str:
    """The pod's address of one family, "" if it has none."""
    return next((ip for ip in pod.status.ips if family_of(ip) == family), "")


def ports_of(service: Service, pod: Pod) -> tuple[EndpointPort, ...]:
    """The Service's ports on this pod; a named port that it does not have is left out."""
    found = []
    for port in service.spec.ports:
        number = _number(port, pod)
        if number:
            found.append(EndpointPort(port.name, port.protocol, number, port.app_protocol))
    return tuple(found)


def _number(port: ServicePort, pod: Pod) -> int:
    match port.target_port:
        case None | 0 | "":
            return port.port
        case int() as number:
            return number
        case name:
            return _declared(name, port.protocol, pod)


def _declared(name: str, protocol: str, pod: Pod) -> int:
    sidecars = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.name == name and port.protocol == protocol:
                return port.container_port
    return 0


@query
def zone_of(db: View, node: ObjectKey) -> str:
    """The zone that a node's label names, "" if there is none."""
    row = NODES.get(db, node)
    return row.metadata.labels.get(ZONE, "") if row is not None else ""


@query
def endpoint(db: View, service: ObjectKey, pod: ObjectKey, family: str) -> Endpoint | None:
    """One pod as one endpoint; None if it has no address of the family, or has ended."""
    row, of = PODS.get(db, pod), SERVICES.get(db, service)
    if row is None or of is None or is_finished(row):
        return None
    address = address_of(row, family)
    if not address:
        return None
    serving, leaving = is_ready(row), bool(row.metadata.deletion_timestamp)
    ready = of.spec.publish_not_ready_addresses or (serving and not leaving)
    node = row.spec.node_name
    zone = zone_of(db, ObjectKey(pod.cluster, "", node)) if node else ""
    hinted = ready and zone and of.spec.traffic_distribution in SAME_ZONE
    return Endpoint(
        addresses=(address,),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=leaving),
        hostname=row.spec.hostname if row.spec.subdomain == service.name else "",
        node_name=node,
        zone=zone,
        target_ref=reference(row, pod),
        hints=EndpointHints(for_zones=(ForZone(name=zone),)) if hinted else None,
    )


def reference(row: Pod, key: ObjectKey) -> Reference:
    """The pod as the target of an endpoint."""
    return Reference(kind="Pod", namespace=key.namespace, name=key.name, uid=row.metadata.uid)
