"""Slices for Endpoints that people and other programs write: Services without selectors."""

from __future__ import annotations

from collections import defaultdict

from isthmus.controllers.families import family_of
from isthmus.controllers.listing import merged
from isthmus.controllers.packing import Group
from isthmus.controllers.pods import lives
from isthmus.controllers.slices import MANAGED_BY, Target, managed, reference, write
from isthmus.controllers.steps import Plan
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import ENDPOINTS, SERVICE_NAME, SERVICES
from isthmus.model.core import Endpoints
from isthmus.model.core import endpoints as core
from isthmus.model.discovery import Endpoint, EndpointConditions, EndpointPort
from isthmus.model.key import ObjectKey

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""Endpoints that only carry an election are no endpoints."""

NOT_COPIED = frozenset(
    {
        "endpoints.kubernetes.io/last-change-trigger-time",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
MOST = 1000
"""Addresses mirrored from one subset (Kubernetes: --mirroring-max-endpoints-per-subset)."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name that a Service or an Endpoints of a namespace has."""
    return merged(SERVICES.names(db, where), ENDPOINTS.names(db, where))


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Slices that say what the Endpoints say, with their labels and annotations."""
    if not lives(db, key):
        return ()
    held, row = managed(db, key, MANAGER), ENDPOINTS.get(db, key)
    if row is None or not _mirrored(db, key, row):
        return write(db, Target(key, {"uid": ""}, {}, {}, MANAGER), {}, held)
    labels = {
        name: text
        for name, text in row.metadata.labels.items()
        if name not in (SERVICE_NAME, MANAGED_BY)
    }
    annotations = {n: v for n, v in row.metadata.annotations.items() if n not in NOT_COPIED}
    owner = reference("v1", "Endpoints", key.name, row.metadata.uid)
    return write(db, Target(key, owner, labels, annotations, MANAGER), _groups(row), held)


def _mirrored(db: View, key: ObjectKey, row: Endpoints) -> bool:
    service, meta = SERVICES.get(db, key), row.metadata
    wanted = meta.labels.get(SKIP) != "true" and LEADER not in meta.annotations
    return (
        service is not None
        and not service.spec.selector
        and not service.metadata.deletion_timestamp
        and not meta.deletion_timestamp
        and wanted
    )


def _groups(row: Endpoints) -> dict[Group, list[Endpoint]]:
    groups: defaultdict[Group, list[Endpoint]] = defaultdict(list)
    for subset in row.subsets:
        ports = tuple(_port(one) for one in subset.ports)
        ready = [(one, True) for one in subset.addresses]
        every = [*ready, *((one, False) for one in subset.not_ready_addresses)]
        for address, is_ready in every[:MOST]:
            if family := family_of(address.ip):
                groups[Group(family, ports)].append(_endpoint(address, ready=is_ready))
    return dict(groups)


def _port(port: core.EndpointPort) -> EndpointPort:
    return EndpointPort(
        name=port.name, protocol=port.protocol, port=port.port, app_protocol=port.app_protocol
    )


def _endpoint(address: core.EndpointAddress, *, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=(address.ip,),
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )
