"""Service: its view, columns, defaults and record; the rules are in `servicerules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import field

from isthmus.model.columns import AGE, NONE, WIDE
from isthmus.model.core.servicerules import service_faults, service_warnings
from isthmus.model.document import ensure, get, items, number, settle, strings, text, texts
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Condition, Meta, View
from isthmus.model.names import label_1035_problems
from isthmus.model.selectors import pairs_text
from isthmus.model.wire.schemas import schema_of


class ServicePort(View, frozen=True):
    """A port of a Service. `target_port`: a number, a container port's name, or None for `port`."""

    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0
    app_protocol: str = ""


class ServiceSpec(View, frozen=True):
    """core/v1 ServiceSpec, in part. `cluster_ip`: an address, "None" (headless) or "" (not yet)."""

    type: str = "ClusterIP"
    selector: Mapping[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] = field(default=(), name="clusterIPs")
    external_ips: tuple[str, ...] = field(default=(), name="externalIPs")
    external_name: str = ""
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str = ""
    publish_not_ready_addresses: bool = False
    internal_traffic_policy: str = "Cluster"
    external_traffic_policy: str = ""
    traffic_distribution: str = ""
    session_affinity: str = "None"


class Ingress(View, frozen=True):
    """Where a load balancer answers."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(View, frozen=True):
    """core/v1 LoadBalancerStatus."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(View, frozen=True):
    """core/v1 ServiceStatus."""

    load_balancer: LoadBalancer = LoadBalancer()
    conditions: tuple[Condition, ...] = ()


class Service(View, frozen=True):
    """core/v1 Service."""

    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


# -------------------------------------------------------------------------------------- columns


def _cluster_ip(document: Document, _now: float) -> str:
    return text(document, "spec.clusterIP") or NONE


def _external_ip(document: Document, _now: float) -> str:
    kind = text(document, "spec.type")
    if kind == "ExternalName":
        return text(document, "spec.externalName")
    shown = list(strings(document, "spec.externalIPs"))
    if kind != "LoadBalancer":
        return ",".join(shown) or NONE
    ingress = items(document, "status.loadBalancer.ingress")
    balanced = {text(each, "ip") or text(each, "hostname") for each in ingress} - {""}
    return ",".join([*sorted(balanced), *shown]) or "<pending>"


def _ports(document: Document, _now: float) -> str:
    return ",".join(_port(each) for each in items(document, "spec.ports")) or NONE


def _port(port: dict[str, Any]) -> str:
    node_port = number(port, "nodePort")
    shown = f"{number(port, 'port')}:{node_port}" if node_port else f"{number(port, 'port')}"
    return f"{shown}/{text(port, 'protocol')}"


_COLUMNS: Final = (
    Column("Type", lambda document, _: text(document, "spec.type")),
    Column("Cluster-IP", _cluster_ip),
    Column("External-IP", _external_ip),
    Column("Port(s)", _ports),
    AGE,
    Column("Selector", lambda d, _: pairs_text(texts(d, "spec.selector")), priority=WIDE),
)

# ------------------------------------------------------------------------------------- defaults


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    settle(spec, "type", "ClusterIP")
    settle(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        settle(ensure(spec, "sessionAffinityConfig.clientIP"), "timeoutSeconds", 10800)
    for port in items(spec, "ports"):
        settle(port, "protocol", "TCP")
        if port.get("targetPort") in (None, 0, "") and "port" in port:
            port["targetPort"] = port["port"]
    if spec["type"] in ("NodePort", "LoadBalancer") or strings(spec, "externalIPs"):
        settle(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        settle(spec, "allocateLoadBalancerNodePorts", value=True)
    if spec["type"] != "ExternalName":
        settle(spec, "internalTrafficPolicy", "Cluster")
        _default_addresses(spec)


def _default_addresses(spec: dict[str, Any]) -> None:
    """`clusterIP` and `clusterIPs` say the same; families follow the addresses."""
    addresses = strings(spec, "clusterIPs")
    if addresses and not text(spec, "clusterIP"):
        spec["clusterIP"] = addresses[0]
    elif text(spec, "clusterIP") and not addresses:
        spec["clusterIPs"] = [spec["clusterIP"]]
    settle(spec, "ipFamilyPolicy", "SingleStack")
    families = ["IPv6" if ":" in each else "IPv4" for each in strings(spec, "clusterIPs")]
    if spec["ipFamilyPolicy"] == "SingleStack":
        families = families[:1] or ["IPv4"]
    if families and not spec.get("ipFamilies"):
        spec["ipFamilies"] = families


_ALLOTTED: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def _carry(document: Document, old: Document | None) -> None:
    """What was allotted stays when a writer leaves it out, and goes where the type has no use."""
    if old is None:
        document.pop("status", None)
        return
    spec, before = ensure(document, "spec"), get(old, "spec") or {}
    kind, was = text(spec, "type"), text(before, "type")
    if kind == "ExternalName":
        for name in (*_ALLOTTED, "internalTrafficPolicy", "externalTrafficPolicy"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    elif was != "ExternalName":
        for name in _ALLOTTED[:2]:
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
        _default_addresses(spec)
    _carry_node_ports(spec, before)


def _carry_node_ports(spec: dict[str, Any], before: Mapping[str, Any]) -> None:
    needs = text(spec, "type") in ("NodePort", "LoadBalancer")
    had = {_port_key(port): number(port, "nodePort") for port in items(before, "ports")}
    for port in items(spec, "ports"):
        old_port = had.get(_port_key(port), 0)
        if needs and not port.get("nodePort") and old_port:
            port["nodePort"] = old_port
        elif not needs and port.get("nodePort") == old_port:
            port.pop("nodePort", None)
    if not needs and not strings(spec, "externalIPs"):
        for name in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)


def _port_key(port: Mapping[str, Any]) -> tuple[int, str]:
    return number(port, "port"), text(port, "protocol")


SERVICE: Final = Kind(
    group="",
    name="Service",
    plural="services",
    singular="service",
    short_names=("svc",),
    categories=("all",),
    grammar=label_1035_problems,
    versions=(Version("v1", schema_of("core.v1.Service"), columns=_COLUMNS),),
    stored="v1",
    view=Service,
    default=(_default,),
    carry=(_carry,),
    check=(service_faults,),
    warn=(service_warnings,),
    field_selectors={"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
    generation=False,
    custom=False,
)
