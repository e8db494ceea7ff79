"""Node: a machine. Its labels say the zone, its status whether it lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, NONE, WIDE, text_column
from isthmus.model.document import items, strings, text, texts, truth
from isthmus.model.faults import duplicate, invalid
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Condition, Meta, View
from isthmus.model.names import cidr_problems
from isthmus.model.wire.schemas import schema_of

_ROLE: Final = "node-role.kubernetes.io/"


class NodeSpec(View, frozen=True):
    """core/v1 NodeSpec, in part."""

    unschedulable: bool = False
    provider_id: str = ""


class NodeAddress(View, frozen=True):
    """`type` is InternalIP, ExternalIP, Hostname, InternalDNS or ExternalDNS."""

    type: str = ""
    address: str = ""


class NodeCondition(Condition, frozen=True):
    """A condition; its heartbeat is left out on purpose."""


class NodeStatus(View, frozen=True):
    """core/v1 NodeStatus, in part."""

    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the Ready condition is True."""
        return any(each.type == "Ready" and each.status == "True" for each in self.conditions)


class Node(View, frozen=True):
    """core/v1 Node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def _status(document: Document, _now: float) -> str:
    words = ["Unknown"]
    for each in items(document, "status.conditions"):
        if text(each, "type") == "Ready":
            words = ["Ready" if text(each, "status") == "True" else "NotReady"]
    if truth(document, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(document: Document, _now: float) -> str:
    labels = texts(document, "metadata.labels")
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    if labels.get("kubernetes.io/role"):
        found.add(labels["kubernetes.io/role"])
    return ",".join(sorted(found)) or NONE


def _address_column(name: str, kind: str) -> Column:
    def cell(document: Document, _now: float) -> str:
        for each in items(document, "status.addresses"):
            if text(each, "type") == kind:
                return text(each, "address") or NONE
        return NONE

    return Column(name, cell, priority=WIDE)


def _info(name: str, path: str) -> Column:
    return text_column(name, f"status.nodeInfo.{path}", priority=WIDE, absent="<unknown>")


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    for index, network in enumerate(strings(document, "spec.podCIDRs")):
        for problem in cidr_problems(network):
            yield invalid(f"spec.podCIDRs[{index}]", network, problem)
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(items(document, "status.addresses")):
        pair = text(each, "type"), text(each, "address")
        if pair in seen:
            yield duplicate(f"status.addresses[{index}]", {"type": pair[0], "address": pair[1]})
        seen.add(pair)


NODE: Final = Kind(
    group="",
    name="Node",
    plural="nodes",
    singular="node",
    short_names=("no",),
    namespaced=False,
    versions=(
        Version(
            "v1",
            schema_of("core.v1.Node"),
            columns=(
                Column("Status", _status),
                Column("Roles", _roles),
                AGE,
                text_column("Version", "status.nodeInfo.kubeletVersion"),
                _address_column("Internal-IP", "InternalIP"),
                _address_column("External-IP", "ExternalIP"),
                _info("OS-Image", "osImage"),
                _info("Kernel-Version", "kernelVersion"),
                _info("Container-Runtime", "containerRuntimeVersion"),
            ),
        ),
    ),
    stored="v1",
    view=Node,
    check=(_check,),
    field_selectors={"spec.unschedulable": "spec.unschedulable"},
    generation=False,
    custom=False,
)
