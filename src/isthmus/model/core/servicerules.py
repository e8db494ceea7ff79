"""What a Service must keep to (Kubernetes: ValidateService and its update)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.annotations import Problem, parent_warnings, shares
from isthmus.model.document import get, items, number, strings, text, texts
from isthmus.model.faults import duplicate, forbidden, invalid, not_supported, one_of, required
from isthmus.model.kind import Document
from isthmus.model.metacheck import labels_faults
from isthmus.model.names import (
    cidr_problems,
    ip_problems,
    label_problems,
    port_name_problems,
    port_problems,
    qualified_problems,
    subdomain_problems,
)

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": TYPES,
    "sessionAffinity": ("ClientIP", "None"),
    "internalTrafficPolicy": ("Cluster", "Local"),
    "externalTrafficPolicy": ("Cluster", "Local"),
    "ipFamilyPolicy": ("PreferDualStack", "RequireDualStack", "SingleStack"),
    "trafficDistribution": ("PreferClose", "PreferSameNode", "PreferSameZone"),
}


def service_faults(document: Document, old: Document | None) -> Iterator[Cause]:
    """Every fault of a Service's spec."""
    spec = get(document, "spec") or {}
    for name, words in _WORDS.items():
        yield from one_of(f"spec.{name}", text(spec, name), words)
    yield from labels_faults(texts(spec, "selector"), "spec.selector")
    yield from _ports_faults(spec)
    yield from _address_faults(spec)
    yield from _type_faults(spec)
    if old is not None:
        yield from _change_faults(spec, get(old, "spec") or {})


def service_warnings(document: Document, _old: Document | None) -> Iterator[str]:
    """What of a Service's annotations means nothing: each spoils its own group alone."""
    notes = texts(document, "metadata.annotations")
    yield from parent_warnings(notes)
    found = (each for each in shares(notes).values() if isinstance(each, Problem))
    yield from (each.warning for each in found)


def _ports_faults(spec: Mapping[str, Any]) -> Iterator[Cause]:
    ports = items(spec, "ports")
    needs = text(spec, "type") != "ExternalName" and text(spec, "clusterIP") != "None"
    if not ports and needs:
        yield required("spec.ports")
    names: set[str] = set()
    numbers: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name, pair = text(port, "name"), (number(port, "port"), text(port, "protocol"))
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        if pair in numbers:
            yield duplicate(path, {"port": pair[0], "protocol": pair[1]})
        names.add(name)
        numbers.add(pair)
        yield from _port_faults(port, path, text(spec, "type"))


def _port_faults(port: Mapping[str, Any], path: str, service_type: str) -> Iterator[Cause]:
    if text(port, "name"):
        for problem in label_problems(text(port, "name")):
            yield invalid(f"{path}.name", text(port, "name"), problem)
    for problem in port_problems(number(port, "port")):
        yield invalid(f"{path}.port", number(port, "port"), problem)
    yield from one_of(f"{path}.protocol", text(port, "protocol"), PROTOCOLS)
    yield from target_faults(port.get("targetPort"), f"{path}.targetPort")
    if text(port, "appProtocol"):
        for problem in qualified_problems(text(port, "appProtocol")):
            yield invalid(f"{path}.appProtocol", text(port, "appProtocol"), problem)
    node_port = number(port, "nodePort")
    if node_port and service_type in ("ClusterIP", "ExternalName"):
        says = f"may not be used when `type` is '{service_type}'"
        yield forbidden(f"{path}.nodePort", says)
    if node_port:
        for problem in port_problems(node_port):
            yield invalid(f"{path}.nodePort", node_port, problem)


def target_faults(target: object, path: str) -> Iterator[Cause]:
    """Faults of a port that may be a number or the name of a container's port."""
    if isinstance(target, str):
        problems = port_name_problems(target)
    else:
        problems = port_problems(target) if isinstance(target, int) else ()
    for problem in problems:
        yield invalid(path, target, problem)


def _address_faults(spec: Mapping[str, Any]) -> Iterator[Cause]:
    for index, address in enumerate(strings(spec, "externalIPs")):
        for problem in ip_problems(address):
            yield invalid(f"spec.externalIPs[{index}]", address, problem)
    for index, network in enumerate(strings(spec, "loadBalancerSourceRanges")):
        for problem in cidr_problems(network.strip()):
            yield invalid(f"spec.loadBalancerSourceRanges[{index}]", network, problem)
    addresses = strings(spec, "clusterIPs")
    if addresses and addresses[0] != text(spec, "clusterIP"):
        yield invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    if len(addresses) > 2:
        yield invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")
    for index, address in enumerate(addresses):
        if address == "None" and index == 0 and len(addresses) == 1:
            continue
        for problem in ip_problems(address):
            yield invalid(f"spec.clusterIPs[{index}]", address, problem)
    yield from _family_faults(spec)


def _family_faults(spec: Mapping[str, Any]) -> Iterator[Cause]:
    families, addresses = strings(spec, "ipFamilies"), strings(spec, "clusterIPs")
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in ("IPv4", "IPv6"):
            yield not_supported(path, family, ("IPv4", "IPv6"))
        elif family in families[:index]:
            yield duplicate(path, family)
        if index < len(addresses) and addresses[index] != "None":
            found = "IPv6" if ":" in addresses[index] else "IPv4"
            if found != family and family in ("IPv4", "IPv6"):
                says = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                yield invalid(f"spec.clusterIPs[{index}]", addresses[index], says)


def _type_faults(spec: Mapping[str, Any]) -> Iterator[Cause]:
    service_type, name = text(spec, "type"), text(spec, "externalName").removesuffix(".")
    headless = text(spec, "clusterIP") == "None"
    match service_type:
        case "ExternalName":
            if text(spec, "clusterIP"):
                yield forbidden("spec.clusterIPs", "may not be set for ExternalName services")
            if not name:
                yield required("spec.externalName")
            for problem in subdomain_problems(name) if name else ():
                yield invalid("spec.externalName", text(spec, "externalName"), problem)
        case "NodePort" | "LoadBalancer" if headless:
            says = f"may not be set to 'None' for {service_type} services"
            yield invalid("spec.clusterIPs[0]", "None", says)
        case _:
            pass
    if text(spec, "sessionAffinity") == "ClientIP":
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        seconds = number(spec, path.removeprefix("spec."), 10800)
        if not 0 < seconds <= 86400:
            yield invalid(path, seconds, "must be greater than 0 and less than 86400")


def _change_faults(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    """Allotted addresses stay, unless the Service becomes, or was, ExternalName."""
    if "ExternalName" in (text(spec, "type"), text(old, "type")):
        return
    before, now = strings(old, "clusterIPs"), strings(spec, "clusterIPs")
    if before and now and before[0] != now[0]:
        yield invalid("spec.clusterIPs[0]", now, "may not change once set")
    elif before and not now:
        yield invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset")
    families = strings(old, "ipFamilies"), strings(spec, "ipFamilies")
    if families[0] and families[1][:1] != families[0][:1]:
        yield invalid("spec.ipFamilies[0]", families[1], "may not change once set")
