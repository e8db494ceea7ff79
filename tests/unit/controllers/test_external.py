from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.controllers.external import BEFORE, MANAGER, keys, plan
from isthmus.controllers.merge import merged
from isthmus.controllers.slices import MANAGED_BY
from isthmus.controllers.steps import Create, Delete, Update
from isthmus.engine import Put
from isthmus.mesh.census import Place
from isthmus.mesh.tables import NAMESPACES, SERVICE_NAME
from isthmus.model import ObjectKey
from isthmus.model.core import Namespace
from tests.support.compact import LONG_AGO, Compact, Document, Name, document
from tests.support.meshworld import LOCAL, World

QUAY = ObjectKey(LOCAL, "lab", "quay")
RESOURCE = "endpointslices.discovery.k8s.io"


def service(**said: Any) -> Compact:  # noqa: ANN401  # the notation's own
    ports = [{"port": 80, "target": "web"}]
    return {"svc": "lab/quay", "ports": ports, "selector": {"app": "quay"}, **said}


def workload(name: str = "vm", **said: Any) -> Compact:  # noqa: ANN401  # the notation's own
    return {
        "ew": f"lab/{name}",
        "ips": ["198.51.100.1"],
        "ports": [{"port": 8080, "name": "web"}],
        "labels": {"app": "quay"},
        "ready": True,
        **said,
    }


class Lab(World):
    """A world whose plans are carried out."""

    def __init__(self, *objects: Compact) -> None:
        super().__init__(*objects)
        self.db.commit([Put(NAMESPACES, ObjectKey(LOCAL, "", "lab"), Namespace())])
        self.slices: dict[str, Document] = {}

    def settle(self) -> list[Document]:
        for step in self.db.read(plan, QUAY):
            match step:
                case Create("endpointslices.discovery.k8s.io", "lab", name, document):
                    written = msgspec.json.decode(document)
                    written["metadata"]["uid"] = f"uid-{name}"
                    self.slices[name] = written
                case Update("endpointslices.discovery.k8s.io", "lab", name, _, merge):
                    change = msgspec.json.decode(merge)
                    self.slices[name] = merged(self.slices[name], change, LONG_AGO)
                case Delete("endpointslices.discovery.k8s.io", "lab", name):
                    del self.slices[name]
                    self.delete(f"slice lab/{name}")
                    continue
                case _:
                    pytest.fail(f"an odd step: {step}")
            self.write(Name(None, RESOURCE, "lab", step.name), self.slices[step.name])
        assert self.db.read(plan, QUAY) == ()
        return [self.slices[name] for name in sorted(self.slices)]


def only(*objects: Compact) -> Document:
    (found,) = Lab(*objects).settle()
    return found


def test_a_slice_says_everything_about_a_workload() -> None:
    labels = {"app": "quay", "topology.kubernetes.io/zone": "z4"}
    found = only(service(labels={"team": "x"}), workload(labels=labels))
    assert found["metadata"]["name"].startswith(f"{BEFORE}quay-")
    assert found["metadata"]["labels"] == {
        "team": "x", SERVICE_NAME: "quay", MANAGED_BY: MANAGER,
    }  # fmt: skip
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Service", "quay", "svc-lab-quay")
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert found["endpoints"] == [
        {
            "addresses": ["198.51.100.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "zone": "z4",
            "targetRef": {
                "kind": "ExternalWorkload",
                "namespace": "lab",
                "name": "vm",
                "uid": "ew-lab-vm",
            },
        }
    ]


def test_one_that_leaves_is_terminating_and_serves_still() -> None:
    lab = Lab(service(), workload())
    lab.settle()
    written = document(workload())
    written["status"]["conditions"].append({"type": "isthmus.dev/Leaving", "status": "True"})
    lab.write("ew lab/vm", written)
    (one,) = lab.settle()
    assert one["endpoints"][0]["conditions"] == {
        "ready": False, "serving": True, "terminating": True,
    }  # fmt: skip


def test_readiness_is_followed() -> None:
    lab = Lab(service(), workload(ready=False))
    (one,) = lab.settle()
    assert one["endpoints"][0]["conditions"]["ready"] is False
    lab.apply(workload())
    (one,) = lab.settle()
    assert one["endpoints"][0]["conditions"]["ready"] is True


@pytest.mark.parametrize(
    ("target", "declared", "found"),
    [
        ("web", [{"port": 8080, "name": "web"}], [8080]),
        ("web", [{"port": 8080, "name": "adm"}], []),
        (8080, [{"port": 8080, "name": "web"}], [8080]),
        (8080, [{"port": 8081}], []),
        (None, [{"port": 80}], [80]),
    ],
)
def test_a_port_must_be_declared_by_the_workload(
    target: object, declared: list[Compact], found: list[int]
) -> None:
    port = {"port": 80} if target is None else {"port": 80, "target": target}
    one = only(service(ports=[port]), workload(ports=declared))
    assert [each["port"] for each in one["ports"]] == found


def test_workloads_with_other_ports_are_in_slices_of_their_own() -> None:
    lab = Lab(service(), workload(), workload("vn", ports=[{"port": 9090, "name": "web"}]))
    assert sorted(one["ports"][0]["port"] for one in lab.settle()) == [8080, 9090]
    lab.delete("ew lab/vn")
    assert [one["ports"][0]["port"] for one in lab.settle()] == [8080]


def test_families() -> None:
    dual = workload(ips=["198.51.100.1", "2001:db8::1"])
    assert [one["addressType"] for one in Lab(service(), dual).settle()] == ["IPv4"]
    both = service(ips=["10.96.0.1", "fd00::1"])
    assert sorted(one["addressType"] for one in Lab(both, dual).settle()) == ["IPv4", "IPv6"]
    headless = Lab(service(ip="None"), dual).settle()
    assert sorted(one["addressType"] for one in headless) == ["IPv4", "IPv6"]
    assert {one["endpoints"][0]["hostname"] for one in headless} == {"vm"}
    assert all("service.kubernetes.io/headless" in one["metadata"]["labels"] for one in headless)
    six = Lab(service(ip="fd00::1"), workload())
    assert six.settle() == []


@pytest.mark.parametrize(
    ("svc", "vm"),
    [
        (service(selector={}), workload()),
        (service(type="ExternalName"), workload()),
        (service(selector={"app": "dock"}), workload()),
        (service(), workload(ips=[])),
        (service(), {**workload(), "ew": "port/vm"}),
    ],
)
def test_who_has_no_slices(svc: Compact, vm: Compact) -> None:
    assert Lab(svc, vm).settle() == []


def test_slices_go_with_the_last_workload() -> None:
    lab = Lab(service(), workload())
    assert lab.settle()
    lab.delete("ew lab/vm")
    assert lab.settle() == []


def test_the_services_of_kubernetes_itself_are_left_alone() -> None:
    world = World({"svc": "kube-system/dns", "ports": [53]}, {"svc": "lab/quay", "ports": [80]})
    assert world.db.read(keys, Place(LOCAL, "kube-system")) == ()
    assert world.db.read(keys, Place(LOCAL, "lab")) == (QUAY,)


def test_nothing_is_written_for_what_is_going() -> None:
    lab = Lab(service(), workload())
    assert lab.settle()
    lab.delete("svc lab/quay")
    assert lab.db.read(plan, QUAY) == ()
