"""Names of the cluster and what they stand for, by the rules of Kubernetes' DNS-based discovery.

Names are lower-case texts without a final dot. A name is found, or missing (nothing has it, nor
anything below it), or foreign (somebody else would have to be asked). Found does not mean that it
has what is asked for: `<namespace>.svc.<domain>` has no address, and a Service with IPv4 alone has
no IPv6 address; both are there nevertheless, and clients must not be told otherwise (RFC 8020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import Table, View, query
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import (
    NAMESPACES,
    PODS,
    PODS_BY_IP,
    SERVICE_PODS,
    SERVICES,
    SERVICES_BY_IP,
    SLICES,
    SLICES_BY_SERVICE,
    Address,
)
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey
from isthmus.model.names import parse_cidr, parse_ip

VERSION: Final = "1.1.0"
"""Of the specification "Kubernetes DNS-Based Service Discovery"."""

LONGEST: Final = 253
"""Characters of a name (RFC 1035, section 2.3.4)."""
MOST_ALIASES: Final = 8

_REVERSE: Final = {4: "in-addr.arpa", 6: "ip6.arpa"}
_OCTETS: Final = 4
_NIBBLES: Final = 32

HOSTS: Table[str, tuple[str, ...]] = Table("dns_hosts")
"""Addresses of machines outside the mesh, by name, as the operator wrote them down."""


class Server(NamedTuple):
    """Where a port answers: what an SRV record says, and the addresses of its target."""

    port: int
    target: str
    ips: tuple[str, ...]


class Node(msgspec.Struct, frozen=True, tag="node"):
    """A name that is there, and what it has. `zone` is the domain that we answer for."""

    zone: str
    ips: tuple[str, ...] = ()
    servers: tuple[Server, ...] = ()
    pointers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    alias: str = ""


class Missing(msgspec.Struct, frozen=True, tag="missing"):
    """Nobody has the name. `zone` is "" where we cannot vouch for that to others."""

    zone: str


class Foreign(msgspec.Struct, frozen=True, tag="foreign"):
    """A name of somebody else."""


Found = Node | Missing | Foreign


class Resolution(msgspec.Struct, frozen=True):
    """A name with its aliases followed, as far as they are ours: the last one is `found`."""

    aliases: tuple[str, ...]
    found: Found


@query
def resolve(db: View, name: str) -> Resolution:
    """What a name stands for in the end. Aliases that lead in circles lead nowhere."""
    aliases: list[str] = []
    found = lookup(db, name)
    while isinstance(found, Node) and found.alias and len(aliases) < MOST_ALIASES:
        if found.alias in aliases or found.alias == name:
            break
        aliases.append(found.alias)
        found = lookup(db, found.alias)
    return Resolution(tuple(aliases), found)


@query
def lookup(db: View, name: str) -> Found:
    """What a name itself has."""
    written = HOSTS.get(db, name)
    if written is not None:
        return Node(zone=name, ips=written)
    domain = settings(db).cluster_domain
    if name == domain or name.endswith(f".{domain}"):
        labels = name[: -len(domain)].split(".")[:-1]
        return _inside(db, domain, labels) or Missing(domain)
    for version, zone in _REVERSE.items():
        if name == zone or name.endswith(f".{zone}"):
            return _reverse(db, zone, version, name[: -len(zone)].split(".")[:-1])
    # A name of one label is a short one that no search path completed. Nobody else has it.
    return Foreign() if not name or "." in name else Missing("")


def _inside(db: View, domain: str, labels: list[str]) -> Node | None:
    """A name under the cluster's domain; None if it is not there."""
    match labels:
        case [] | ["svc"] | ["pod"] | ["dns"] | ["ns", "dns"]:
            return Node(domain)
        case ["dns-version"]:
            return Node(domain, texts=(VERSION,))
        case [namespace, "svc" | "pod"]:
            return Node(domain) if _namespace(db, namespace) else None
        case [pod, namespace, "pod"]:
            return _pod(db, domain, namespace, pod)
        case [*rest, service, namespace, "svc"]:
            key = ObjectKey(settings(db).cluster, namespace, service)
            return _of_service(db, domain, key, rest)
    return None


