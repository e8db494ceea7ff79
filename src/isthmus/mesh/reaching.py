"""Where a linked cluster's data plane can be asked whether it lives.

By a Link it is known what is taken over. Where a Secret alone links a cluster, it is what Services
of ours say that they find there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest
from typing import Final, NamedTuple

from isthmus.engine import Index, View, query
from isthmus.mesh.exports import Mode, members_in, mirrored_in, mode, namespaces_of
from isthmus.mesh.linked import linked
from isthmus.mesh.links import LINKS
from isthmus.mesh.services import REMOTE_CLUSTER, Federated, Remote, discovery
from isthmus.mesh.tables import SERVICES, SLICES, SLICES_BY_SERVICE
from isthmus.model.core import Service
from isthmus.model.discovery import EndpointSlice
from isthmus.model.key import ObjectKey
from isthmus.model.names import parse_ip

MOST: Final = 16
"""Addresses asked at a time."""
_SERVICES: Final = 64
"""Services that they are taken from."""
_MEMBERS: Final = 1024
"""Members of a federated Service."""


class At(NamedTuple):
    """An address or a name, and a TCP port."""

    host: str
    port: int


def _elsewhere(key: ObjectKey, row: Service) -> Iterable[tuple[str, str]]:
    notes, labels = row.metadata.annotations, row.metadata.labels
    items = notes.get(REMOTE_CLUSTER, "").split(",", _MEMBERS)[:_MEMBERS]
    found = {item.rpartition("@")[2].strip() for item in items}
    found.add(labels.get(REMOTE_CLUSTER, ""))
    return [(key.cluster, name) for name in sorted(found) if name]


FOUND_ELSEWHERE: Index[ObjectKey, Service, tuple[str, str]] = Index(
    "services_found_elsewhere", SERVICES, _elsewhere
)
"""By (their own cluster, a linked one that they name)."""


@query
def targets(db: View, local: str, name: str) -> tuple[At, ...]:
    """The gateway of a linked cluster, and endpoints that are reached without it.

    One of each Service before a second of any.
    """
    found = linked(db, local, name)
    if found is None:
        return ()
    link = found.link
    taken = _taken(db, link) if link is not None else _named(db, local, name)
    endpoints = [_endpoints(db, service) for service in islice(taken, _SERVICES)]
    spread = (at for row in zip_longest(*endpoints) for at in row if at is not None)
    gateway = _gateway(db, link) if link is not None else ()
    return tuple(islice(dict.fromkeys(chain(gateway, spread)), MOST))


def _gateway(db: View, link: ObjectKey) -> Iterator[At]:
    row = LINKS.get(db, link)
    port = row.spec.gateway_port if row is not None else ""
    if row is None or not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65_536):
        return
    for host in row.spec.gateway_address.split(",")[:MOST]:
        if host.strip():
            yield At(host.strip(), int(port))


def _taken(db: View, link: ObjectKey) -> Iterator[ObjectKey]:
    """What is reached pod by pod. Behind a gateway, addresses may be those of pods of our own."""
    for namespace in namespaces_of(db, link):
        yield from members_in(db, link, namespace)
        for remote in mirrored_in(db, link, namespace):
            if mode(db, link, remote) is Mode.FLAT:
                yield remote


def _named(db: View, local: str, cluster: str) -> Iterator[ObjectKey]:
    for service in FOUND_ELSEWHERE.get(db, (local, cluster)):
        match discovery(db, service):
            case Remote(_, remote) if remote is not None:
                found: tuple[ObjectKey, ...] = (remote,)
            case Federated(members):
                found = members
            case _:
                found = ()
        yield from (remote for remote in found if remote.cluster == cluster)


def _endpoints(db: View, service: ObjectKey) -> list[At]:
    rows = (SLICES.get(db, key) for key in SLICES_BY_SERVICE.get(db, service))
    found = chain.from_iterable(_addresses(row) for row in rows if row is not None)
    return list(islice(found, MOST))


def _addresses(row: EndpointSlice) -> Iterable[At]:
    ports = [port.port for port in row.ports if port.port and port.protocol in ("", "TCP")]
    for endpoint in row.endpoints if ports else ():
        if endpoint.conditions.ready is not False:
            yield from (At(ip, ports[0]) for ip in endpoint.addresses[:1] if elsewhere(ip))


def elsewhere(ip: str) -> bool:
    """Whether an address may be another cluster's: what it says must not lead to ourselves."""
    found = parse_ip(ip)
    return found is not None and not (
        found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    )
