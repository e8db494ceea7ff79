"""Endpoints of Services with selectors, for clients older than EndpointSlices."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from isthmus.controllers.addressing import (
    HEADLESS,
    address_of,
    families_of,
    is_headless,
    ports_of,
    reference,
)
from isthmus.controllers.listing import merged
from isthmus.controllers.pods import is_finished, is_ready, lives
from isthmus.controllers.slices import port_document
from isthmus.controllers.steps import (
    JSON,
    Create,
    Delete,
    Plan,
    Update,
    canonical,
    drop_empty,
    mapping_patch,
)
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import ENDPOINTS, PODS, SERVICE_PODS, SERVICES
from isthmus.model.core import Endpoints, Pod, Service
from isthmus.model.core.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from isthmus.model.key import ObjectKey

RESOURCE = "endpoints"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MOST = 1000
"""Addresses in one Endpoints object (Kubernetes' limit); slices hold all."""

Ports = tuple[EndpointPort, ...]


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name that a Service or an Endpoints of a namespace has."""
    return merged(SERVICES.names(db, where), ENDPOINTS.names(db, where))


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The Endpoints object to create, change or delete."""
    if not lives(db, key):
        return ()
    row, held = SERVICES.get(db, key), ENDPOINTS.get(db, key)
    if row is None:
        ours = held is not None and held.metadata.labels.get(MANAGED_BY) == MANAGER
        if held is None or not ours or held.metadata.deletion_timestamp:
            return ()
        return (Delete(RESOURCE, key.namespace, key.name, held.metadata.uid),)
    if not row.spec.selector or row.spec.type == "ExternalName" or row.metadata.deletion_timestamp:
        return ()
    subsets, over = _subsets(db, key, row)
    labels = {name: text for name, text in row.metadata.labels.items() if name != HEADLESS}
    labels |= {MANAGED_BY: MANAGER} | ({HEADLESS: ""} if is_headless(row) else {})
    if held is None:
        return (_birth(key, labels, subsets, over=over),)
    return _changed(key, held, labels, subsets, over=over)


def _subsets(db: View, key: ObjectKey, row: Service) -> tuple[tuple[EndpointSubset, ...], bool]:
    """Addresses by ports; and whether there were more than MOST."""
    ready: defaultdict[Ports, list[EndpointAddress]] = defaultdict(list)
    unready: defaultdict[Ports, list[EndpointAddress]] = defaultdict(list)
    family, publish = families_of(row)[0], row.spec.publish_not_ready_addresses
    for pod_key in SERVICE_PODS.members(db, key):
        pod = PODS.get(db, pod_key)
        if pod is None or is_finished(pod) or (pod.metadata.deletion_timestamp and not publish):
            continue
        address, ports = _address(pod, pod_key, key, family), _ports(row, pod)
        if address is not None and (ports or not row.spec.ports):
            (ready if publish or is_ready(pod) else unready)[ports].append(address)
    over = sum(map(len, (*ready.values(), *unready.values()))) > MOST
    room = MOST
    for addresses in (*ready.values(), *unready.values()):
        addresses.sort(key=lambda one: one.ip)
        del addresses[room:]
        room -= len(addresses)
    return tuple(
        EndpointSubset(tuple(ready.get(ports, ())), tuple(unready.get(ports, ())), ports)
        for ports in sorted({*ready, *unready}, key=repr)
        if ready.get(ports) or unready.get(ports)
    ), over


def _ports(row: Service, pod: Pod) -> Ports:
    return tuple(
        EndpointPort(
            name=port.name, protocol=port.protocol, port=port.port, app_protocol=port.app_protocol
        )
        for port in ports_of(row, pod)
    )


def _address(
    pod: Pod, pod_key: ObjectKey, service: ObjectKey, family: str
) -> EndpointAddress | None:
    ip = address_of(pod, family)
    if not ip:
        return None
    hostname = pod.spec.hostname if pod.spec.subdomain == service.name else ""
    return EndpointAddress(ip, hostname, pod.spec.node_name, reference(pod, pod_key))


def _birth(
    key: ObjectKey, labels: dict[str, str], subsets: tuple[EndpointSubset, ...], *, over: bool
) -> Create:
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": labels,
        "annotations": {OVER_CAPACITY: "truncated"} if over else {},
    }
    document = {"apiVersion": "v1", "kind": "Endpoints", "metadata": drop_empty(metadata)}
    document |= {"subsets": [_document(one) for one in subsets]}
    return Create(RESOURCE, key.namespace, key.name, canonical(drop_empty(document)))


def _changed(
    key: ObjectKey,
    held: Endpoints,
    labels: dict[str, str],
    subsets: tuple[EndpointSubset, ...],
    *,
    over: bool,
) -> Plan:
    merge: dict[str, JSON] = {}
    if held.subsets != subsets:
        merge["subsets"] = [_document(one) for one in subsets] or None
    metadata: dict[str, JSON] = {"labels": mapping_patch(held.metadata.labels, labels)}
    if (OVER_CAPACITY in held.metadata.annotations) != over:
        metadata["annotations"] = {OVER_CAPACITY: "truncated" if over else None}
    if changed := drop_empty(metadata):
        merge["metadata"] = changed
    if not merge:
        return ()
    return (Update(RESOURCE, key.namespace, key.name, held.metadata.uid, canonical(merge)),)


def _document(subset: EndpointSubset) -> JSON:
    return drop_empty(
        {
            "addresses": [msgspec.to_builtins(one) for one in subset.addresses],
            "notReadyAddresses": [msgspec.to_builtins(one) for one in subset.not_ready_addresses],
            "ports": [port_document(port) for port in subset.ports],
        }
    )
