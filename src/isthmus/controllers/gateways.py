"""What a mirror's Endpoints say where clients go through a gateway (facts of a Link, as cells)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from isthmus.controllers.copied import Keys
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
from isthmus.mesh.candidates import GATEWAY_IDENTITY
from isthmus.mesh.exports import GATEWAY_NAMES
from isthmus.mesh.links import LINK_HEALTH, LINKS
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.tables import ENDPOINTS, SERVICES, SLICES, SLICES_BY_SERVICE
from isthmus.model.core import Endpoints
from isthmus.model.core.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from isthmus.model.core.service import ServicePort
from isthmus.model.key import ObjectKey

RESOURCE: Final = "endpoints"


class Gateway(msgspec.Struct, frozen=True):
    """The gateway of a linked cluster.

    `addresses` are sorted as text. `open` while a name among them was not asked for yet. `port` is
    0 if it is none. `alive` is what probes say; before the first answer it is assumed.
    """

    addresses: tuple[str, ...]
    open: bool
    port: int
    identity: str
    alive: bool


@query
def gateway(db: View, link: ObjectKey) -> Gateway | None:
    """The gateway of a Link; None if it has none."""
    row = LINKS.get(db, link)
    if row is None or not row.spec.gateway_address:
        return None
    named = [part.strip() for part in row.spec.gateway_address.split(",")]
    found = [_addresses(db, part) for part in named if part]
    health = LINK_HEALTH.get(db, link)
    return Gateway(
        addresses=tuple(sorted({ip for each in found for ip in each or ()})),
        open=None in found,
        port=_port(row.spec.gateway_port),
        identity=row.spec.gateway_identity,
        alive=health is None or health.gateway_alive is not False,
    )


def _addresses(db: View, part: str) -> tuple[str, ...] | None:
    ip = canonical_ip(part)
    return (ip,) if ip is not None else GATEWAY_NAMES.get(db, part)


def _port(said: str) -> int:
    port = int(said) if re.fullmatch(r"[0-9]{1,5}", said) else 0
    return port if port <= 65535 else 0


@query
def serves(db: View, remote: ObjectKey) -> bool:
    """Whether a Service has an endpoint that is ready, on any port (linkerd2 #7520)."""
    return any(
        each.conditions.ready is not False
        for key in SLICES_BY_SERVICE.get(db, remote)
        if (row := SLICES.get(db, key)) is not None
        for each in row.endpoints
    )


class Subject(NamedTuple):
    """Whose Endpoints: the mirror, what it stands for, and the labels that both carry.

    `ports` are those of the remote Service. `ready`: whether it, or the host that is meant, has
    somebody.
    """

    mirror: ObjectKey
    link: ObjectKey
    labels: Mapping[str, str]
    notes: Mapping[str, str]
    ports: tuple[ServicePort, ...]
    ready: bool


def through_gateway(db: View, subject: Subject) -> Plan:
    """Endpoints that lead to the gateway, or nowhere while nobody is behind it."""
    found, held = gateway(db, subject.link), ENDPOINTS.get(db, subject.mirror)
    if found is None:
        return ()
    identity = {GATEWAY_IDENTITY: found.identity} if found.identity else {}
    subsets = _subsets(subject, found, held)
    return write(db, subject.mirror, Keys(subject.labels, {**subject.notes, **identity}), subsets)


def _subsets(
    subject: Subject, found: Gateway, held: Endpoints | None
) -> tuple[EndpointSubset, ...]:
    addresses = set(found.addresses)
    if found.open or not addresses:  # a name without an answer: what was known stays
        addresses.update(_known(held))
    if not subject.ready or not addresses:
        return ()
    some = tuple(EndpointAddress(ip=ip) for ip in sorted(addresses))
    ports = tuple(EndpointPort(each.name, each.protocol, found.port) for each in subject.ports)
    return (EndpointSubset(some if found.alive else (), () if found.alive else some, ports),)


def _known(held: Endpoints | None) -> Iterator[str]:
    for subset in held.subsets if held is not None else ():
        yield from (one.ip for one in (*subset.addresses, *subset.not_ready_addresses))


# ---------------------------------------------------------------------------------- writing


def write(db: View, mirror: ObjectKey, said: Keys, subsets: tuple[EndpointSubset, ...]) -> Plan:
    """The Endpoints of a mirror, which is there, to create or change; they go with it."""
    service, held = SERVICES.get(db, mirror), ENDPOINTS.get(db, mirror)
    if service is None:
        return ()
    owner = {"apiVersion": "v1", "kind": "Service", "name": mirror.name}
    owner["uid"] = service.metadata.uid
    if held is None:
        return (_birth(mirror, said, owner, subsets),)
    merge = _changes(held, said, owner, subsets)
    if not merge:
        return ()
    return (Update(RESOURCE, mirror.namespace, mirror.name, held.metadata.uid, canonical(merge)),)


def _birth(
    mirror: ObjectKey, said: Keys, owner: JSON, subsets: tuple[EndpointSubset, ...]
) -> Create:
    metadata: dict[str, JSON] = {"name": mirror.name, "namespace": mirror.namespace}
    metadata |= {"labels": dict(said.labels), "annotations": dict(said.annotations)}
    metadata["ownerReferences"] = [owner]
    document: dict[str, JSON] = {"apiVersion": "v1", "kind": "Endpoints"}
    document |= {"metadata": drop_empty(metadata), "subsets": [_document(one) for one in subsets]}
    return Create(RESOURCE, mirror.namespace, mirror.name, canonical(drop_empty(document)))


def _changes(
    held: Endpoints, said: Keys, owner: JSON, subsets: tuple[EndpointSubset, ...]
) -> dict[str, JSON]:
    now = held.metadata
    metadata: dict[str, JSON] = {
        "labels": mapping_patch(now.labels, said.labels),
        "annotations": mapping_patch(now.annotations, said.annotations),
    }
    if all(each.uid != owner["uid"] for each in now.owner_references):
        metadata["ownerReferences"] = [owner]
    merge = drop_empty({"metadata": drop_empty(metadata)})
    if held.subsets != subsets:
        merge["subsets"] = [_document(one) for one in subsets] or None
    return merge


def _document(subset: EndpointSubset) -> JSON:
    return drop_empty(
        {
            "addresses": [msgspec.to_builtins(one) for one in subset.addresses],
            "notReadyAddresses": [msgspec.to_builtins(one) for one in subset.not_ready_addresses],
            "ports": [port_document(port) for port in subset.ports],
        }
    )


def remove(db: View, mirror: ObjectKey) -> Plan:
    """A mirror that needs no Endpoints has none."""
    held = ENDPOINTS.get(db, mirror)
    if held is None or held.metadata.deletion_timestamp:
        return ()
    return (Delete(RESOURCE, mirror.namespace, mirror.name, held.metadata.uid),)
