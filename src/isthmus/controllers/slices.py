"""EndpointSlices of Services with selectors, and the writing of slices that mirroring shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from isthmus.controllers.addressing import HEADLESS, endpoint, families_of, is_headless, ports_of
from isthmus.controllers.claims import controller_uid
from isthmus.controllers.names import child
from isthmus.controllers.packing import Content, Group, pack
from isthmus.controllers.pods import lives
from isthmus.controllers.steps import (
    JSON,
    Create,
    Delete,
    Plan,
    Step,
    Update,
    canonical,
    drop_empty,
    mapping_patch,
)
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.tables import (
    PODS,
    SERVICE_NAME,
    SERVICE_PODS,
    SERVICES,
    SLICES,
    SLICES_BY_SERVICE,
)
from isthmus.model.core import Service
from isthmus.model.core import endpoints as core
from isthmus.model.discovery import Endpoint, EndpointPort, EndpointSlice
from isthmus.model.key import ObjectKey

RESOURCE = "endpointslices.discovery.k8s.io"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
RESERVED = frozenset({SERVICE_NAME, MANAGED_BY, HEADLESS})
"""Labels of a Service that its slices do not take over."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Service of a namespace."""
    return SERVICES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Slices to create, change and delete so that they say what the Service's pods are."""
    row = SERVICES.get(db, key)
    if row is None or row.metadata.deletion_timestamp or not lives(db, key):
        return ()
    held = managed(db, key, MANAGER)
    if not row.spec.selector or row.spec.type == "ExternalName":
        # Whoever took the selector away writes the endpoints from now on.
        return tuple(_death(key, name, one) for name, one in held.items())
    labels = {name: text for name, text in row.metadata.labels.items() if name not in RESERVED}
    if is_headless(row):
        labels[HEADLESS] = ""
    owner = reference("v1", "Service", key.name, row.metadata.uid)
    target = Target(key, owner, labels, {}, MANAGER)
    return write(db, target, _groups(db, key, row), held)


def _groups(db: View, key: ObjectKey, row: Service) -> dict[Group, list[Endpoint]]:
    groups: defaultdict[Group, list[Endpoint]] = defaultdict(list)
    for pod_key in SERVICE_PODS.members(db, key):
        pod = PODS.get(db, pod_key)
        for family in families_of(row) if pod is not None else ():
            found = endpoint(db, key, pod_key, family)
            if pod is not None and found is not None:
                groups[Group(family, ports_of(row, pod))].append(found)
    for family in families_of(row):
        if all(group.family != family for group in groups):
            groups[Group(family, ())] = []
    return dict(groups)


# ------------------------------------------------------------ writing slices


class Target(NamedTuple):
    """Whose slices are written, what they carry, and who writes them.

    `before` stands before the Service's name in the names of slices.
    """

    service: ObjectKey
    owner: Mapping[str, JSON]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    manager: str
    before: str = ""

    @property
    def stem(self) -> str:
        """What the slices' names begin with."""
        return f"{self.before}{self.service.name}"

    @property
    def all_labels(self) -> dict[str, str]:
        """The labels, with those that say whose the slice is."""
        return {**self.labels, SERVICE_NAME: self.service.name, MANAGED_BY: self.manager}


def reference(api_version: str, kind: str, name: str, uid: str) -> dict[str, JSON]:
    """The owner reference of a slice."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def managed(db: View, service: ObjectKey, manager: str) -> dict[str, EndpointSlice]:
    """The Service's slices that `manager` writes and nobody has deleted, by name."""
    found = ((key, SLICES.get(db, key)) for key in SLICES_BY_SERVICE.get(db, service))
    return {
        key.name: row
        for key, row in found
        if row is not None
        and row.metadata.labels.get(MANAGED_BY) == manager
        and not row.metadata.deletion_timestamp
    }


def write(
    db: View,
    target: Target,
    groups: Mapping[Group, Sequence[Endpoint]],
    held: Mapping[str, EndpointSlice],
) -> Plan:
    """The difference between the slices that are and those that should be."""
    own = {n: one for n, one in held.items() if controller_uid(one.metadata) == target.owner["uid"]}
    packed = pack(groups, own)
    steps: list[Step] = []
    taken: set[str] = set()
    for content in packed.slices:
        if content.name:
            steps += _changed(target, content, own[content.name])
        else:
            steps.append(_birth(db, target, content, taken))
    foreign = held.keys() - own.keys()  # of an owner before this one
    gone = sorted({*packed.surplus, *foreign})
    steps += [_death(target.service, name, held[name]) for name in gone]
    return tuple(steps)


def _death(service: ObjectKey, name: str, row: EndpointSlice) -> Delete:
    return Delete(RESOURCE, service.namespace, name, row.metadata.uid)


def _birth(db: View, target: Target, content: Content, taken: set[str]) -> Create:
    service = target.service
    name = _free_name(db, target, content.group, taken)
    taken.add(name)
    metadata = {
        "name": name,
        "generateName": f"{target.stem}-",
        "namespace": service.namespace,
        "labels": target.all_labels,
        "annotations": dict(target.annotations),
        "ownerReferences": [dict(target.owner)],
    }
    document = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": drop_empty(metadata),
        "addressType": content.group.family,
        **_body(content),
    }
    return Create(RESOURCE, service.namespace, name, canonical(document))


def _free_name(db: View, target: Target, group: Group, taken: set[str]) -> str:
    service, tried = target.service, 0
    while True:
        parts = (str(target.owner["uid"]), target.manager, group.family, str(tried))
        name = child(target.stem, *parts)
        if name not in taken and SLICES.get(db, service._replace(name=name)) is None:
            return name
        tried += 1


def _changed(target: Target, content: Content, row: EndpointSlice) -> list[Update]:
    merge: dict[str, JSON] = {}
    if row.endpoints != content.endpoints or row.ports != content.group.ports:
        merge |= _body(content)
    metadata = {
        "labels": mapping_patch(row.metadata.labels, target.all_labels),
        "annotations": mapping_patch(row.metadata.annotations, target.annotations),
    }
    if changed := drop_empty(metadata):
        merge["metadata"] = changed
    if not merge:
        return []
    service, uid = target.service, row.metadata.uid
    return [Update(RESOURCE, service.namespace, content.name, uid, canonical(merge))]


def _body(content: Content) -> dict[str, JSON]:
    return {
        "endpoints": [msgspec.to_builtins(one) for one in content.endpoints],
        "ports": [port_document(port) for port in content.group.ports],
    }


def port_document(port: EndpointPort | core.EndpointPort) -> dict[str, JSON]:
    """A port with everything that readers look for, also where it is the default."""
    document: dict[str, JSON] = {"name": port.name, "protocol": port.protocol, "port": port.port}
    return document | ({"appProtocol": port.app_protocol} if port.app_protocol else {})
