"""Headless Services of linked clusters: a mirror of each host, behind a headless root.

Only where the Link asks for it by an annotation, and in gateway mode. `<host>.<root>` resolves here
to the ClusterIP of the host's mirror, whose Endpoints are the gateway, which is asked for that very
host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from isthmus.controllers import standins
from isthmus.controllers.copied import Keys, marked
from isthmus.controllers.gateways import Subject, through_gateway, write
from isthmus.controllers.names import MAX_LABEL, child
from isthmus.controllers.steps import Delete, Plan, Step
from isthmus.engine import View, query
from isthmus.mesh.candidates import REMOTE_NAME
from isthmus.mesh.exports import (
    BY_GATEWAY,
    MIRROR_ROOT,
    MIRRORS_BY_ROOT,
    SLICES_BY_HOST,
    Claim,
    Mode,
    claims,
    is_host_mirror,
)
from isthmus.mesh.links import LINKS
from isthmus.mesh.members import HEADLESS
from isthmus.mesh.tables import SERVICE_NAME, SERVICES, SLICES, SLICES_BY_SERVICE
from isthmus.model.annotations.keys import HEADLESS_SERVICES
from isthmus.model.core import Service
from isthmus.model.core.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from isthmus.model.key import ObjectKey

MOST: Final = 1000
"""Hosts of one Service that are mirrored."""


class Host(NamedTuple):
    """A host of a headless Service; `ports` as its slice has them: name, protocol, number."""

    name: str
    ready: bool
    ports: tuple[tuple[str, str, int], ...]


@query
def asked(db: View, link: ObjectKey) -> bool:
    """Whether a Link asks for mirrors of single hosts."""
    row = LINKS.get(db, link)
    return row is not None and row.metadata.annotations.get(HEADLESS_SERVICES) == "true"


def is_headless(row: Service) -> bool:
    """Whether a Service has no address of its own."""
    return row.spec.cluster_ip == HEADLESS


def headless(db: View, claim: Claim, held: Service | None) -> bool | None:
    """Whether the mirror is to be headless; None: wait for the first address, which decides.

    While nobody is there, a mirror stays what it is.
    """
    row = SERVICES.get(db, claim.remote)
    split = claim.mode is Mode.GATEWAY and asked(db, claim.target.link)
    if row is None or not is_headless(row) or not split:
        return False
    if hosts(db, claim.remote):
        return True
    if anybody(db, claim.remote):
        return False
    return None if held is None else is_headless(held)


@query
def hosts(db: View, remote: ObjectKey) -> tuple[Host, ...]:
    """The hosts that the slices of a Service name, ready or not, each once."""
    found: dict[str, Host] = {}
    for key in SLICES_BY_SERVICE.get(db, remote):
        row = SLICES.get(db, key)
        if row is None:
            continue
        ports = tuple((each.name, each.protocol, each.port or 0) for each in row.ports)
        for each in row.endpoints:
            if each.hostname:
                ready = each.conditions.ready is not False
                known = found.get(each.hostname)
                if known is None or (ready and not known.ready):
                    found[each.hostname] = Host(each.hostname, ready, ports)
    return tuple(sorted(found.values()))[:MOST]


@query
def anybody(db: View, remote: ObjectKey) -> bool:
    """Whether the slices of a Service name any address."""
    rows = (SLICES.get(db, key) for key in SLICES_BY_SERVICE.get(db, remote))
    return any(row is not None and row.endpoints for row in rows)


# ------------------------------------------------------------------------------------ names


def name_of(db: View, claim: Claim, root: ObjectKey, host: str) -> str:
    """What the mirror of a host is called: `<host>-<cluster>`, unless somebody else has it.

    An exported Service goes first, then the first headless Service that has such a host.
    """
    plain = f"{host}-{claim.target.cluster}"
    key = root._replace(name=plain)
    free = len(plain) <= MAX_LABEL and plain != root.name and not claims(db, key)
    if free and _first(db, claim, host):
        return plain
    return child(plain, claim.remote.name, limit=MAX_LABEL)


def _first(db: View, claim: Claim, host: str) -> bool:
    """Whether no other headless export of the namespace with such a host comes before."""
    for service in _with_host(db, claim.remote._replace(name=host)):
        row = SERVICES.get(db, service)
        exported = claim.target.link in BY_GATEWAY.selectors(db, service)
        if row is not None and is_headless(row) and exported:
            return service == claim.remote
    return True


def _with_host(db: View, host: ObjectKey) -> list[ObjectKey]:
    rows = [SLICES.get(db, key) for key in SLICES_BY_HOST.get(db, host)]
    names = {row.metadata.labels.get(SERVICE_NAME, "") for row in rows if row is not None}
    return [host._replace(name=name) for name in sorted(names)]


# ------------------------------------------------------------------------------------ steps


def plan(db: View, claim: Claim, root: Subject) -> Plan:
    """The mirrors of hosts, their Endpoints, and those of the root."""
    found = {name_of(db, claim, root.mirror, each.name): each for each in hosts(db, claim.remote)}
    steps: list[Step] = []
    for name, host in found.items():
        steps += _host(db, root, root.mirror._replace(name=name), host)
    return (*steps, *ended(db, root.mirror, *found), *_root(db, root, found))


def _host(db: View, root: Subject, key: ObjectKey, host: Host) -> Plan:
    held = SERVICES.get(db, key)
    if held is not None and not _ours(held, root.mirror):
        return ()
    labels = {**root.labels, MIRROR_ROOT: root.mirror.name}
    notes = {REMOTE_NAME: f"{host.name}.{root.notes[REMOTE_NAME]}"}
    patch = marked(held, Keys(labels, notes))
    subject = root._replace(mirror=key, labels=labels, notes=notes, ready=host.ready)
    behind = through_gateway(db, subject) if held is not None else ()
    return (*standins.write(key, held, patch, root.ports), *behind)


def _ours(row: Service, root: ObjectKey) -> bool:
    return is_host_mirror(row) and row.metadata.labels[MIRROR_ROOT] == root.name


def ended(db: View, root: ObjectKey, *names: str) -> tuple[Delete, ...]:
    """Take away the mirrors of hosts that are not among those of these names."""
    rows = ((key, SERVICES.get(db, key)) for key in MIRRORS_BY_ROOT.get(db, root))
    return tuple(
        Delete("services", key.namespace, key.name, row.metadata.uid)
        for key, row in rows
        if row is not None and key.name not in names and not row.metadata.deletion_timestamp
    )


def _root(db: View, root: Subject, found: dict[str, Host]) -> Plan:
    by_ports: dict[tuple[tuple[str, str, int], ...], list[EndpointAddress]] = {}
    for address, host in _addresses(db, root.mirror, found):
        by_ports.setdefault(host.ports, []).append(address)
    subsets = tuple(
        EndpointSubset(tuple(some), (), tuple(EndpointPort(*each) for each in ports))
        for ports, some in sorted(by_ports.items(), key=repr)
    )
    return write(db, root.mirror, Keys(root.labels, root.notes), subsets)


def _addresses(
    db: View, root: ObjectKey, found: dict[str, Host]
) -> Iterator[tuple[EndpointAddress, Host]]:
    for name, host in found.items():
        row = SERVICES.get(db, root._replace(name=name))
        if row is not None and _ours(row, root) and row.spec.cluster_ip not in ("", HEADLESS):
            yield EndpointAddress(ip=row.spec.cluster_ip, hostname=host.name), host
