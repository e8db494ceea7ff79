"""EndpointSlices of ExternalWorkloads that Services select (Linkerd's external-workload rules)."""

from __future__ import annotations

from collections import defaultdict

from isthmus.controllers.addressing import HEADLESS, ZONE, is_headless
from isthmus.controllers.families import IPV4, IPV6, family_of
from isthmus.controllers.packing import Group
from isthmus.controllers.pods import lives
from isthmus.controllers.slices import RESERVED, Target, managed, reference, write
from isthmus.controllers.steps import Plan
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS, SERVICE_WORKLOADS
from isthmus.mesh.tables import SERVICES
from isthmus.model.core import Service, ServicePort
from isthmus.model.discovery import Endpoint, EndpointConditions, EndpointPort
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Reference
from isthmus.model.workload import LEAVING, ExternalWorkload

MANAGER = "linkerd-external-workloads-controller"
BEFORE = "linkerd-external-"
SKIPPED = "kube-system"
"""A namespace whose Services have no machines outside."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Service of a namespace."""
    return SERVICES.names(db, where) if where.namespace != SKIPPED else ()


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Slices to create, change and delete so that they say what the Service's workloads are."""
    row = SERVICES.get(db, key)
    if row is None or row.metadata.deletion_timestamp or not lives(db, key):
        return ()
    labels = {name: text for name, text in row.metadata.labels.items() if name not in RESERVED}
    if is_headless(row):
        labels[HEADLESS] = ""
    owner = reference("v1", "Service", key.name, row.metadata.uid)
    target = Target(key, owner, labels, {}, MANAGER, BEFORE)
    return write(db, target, _groups(db, key, row), managed(db, key, MANAGER))


def _groups(db: View, key: ObjectKey, row: Service) -> dict[Group, list[Endpoint]]:
    groups: defaultdict[Group, list[Endpoint]] = defaultdict(list)
    for member in SERVICE_WORKLOADS.members(db, key):
        workload = EXTERNAL_WORKLOADS.get(db, member)
        if workload is None:
            continue
        ports = ports_of(row, workload)
        for family in families_of(row):
            address = address_of(workload, family)
            if address:
                found = _endpoint(member, workload, address, headless=is_headless(row))
                groups[Group(family, ports)].append(found)
    return dict(groups)


def families_of(row: Service) -> tuple[str, ...]:
    """The address types that the Service has slices for; both where a headless one says nothing."""
    if row.spec.ip_families:
        return row.spec.ip_families
    if is_headless(row):
        return (IPV4, IPV6)
    return (family_of(row.spec.cluster_ip) or IPV4,)


def address_of(workload: ExternalWorkload, family: str) -> str:
    """The workload's address of one family, "" if it has none."""
    ips = (each.ip for each in workload.spec.workload_ips)
    return next((ip for ip in ips if family_of(ip) == family), "")


def ports_of(row: Service, workload: ExternalWorkload) -> tuple[EndpointPort, ...]:
    """The Service's ports on this workload; one that the workload does not declare is left out."""
    found = ((port, _number(port, workload)) for port in row.spec.ports)
    return tuple(
        EndpointPort(port.name, port.protocol, number, port.app_protocol)
        for port, number in found
        if number
    )


def _number(port: ServicePort, workload: ExternalWorkload) -> int:
    wanted = port.target_port or port.port
    for each in workload.spec.ports:
        if each.protocol == port.protocol and wanted in (each.port, each.name):
            return each.port
    return 0


def _endpoint(
    key: ObjectKey, workload: ExternalWorkload, address: str, *, headless: bool
) -> Endpoint:
    serving, leaving = workload.status.says("Ready"), workload.status.says(LEAVING)
    uid = workload.metadata.uid
    return Endpoint(
        addresses=(address,),
        conditions=EndpointConditions(
            ready=serving and not leaving, serving=serving, terminating=leaving
        ),
        hostname=key.name if headless else "",
        zone=workload.metadata.labels.get(ZONE, ""),
        target_ref=Reference(
            kind="ExternalWorkload", namespace=key.namespace, name=key.name, uid=uid
        ),
    )