def _namespace(db: View, name: str) -> bool:
    return NAMESPACES.get(db, ObjectKey(settings(db).cluster, "", name)) is not None


def _pod(db: View, domain: str, namespace: str, label: str) -> Node | None:
    """`10-0-0-1.<namespace>.pod.<domain>`, where a pod of the namespace has the address."""
    ip = canonical_ip(label.replace("-", "." if label.count("-") == _OCTETS - 1 else ":"))
    if ip is None or dashed(ip) != label:
        return None
    pods = PODS_BY_IP.get(db, Address(settings(db).cluster, ip))
    return Node(domain, ips=(ip,)) if any(pod.namespace == namespace for pod in pods) else None


# ------------------------------------------------------------------------------- Services


def _of_service(db: View, domain: str, key: ObjectKey, rest: list[str]) -> Node | None:
    """A Service's own name, or one below it."""
    row = SERVICES.get(db, key)
    if row is None:
        return None
    if row.spec.type == "ExternalName":
        # Its ports and endpoints are somebody else's: only its own name is ours.
        return None if rest else Node(domain, alias=_alias(row))
    match rest:
        case []:
            return Node(domain, ips=service_ips(db, key))
        case [protocol] if protocol.startswith("_"):
            named = (port for port in row.spec.ports if port.name)
            there = any(_is(protocol, port.protocol) for port in named)
            return Node(domain) if there else None
        case [port, protocol] if port.startswith("_") and protocol.startswith("_"):
            servers = _servers(db, key, row, port[1:], protocol)
            return None if servers is None else Node(domain, servers=servers)
        case [label]:
            mine = tuple(spot.ip for spot in _spots(db, key, row) if spot.label == label)
            return Node(domain, ips=mine) if mine else None
    return None


def _is(label: str, protocol: str) -> bool:
    return label == f"_{protocol.lower()}"


def _alias(row: Service) -> str:
    """The external name, "" where nobody could have it."""
    name = row.spec.external_name.lower().removesuffix(".")
    fits = len(name) <= LONGEST and all(0 < len(part) <= 63 for part in name.split("."))
    return name if fits and name.isascii() and parse_ip(name) is None else ""


@query
def service_ips(db: View, service: ObjectKey) -> tuple[str, ...]:
    """The addresses of a Service's name: its own, or its endpoints' where it has none."""
    row = SERVICES.get(db, service)
    if row is None:
        return ()
    if _headless(row):
        return tuple(dict.fromkeys(spot.ip for spot in _spots(db, service, row)))
    ips = (canonical_ip(ip) for ip in row.spec.cluster_ips or (row.spec.cluster_ip,))
    return tuple(ip for ip in ips if ip is not None)


def _headless(row: Service) -> bool:
    return row.spec.cluster_ip == "None"


def _servers(
    db: View, key: ObjectKey, row: Service, port: str, protocol: str
) -> tuple[Server, ...] | None:
    """Where a named port answers; None if the Service has no such port."""
    numbers = [
        each.port for each in row.spec.ports if each.name == port and _is(protocol, each.protocol)
    ]
    if not numbers or not port:
        return None
    name = full_name(db, key)
    if not _headless(row):
        ips = service_ips(db, key)
        return tuple(Server(number, name, ips) for number in numbers)
    found: dict[tuple[str, int], list[str]] = {}
    for part in SLICES_BY_SERVICE.get(db, key):
        for number in port_numbers(db, part, port, protocol):
            for spot in spots(db, part, key):
                found.setdefault((f"{spot.label}.{name}", number), []).append(spot.ip)
    return tuple(
        Server(number, target, tuple(dict.fromkeys(ips)))
        for (target, number), ips in sorted(found.items())
    )


@query
def full_name(db: View, service: ObjectKey) -> str:
    """The whole name of a Service."""
    return f"{service.name}.{service.namespace}.svc.{settings(db).cluster_domain}"


# ----------------------------------------------------------------- endpoints without a proxy


class Spot(NamedTuple):
    """An endpoint of a headless Service: its label below the Service's name, and its address."""

    label: str
    ip: str


