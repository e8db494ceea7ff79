"""Endpoints: the old form of EndpointSlices, which people still write for selectorless Services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, at_most
from isthmus.model.core.servicerules import PROTOCOLS
from isthmus.model.document import items, number, settle, text
from isthmus.model.faults import duplicate, invalid, one_of, required
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Meta, Reference, View
from isthmus.model.names import ip_problems, label_problems, port_problems
from isthmus.model.wire.schemas import schema_of


class EndpointAddress(View, frozen=True):
    """One address of a subset."""

    ip: str = ""
    hostname: str = ""
    node_name: str = ""
    target_ref: Reference | None = None


class EndpointPort(View, frozen=True):
    """A port of a subset; None means all."""

    name: str = ""
    protocol: str = "TCP"
    port: int | None = None
    app_protocol: str = ""


class EndpointSubset(View, frozen=True):
    """Addresses that share ports: every ready address at every port."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(View, frozen=True):
    """core/v1 Endpoints."""

    metadata: Meta = Meta()
    subsets: tuple[EndpointSubset, ...] = ()


def _cell(document: Document, _now: float) -> str:
    return at_most([shown for subset in items(document, "subsets") for shown in _shown(subset)])


def _shown(subset: dict[str, Any]) -> Iterator[str]:
    addresses = [text(each, "ip") for each in items(subset, "addresses")]
    ports = [number(port, "port") for port in items(subset, "ports")]
    if not ports:
        yield from addresses
    for port in ports:
        yield from (
            f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            for address in addresses
        )


def _default(document: Document) -> None:
    for subset in items(document, "subsets"):
        for port in items(subset, "ports"):
            settle(port, "protocol", "TCP")


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    for index, subset in enumerate(items(document, "subsets")):
        path = f"subsets[{index}]"
        addresses = items(subset, "addresses"), items(subset, "notReadyAddresses")
        if not addresses[0] and not addresses[1]:
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for name, listed in zip(("addresses", "notReadyAddresses"), addresses, strict=True):
            for at, address in enumerate(listed):
                yield from _address_faults(address, f"{path}.{name}[{at}]")
        yield from _ports_faults(subset, path)


def _address_faults(address: dict[str, Any], path: str) -> Iterator[Cause]:
    for problem in ip_problems(text(address, "ip")):
        yield invalid(f"{path}.ip", text(address, "ip"), problem)
    if text(address, "hostname"):
        for problem in label_problems(text(address, "hostname")):
            yield invalid(f"{path}.hostname", text(address, "hostname"), problem)


def _ports_faults(subset: dict[str, Any], path: str) -> Iterator[Cause]:
    ports, names = items(subset, "ports"), set[str]()
    for at, port in enumerate(ports):
        here, name = f"{path}.ports[{at}]", text(port, "name")
        if not name and len(ports) > 1:
            yield required(f"{here}.name")
        for problem in label_problems(name) if name else ():
            yield invalid(f"{here}.name", name, problem)
        if name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)
        for problem in port_problems(number(port, "port")):
            yield invalid(f"{here}.port", number(port, "port"), problem)
        yield from one_of(f"{here}.protocol", text(port, "protocol"), PROTOCOLS)


ENDPOINTS: Final = Kind(
    group="",
    name="Endpoints",
    plural="endpoints",
    singular="endpoints",
    short_names=("ep",),
    versions=(
        Version("v1", schema_of("core.v1.Endpoints"), columns=(Column("Endpoints", _cell), AGE)),
    ),
    stored="v1",
    view=Endpoints,
    status=False,
    default=(_default,),
    check=(_check,),
    generation=False,
    custom=False,
)
