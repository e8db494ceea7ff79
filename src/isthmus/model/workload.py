"""workload.linkerd.io ExternalWorkload: a machine outside every cluster that is in the mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import field

from isthmus.errors import Cause
from isthmus.model.columns import AGE, value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, mapping, number, text, texts
from isthmus.model.faults import duplicate, invalid, not_supported
from isthmus.model.identity import identity_problems
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Condition, Meta, View
from isthmus.model.names import ip_problems, port_name_problems
from isthmus.model.schema import Schema
from isthmus.model.shapes import (
    CONDITION,
    PORT,
    STRING,
    TIME,
    about,
    listed,
    resource,
    structure,
)
from isthmus.model.shapes import text as words

GROUP: Final = "workload.linkerd.io"


class WorkloadTls(View, frozen=True):
    """Who answers there, and by which server name it is asked for."""

    identity: str = ""
    server_name: str = ""


class WorkloadPort(View, frozen=True):
    """A port that the workload listens on."""

    name: str = ""
    port: int = 0
    protocol: str = "TCP"


class WorkloadIp(View, frozen=True):
    """An address of the workload."""

    ip: str = ""


class ExternalWorkloadSpec(View, frozen=True):
    """Identity, ports, addresses."""

    mesh_tls: WorkloadTls = field(default=WorkloadTls(), name="meshTLS")
    ports: tuple[WorkloadPort, ...] = ()
    workload_ips: tuple[WorkloadIp, ...] = field(default=(), name="workloadIPs")


LEAVING = "isthmus.dev/Leaving"
"""The condition of an ExternalWorkload whose host's agent ends its proxy."""


class ExternalWorkloadStatus(View, frozen=True):
    """Its condition Ready is an input of the mesh (decision 14)."""

    conditions: tuple[Condition, ...] = ()

    def says(self, kind: str) -> bool:
        """Whether a condition is True."""
        return any(each.type == kind and each.status == "True" for each in self.conditions)


class ExternalWorkload(View, frozen=True):
    """workload.linkerd.io ExternalWorkload."""

    metadata: Meta = Meta()
    spec: ExternalWorkloadSpec = ExternalWorkloadSpec()
    status: ExternalWorkloadStatus = ExternalWorkloadStatus()


_TLS: Final = structure(
    {
        "identity": about(
            words(min_length=1, max_length=253), "The identity in the workload's certificate."
        ),
        "serverName": about(
            words(min_length=1, max_length=253), "The server name that TLS asks it for."
        ),
    },
    required=("identity", "serverName"),
)
_PORT: Final = structure(
    {
        "name": about(STRING, "Name, by which Services can refer to it."),
        "port": about(PORT, "The number."),
        "protocol": about(STRING, "TCP or UDP.", default="TCP"),
    },
    required=("port",),
)
_CONDITION: Final = structure(
    {**CONDITION.fields, "lastProbeTime": about(TIME, "When it was last asked.")},
    required=("status", "type"),
)
_STATUS: Final = structure(
    {"conditions": about(listed(_CONDITION, keys=("type",)), "Ready, and what else is known.")}
)


def _schema(version: str, tls: str, most_ips: int) -> Schema:
    address = structure({"ip": about(STRING, "An IP address.")})
    spec = structure(
        {
            tls: about(_TLS, "Who answers there."),
            "ports": about(listed(_PORT), "The ports that it listens on."),
            "workloadIPs": about(
                listed(address, max_items=most_ips), "Its addresses, one of each family."
            ),
        },
        required=(tls,),
    )
    whole = resource(
        about(spec, "Identity, ports and addresses."),
        status=about(_STATUS, "Whether it is ready."),
        ref=f"io.linkerd.workload.{version}.ExternalWorkload",
    )
    return about(whole, "A workload outside the cluster that is part of the mesh.")


_SCHEMAS: Final = {
    "v1beta1": _schema("v1beta1", "meshTLS", 2),
    "v1alpha1": _schema("v1alpha1", "meshTls", 1),
}
_SPELLING: Final = {"v1beta1": "meshTLS", "v1alpha1": "meshTls"}


def _reshape(document: Document, present: str, wanted: str) -> None:
    """v1alpha1 writes `meshTls`."""
    spec = mapping(document, "spec")
    if present != wanted and _SPELLING[present] in spec:
        spec[_SPELLING[wanted]] = spec.pop(_SPELLING[present])


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    names: set[str] = set()
    numbers: set[tuple[int, str]] = set()
    for index, port in enumerate(items(document, "spec.ports")):
        path = f"spec.ports[{index}]"
        name, protocol = text(port, "name"), text(port, "protocol") or "TCP"
        pair = (number(port, "port"), protocol)
        if name:
            yield from (invalid(f"{path}.name", name, why) for why in port_name_problems(name))
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        if protocol not in ("TCP", "UDP"):
            yield not_supported(f"{path}.protocol", protocol, ("TCP", "UDP"))
        if pair in numbers:
            yield duplicate(path, {"port": pair[0], "protocol": pair[1]})
        names.add(name)
        numbers.add(pair)
    yield from _address_faults(document)


def _address_faults(document: Document) -> Iterator[Cause]:
    families: set[bool] = set()
    for index, each in enumerate(items(document, "spec.workloadIPs")):
        path, ip = f"spec.workloadIPs[{index}].ip", text(each, "ip")
        problems = ip_problems(ip)
        yield from (invalid(path, ip, problem) for problem in problems)
        if not problems and (":" in ip) in families:
            yield invalid(path, ip, "may not be a second address of one family")
        families.add(":" in ip)


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    identity = text(document, "spec.meshTLS.identity")
    if identity_problems(identity) or identity.startswith("*"):
        yield "spec.meshTLS.identity: no certificate can prove this identity"
    if get(document, "spec.workloadIPs") in (None, []):
        yield "spec.workloadIPs: without an address no Service can send to it"
    if not texts(document, "metadata.labels"):
        yield "metadata.labels: without labels no Service selects it"


EXTERNAL_WORKLOAD: Final = Kind(
    group=GROUP,
    name="ExternalWorkload",
    plural="externalworkloads",
    singular="externalworkload",
    categories=("external",),
    versions=(
        Version(
            "v1beta1",
            _SCHEMAS["v1beta1"],
            columns=(value_column("Identity", "spec.meshTLS.identity"), AGE),
        ),
        Version(
            "v1alpha1",
            _SCHEMAS["v1alpha1"],
            columns=(value_column("Identity", "spec.meshTls.identity"), AGE),
        ),
    ),
    stored="v1beta1",
    view=ExternalWorkload,
    check=(_check,),
    warn=(_warn,),
    convert=by_schema(_SCHEMAS, _reshape),
)

KINDS: Final[tuple[Kind, ...]] = (EXTERNAL_WORKLOAD,)
