"""The discovery.k8s.io API group: EndpointSlice, where the addresses behind a Service are."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, at_most, text_column
from isthmus.model.core.servicerules import PROTOCOLS
from isthmus.model.document import items, number, settle, strings, text
from isthmus.model.faults import (
    duplicate,
    invalid,
    not_supported,
    one_of,
    required,
    too_many,
)
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Meta, Reference, View
from isthmus.model.metacheck import unchanged
from isthmus.model.names import (
    label_problems,
    label_value_problems,
    parse_ip,
    port_problems,
    qualified_problems,
    subdomain_problems,
)
from isthmus.model.wire.schemas import schema_of

MAX_ENDPOINTS: Final = 1000
MAX_PORTS: Final = 100
MAX_ADDRESSES: Final = 100


class EndpointConditions(View, frozen=True):
    """None where the writer said nothing: then it is ready and serving, and not terminating."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(View, frozen=True):
    """A zone that an endpoint should serve."""

    name: str = ""


class EndpointHints(View, frozen=True):
    """Whom an endpoint should serve."""

    for_zones: tuple[ForZone, ...] = ()


class Endpoint(View, frozen=True):
    """One endpoint: addresses of one thing, of the slice's address type."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    zone: str = ""
    target_ref: Reference | None = None
    hints: EndpointHints | None = None


class EndpointPort(View, frozen=True):
    """A port of every endpoint of the slice; None means all ports."""

    name: str = ""
    protocol: str = "TCP"
    port: int | None = None
    app_protocol: str = ""


class EndpointSlice(View, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice. `address_type` is IPv4, IPv6 or FQDN."""

    metadata: Meta = Meta()
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


def _ports(document: Document, _now: float) -> str:
    shown = [_port(each) for each in items(document, "ports")]
    return at_most(shown, empty="<unset>")


def _port(port: dict[str, Any]) -> str:
    if number(port, "port"):
        return str(number(port, "port"))
    return text(port, "name") or "*"


def _addresses(document: Document, _now: float) -> str:
    listed = items(document, "endpoints")
    return at_most([a for each in listed for a in strings(each, "addresses")], empty="<unset>")


def _default(document: Document) -> None:
    for port in items(document, "ports"):
        if port.get("name") is None:
            port["name"] = ""
        settle(port, "protocol", "TCP")


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    kind = text(document, "addressType")
    if not kind:
        yield required("addressType")
    yield from one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    yield from unchanged(document, old, "addressType")
    endpoints = items(document, "endpoints")
    if len(endpoints) > MAX_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), MAX_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint_faults(endpoint, f"endpoints[{index}]", kind)
    yield from _ports_faults(document)


def _endpoint_faults(endpoint: dict[str, Any], path: str, kind: str) -> Iterator[Cause]:
    addresses = strings(endpoint, "addresses")
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    if len(addresses) > MAX_ADDRESSES:
        yield too_many(f"{path}.addresses", len(addresses), MAX_ADDRESSES)
        return
    for at, address in enumerate(addresses):
        here = f"{path}.addresses[{at}]"
        if address in addresses[:at]:
            yield duplicate(here, address)
        yield from _address_faults(address, here, kind)
    if text(endpoint, "hostname"):
        for problem in label_problems(text(endpoint, "hostname")):
            yield invalid(f"{path}.hostname", text(endpoint, "hostname"), problem)
    if text(endpoint, "nodeName"):
        for problem in subdomain_problems(text(endpoint, "nodeName")):
            yield invalid(f"{path}.nodeName", text(endpoint, "nodeName"), problem)
    for problem in label_value_problems(text(endpoint, "zone")):
        yield invalid(f"{path}.zone", text(endpoint, "zone"), problem)
    zones = items(endpoint, "hints.forZones")
    if len(zones) > 8:
        yield too_many(f"{path}.hints.forZones", len(zones), 8)


def _address_faults(address: str, path: str, kind: str) -> Iterator[Cause]:
    if kind == "FQDN":
        for problem in subdomain_problems(address):
            yield invalid(path, address, problem)
        return
    parsed = parse_ip(address)
    if kind == "IPv4" and (parsed is None or parsed.version != 4):
        yield invalid(path, address, "must be a valid IPv4 address")
    elif kind == "IPv6" and (parsed is None or parsed.version != 6):
        yield invalid(path, address, "must be a valid IPv6 address")
    elif parsed is not None and _is_special(parsed):
        yield invalid(path, address, "may not be unspecified, link-local or multicast")


def _is_special(address: IPv4Address | IPv6Address) -> bool:
    """Nowhere, everywhere, or a metadata service of the host.

    Kubernetes refuses loopback too; we allow it, so that a mesh can do without network namespaces.
    """
    return address.is_unspecified or address.is_link_local or address.is_multicast


def _ports_faults(document: Document) -> Iterator[Cause]:
    ports, names = items(document, "ports"), set[str]()
    if len(ports) > MAX_PORTS:
        yield too_many("ports", len(ports), MAX_PORTS)
        return
    for at, port in enumerate(ports):
        here, name = f"ports[{at}]", text(port, "name")
        for problem in label_problems(name) if name else ():
            yield invalid(f"{here}.name", name, problem)
        if name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)
        if text(port, "protocol") not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", text(port, "protocol"), PROTOCOLS)
        if port.get("port") is not None:
            for problem in port_problems(number(port, "port")):
                yield invalid(f"{here}.port", number(port, "port"), problem)
        if text(port, "appProtocol"):
            for problem in qualified_problems(text(port, "appProtocol")):
                yield invalid(f"{here}.appProtocol", text(port, "appProtocol"), problem)


ENDPOINT_SLICE: Final = Kind(
    group="discovery.k8s.io",
    name="EndpointSlice",
    plural="endpointslices",
    singular="endpointslice",
    versions=(
        Version(
            "v1",
            schema_of("discovery.v1.EndpointSlice"),
            columns=(
                text_column("AddressType", "addressType"),
                Column("Ports", _ports),
                Column("Endpoints", _addresses),
                AGE,
            ),
        ),
    ),
    stored="v1",
    view=EndpointSlice,
    status=False,
    default=(_default,),
    check=(_check,),
    custom=False,
)

KINDS: tuple[Kind, ...] = (ENDPOINT_SLICE,)
