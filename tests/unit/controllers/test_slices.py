from __future__ import annotations

import pytest

from isthmus.controllers.slices import MANAGED_BY, MANAGER
from isthmus.mesh.tables import SERVICE_NAME
from isthmus.model import Document
from isthmus.model.times import format_time
from tests.support.controlled import NETWORKS, Cluster, key
from tests.support.objects import pod, service

SLICES = "endpointslices.discovery.k8s.io"


async def slices(cluster: Cluster) -> list[Document]:
    await cluster.settle()
    return await cluster.all(SLICES)


async def only(cluster: Cluster) -> Document:
    [one] = await slices(cluster)
    return one


async def running(cluster: Cluster, name: str, *, ready: bool = True, **spec: object) -> Document:
    await cluster.create(pod(name, **spec))
    await cluster.run_pod(name, ready=ready)
    found = await cluster.get("pods", name)
    assert found is not None
    return found


async def test_a_slice_says_everything_about_a_pod(cluster: Cluster) -> None:
    node = {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}
    await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": node})
    made = await cluster.create(service(ports=[{"name": "http", "port": 80, "targetPort": 8080}]))
    one = await running(cluster, "a", nodeName="n1", hostname="first", subdomain="web")
    found = await only(cluster)
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert found["endpoints"] == [
        {
            "addresses": [one["status"]["podIP"]],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "hostname": "first",
            "nodeName": "n1",
            "zone": "z1",
            "targetRef": {
                "kind": "Pod",
                "namespace": "shop",
                "name": "a",
                "uid": one["metadata"]["uid"],
            },
        }
    ]
    meta = found["metadata"]
    assert meta["labels"] == {SERVICE_NAME: "web", MANAGED_BY: MANAGER}
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "name": "web",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


async def test_a_service_without_pods_has_an_empty_slice(cluster: Cluster) -> None:
    await cluster.create(service())
    found = await only(cluster)
    assert (found["endpoints"], found["ports"]) == ([], [])


@pytest.mark.parametrize(
    ("ready", "leaving", "publish", "said"),
    [
        (True, False, False, (True, True, False)),
        (False, False, False, (False, False, False)),
        (True, True, False, (False, True, True)),
        (False, True, False, (False, False, True)),
        (False, False, True, (True, False, False)),
        (True, True, True, (True, True, True)),
    ],
)
async def test_conditions(
    cluster: Cluster, ready: bool, leaving: bool, publish: bool, said: tuple[bool, bool, bool]
) -> None:
    await cluster.create(service(publishNotReadyAddresses=publish))
    await running(cluster, "a", ready=ready, nodeName="n1")
    if leaving:
        await cluster.delete("pods", "a")
    [endpoint] = (await only(cluster))["endpoints"]
    conditions = endpoint["conditions"]
    assert (conditions["ready"], conditions["serving"], conditions["terminating"]) == said


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_ended_is_not_in(cluster: Cluster, phase: str) -> None:
    await cluster.create(service())
    await running(cluster, "a")
    await cluster.update("pods", "a", {"status": {"phase": phase}}, status=True)
    assert (await only(cluster))["endpoints"] == []


async def test_a_pod_without_address_is_not_in(cluster: Cluster) -> None:
    await cluster.create(service())
    await cluster.create(pod("a"))
    assert (await only(cluster))["endpoints"] == []


def container(name: str, number: int) -> Document:
    ports = [{"name": name, "containerPort": number}]
    return {"containers": [{"name": "c", "image": "x", "ports": ports}]}


async def test_a_named_port_is_looked_up_in_each_pod(cluster: Cluster) -> None:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    await cluster.create(service(ports=ports))
    for name, (port, number) in {"a": ("http", 8080), "b": ("http", 9090), "c": ("x", 1)}.items():
        await running(cluster, name, **container(port, number))
    found = {
        one["endpoints"][0]["targetRef"]["name"]: [port["port"] for port in one["ports"]]
        for one in await slices(cluster)
    }
    assert found == {"a": [8080], "b": [9090], "c": []}


async def test_a_native_sidecar_may_have_the_port(cluster: Cluster) -> None:
    await cluster.create(service(ports=[{"name": "web", "port": 80, "targetPort": "in"}]))
    ports = [{"name": "in", "containerPort": 4143}]
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "ports": ports}
    await running(cluster, "a", initContainers=[sidecar])
    assert (await only(cluster))["ports"][0]["port"] == 4143