def _spots(db: View, key: ObjectKey, row: Service) -> tuple[Spot, ...]:
    """All ready endpoints of a headless Service, in order; none of another's."""
    parts = SLICES_BY_SERVICE.get(db, key) if _headless(row) else ()
    return tuple(sorted({spot for part in parts for spot in spots(db, part, key)}))


@query
def spots(db: View, part: ObjectKey, service: ObjectKey) -> tuple[Spot, ...]:
    """The endpoints of one slice that are told: ready ones, or all if the Service wants that."""
    row = SLICES.get(db, part)
    if row is None or row.address_type not in ("", "IPv4", "IPv6"):
        return ()
    every = tells_unready(db, service)
    told = (one for one in row.endpoints if every or one.conditions.ready is not False)
    return tuple(
        Spot((one.hostname or dashed(ip)).lower(), ip)
        for one in told
        for address in one.addresses
        if (ip := canonical_ip(address)) is not None
    )


@query
def tells_unready(db: View, service: ObjectKey) -> bool:
    """Whether endpoints of a Service are told before they are ready: peers find each other so."""
    row = SERVICES.get(db, service)
    return row is not None and row.spec.publish_not_ready_addresses


@query
def port_numbers(db: View, part: ObjectKey, name: str, protocol: str) -> tuple[int, ...]:
    """The numbers that a slice's endpoints have for a named port; `protocol` as in `_tcp`."""
    row = SLICES.get(db, part)
    ports = row.ports if row is not None else ()
    return tuple(
        port.port
        for port in ports
        if port.port and port.name == name and _is(protocol, port.protocol)
    )


def dashed(ip: str) -> str:
    """An address as a label: `10-0-0-1`, `fd00--1`."""
    return ip.replace(".", "-").replace(":", "-")


# -------------------------------------------------------------------------------- reverse


def _reverse(db: View, zone: str, version: int, labels: list[str]) -> Found:
    """Names of addresses; incomplete ones are there, since there is something below them."""
    if not all(_part(label, version) for label in labels):
        return Missing(zone)
    whole = _OCTETS if version == 4 else _NIBBLES
    if len(labels) < whole:
        return Node(zone)
    ip = _address(labels, version) if len(labels) == whole else None
    if ip is None:
        return Missing(zone)
    pointers = names_of(db, ip)
    if pointers:
        return Node(zone, pointers=pointers)
    return Missing(zone) if _ours(db, ip) else Foreign()


def _part(label: str, version: int) -> bool:
    """Whether a label can stand in the name of an address."""
    if version == 4:
        fits = label.isascii() and label.isdecimal() and len(label) <= 3
        return fits and str(int(label)) == label and int(label) < 256
    return len(label) == 1 and label in "0123456789abcdef"


def _address(labels: list[str], version: int) -> str | None:
    parts = labels[::-1]
    if version == 4:
        return canonical_ip(".".join(parts))
    return canonical_ip(":".join("".join(parts[at : at + 4]) for at in range(0, _NIBBLES, 4)))


def _ours(db: View, ip: str) -> bool:
    """Whether an address could only be of this cluster."""
    known, parsed = settings(db), parse_ip(ip)
    networks = map(parse_cidr, (*known.cluster_networks, *known.service_networks))
    return any(parsed in network for network in networks if network is not None and parsed)


@query
def names_of(db: View, ip: str) -> tuple[str, ...]:
    """The names that an address has: its Service's, or those of the pod in headless Services."""
    at = Address(settings(db).cluster, ip)
    services = SERVICES_BY_IP.get(db, at)
    if services:
        return tuple(full_name(db, key) for key in services)
    return tuple(sorted(set(_in_headless(db, ip, PODS_BY_IP.get(db, at)))))


def _in_headless(db: View, ip: str, pods: Iterable[ObjectKey]) -> Iterator[str]:
    for pod in pods:
        if not _own(db, pod):
            continue
        for key in SERVICE_PODS.selectors(db, pod):
            row = SERVICES.get(db, key)
            told = _spots(db, key, row) if row is not None else ()
            yield from (f"{spot.label}.{full_name(db, key)}" for spot in told if spot.ip == ip)


def _own(db: View, pod: ObjectKey) -> bool:
    """Whether a pod has an address of its own, not its host's."""
    row = PODS.get(db, pod)
    return row is not None and not row.spec.host_network
