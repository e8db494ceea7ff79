from __future__ import annotations

import pytest

from isthmus.controllers.nodeports import FIRST, LAST, RESERVED
from isthmus.errors import Invalid
from isthmus.model import Document
from tests.support.controlled import Cluster


def service(name: str = "web", /, **spec: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}], **spec},
    }


async def reserved(cluster: Cluster) -> list[int]:
    return [int(record.key.name) for record in (await cluster.store.list(RESERVED)).records]


def given(document: Document) -> list[int]:
    return [port.get("nodePort", 0) for port in document["spec"]["ports"]]


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_every_port_gets_one(cluster: Cluster, kind: str) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    numbers = given(await cluster.create(service(ports=ports, type=kind)))
    assert len(set(numbers)) == 2
    assert all(FIRST <= number <= LAST for number in numbers)
    assert await reserved(cluster) == sorted(numbers)


async def test_a_number_asked_for_is_given(cluster: Cluster) -> None:
    done = await cluster.create(service(ports=[{"port": 80, "nodePort": 30080}]))
    assert given(done) == [30080]


@pytest.mark.parametrize(
    ("port", "says"),
    [(30080, "already allocated"), (8080, "The range of valid ports is 30000-32767")],
)
async def test_a_number_that_cannot_be_is_refused(cluster: Cluster, port: int, says: str) -> None:
    await cluster.create(service("other", ports=[{"port": 80, "nodePort": 30080}]))
    with pytest.raises(Invalid, match=says) as refused:
        await cluster.create(service(ports=[{"port": 80, "nodePort": port}]))
    assert refused.value.causes[0].path == "spec.ports[0].nodePort"
    assert await reserved(cluster) == [30080]


async def test_ports_are_kept_by_updates_that_do_not_know_them(cluster: Cluster) -> None:
    before = given(await cluster.create(service()))
    assert (
        given(await cluster.update("services", "web", {"spec": {"ports": [{"port": 80}]}}))
        == before
    )


async def test_another_type_frees_them(cluster: Cluster) -> None:
    await cluster.create(service())
    after = await cluster.update("services", "web", {"spec": {"type": "ClusterIP"}})
    assert given(after) == [0]
    assert await reserved(cluster) == []


async def test_a_deleted_service_frees_them(cluster: Cluster) -> None:
    await cluster.create(service())
    await cluster.delete("services", "web")
    assert await reserved(cluster) == []


async def test_a_balancer_that_reaches_pods_itself_needs_none(cluster: Cluster) -> None:
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    assert given(await cluster.create(service(**spec))) == [0]


async def test_a_local_balancer_gets_a_health_check_port(cluster: Cluster) -> None:
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    done = await cluster.create(service(**spec))
    health = done["spec"]["healthCheckNodePort"]
    assert await reserved(cluster) == sorted([health, *given(done)])


async def test_one_number_may_serve_tcp_and_udp(cluster: Cluster) -> None:
    ports = [
        {"name": protocol.lower(), "port": 53, "protocol": protocol, "nodePort": 30053}
        for protocol in ("TCP", "UDP")
    ]
    assert given(await cluster.create(service(ports=ports))) == [30053, 30053]
