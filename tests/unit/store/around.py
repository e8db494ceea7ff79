"""What the tests of Objects stand on: kinds, documents, changes, and an Objects over memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from isthmus.aio import ManualClock
from isthmus.errors import Cause
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Object
from isthmus.model.schema import Schema, Type
from isthmus.store import Memory
from isthmus.store.objects import Admission, Objects

JSON = Any

OBJECT = Schema(type=Type.OBJECT)


def positive_port(new: Document, old: Document | None) -> Iterator[Cause]:
    spec = new.get("spec") or {}
    if "port" not in spec:
        yield Cause("spec.port", "Required value", "FieldValueRequired")
    elif spec["port"] <= 0:
        yield Cause("spec.port", f"Invalid value: {spec['port']}: must be positive")
    if old is not None and (old["spec"].get("fixed") != spec.get("fixed")):
        yield Cause("spec.fixed", "Invalid value: field is immutable")


def protocol(new: Document) -> None:
    new.setdefault("spec", {}).setdefault("protocol", "TCP")


def kind(name: str, plural: str, **more: JSON) -> Kind:
    more |= {"versions": (Version("v1", OBJECT),), "stored": "v1", "group": more.get("group", "")}
    return Kind(name=name, plural=plural, singular=name.lower(), view=Object, **more)


SERVICE = kind("Service", "services", default=(protocol,), check=(positive_port,))
DEPLOYMENT = kind("Deployment", "deployments", group="apps")
CONFIG_MAP = kind("ConfigMap", "configmaps", status=False, generation=False)


def born_pending(new: Document, old: Document | None) -> None:
    if old is None:
        new["status"] = {"phase": "Pending"}


def born_active(new: Document, old: Document | None) -> None:
    if old is None:
        new["spec"] = {"finalizers": ["kubernetes"]}
        new["status"] = {"phase": "Active"}


POD = kind("Pod", "pods", carry=(born_pending,))
NODE = kind("Node", "nodes", namespaced=False)
NAMESPACE = kind(
    "Namespace", "namespaces", namespaced=False, generation=False, carry=(born_active,)
)

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Around:
    """An Objects over an empty store, and what it needs."""

    def __init__(self) -> None:
        self.store = Memory()
        self.clock = ManualClock()
        self.objects = self.with_admissions()

    def with_admissions(self, *admissions: Admission) -> Objects:
        return Objects(self.store, clock=self.clock, random=Random(1), admissions=admissions)

    async def raw(self, of: Kind, name: str, namespace: str = "faces") -> bytes | None:
        record = await self.store.get(of.key(namespace, name))
        return record.value if record else None


def service(name: str = "face", **spec: JSON) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "faces"},
        "spec": {"port": 80} | spec,
    }


def thing(of: Kind, name: str = "x", **fields: JSON) -> Document:
    metadata = {"name": name} | ({"namespace": "faces"} if of.namespaced else {})
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": of.api_version(), "kind": of.name, "metadata": metadata} | fields


def spec(**changes: JSON) -> Callable[[Document], Document]:
    return lambda document: {**document, "spec": {**document.get("spec", {}), **changes}}


def meta(**changes: JSON) -> Callable[[Document], Document]:
    def change(document: Document) -> Document:
        metadata = {**document["metadata"], **changes}
        kept = {field: value for field, value in metadata.items() if value is not None}
        return {**document, "metadata": kept}

    return change


def status(value: JSON) -> Callable[[Document], Document]:
    return lambda document: {**document, "status": value}