async def test_labels_of_the_service_are_taken_over(cluster: Cluster) -> None:
    made = service(clusterIP="None")
    made["metadata"]["labels"] = {"team": "x", MANAGED_BY: "me", "kubernetes.io/service-name": "y"}
    await cluster.create(made)
    expected = {SERVICE_NAME: "web", MANAGED_BY: MANAGER, "service.kubernetes.io/headless": ""}
    assert (await only(cluster))["metadata"]["labels"] == {"team": "x", **expected}
    await cluster.update("services", "web", {"metadata": {"labels": {"team": None, "a": "b"}}})
    assert (await only(cluster))["metadata"]["labels"] == {"a": "b", **expected}


async def test_each_family_has_its_slice() -> None:
    cluster = Cluster(networks=NETWORKS)
    await cluster.namespace()
    await cluster.create(service(ipFamilyPolicy="RequireDualStack"))
    await running(cluster, "both")
    ips = [{"ip": "10.1.0.9"}, {"ip": "fd00::9"}]
    status = {"status": {"podIP": "10.1.0.9", "podIPs": ips}}
    await cluster.update("pods", "both", status, status=True)
    await running(cluster, "four")
    found = {one["addressType"]: one["endpoints"] for one in await slices(cluster)}
    assert [one["addresses"] for one in found["IPv6"]] == [["fd00::9"]]
    assert len(found["IPv4"]) == 2


async def test_a_slice_is_changed_not_replaced(cluster: Cluster) -> None:
    await cluster.create(service())
    before = (await only(cluster))["metadata"]["uid"]
    await running(cluster, "a")
    await cluster.update("services", "web", {"spec": {"ports": [{"name": "http", "port": 81}]}})
    after = await only(cluster)
    assert (after["metadata"]["uid"], after["ports"][0]["port"]) == (before, 81)


async def test_a_service_of_the_same_name_starts_anew(cluster: Cluster) -> None:
    await cluster.create(service())
    await running(cluster, "a")
    await cluster.settle()
    await cluster.delete("services", "web")
    made = await cluster.create(service(selector={"app": "other"}))
    found = await only(cluster)
    assert found["endpoints"] == []
    assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


async def test_slices_of_others_are_left_alone(cluster: Cluster) -> None:
    theirs = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "x", "namespace": "shop", "labels": {SERVICE_NAME: "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"]}],
    }
    await cluster.create(theirs)
    await cluster.create(service())
    assert len(await slices(cluster)) == 2
    await cluster.delete("services", "web")
    assert [one["metadata"]["name"] for one in await slices(cluster)] == ["x"]


async def test_without_selector_slices_are_somebody_elses_work(cluster: Cluster) -> None:
    await cluster.create(service())
    await cluster.settle()
    await cluster.update("services", "web", {"spec": {"selector": None}})
    assert await slices(cluster) == []


async def test_hundreds_of_pods_are_packed_and_stay(cluster: Cluster) -> None:
    await cluster.create(service())
    for number in range(230):
        await running(cluster, f"p{number}")
    before = {one["metadata"]["name"]: one["endpoints"] for one in await slices(cluster)}
    assert sorted(map(len, before.values())) == [30, 100, 100]
    await cluster.delete("pods", "p17")
    after = {one["metadata"]["name"]: one["endpoints"] for one in await slices(cluster)}
    assert sum(after[name] != before[name] for name in before) == 1


async def test_one_pod_changes_one_slice_and_nothing_else(cluster: Cluster) -> None:
    for name in ("web", "other"):
        await cluster.create(service(name, selector={"app": name}))
    await running(cluster, "a")
    await cluster.settle()
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(
        cluster.clock.utc())}  # fmt: skip
    await cluster.update("pods", "a", {"status": {"conditions": [condition]}}, status=True)
    before = cluster.db.stats.evaluations
    await cluster.absorb()
    assert cluster.plan("endpointslices", key("other")) == ()
    assert len(cluster.plan("endpointslices", key("web"))) == 1
    assert cluster.db.stats.evaluations - before <= 4


async def test_zones_are_hinted_where_the_service_asks(cluster: Cluster) -> None:
    node = {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}
    await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": node})
    await cluster.create(service(trafficDistribution="PreferClose"))
    await running(cluster, "a", nodeName="n1")
    [endpoint] = (await only(cluster))["endpoints"]
    assert endpoint["hints"] == {"forZones": [{"name": "z1"}]}
