from __future__ import annotations

from isthmus.controllers.endpoints import MANAGED_BY, MANAGER, OVER_CAPACITY
from isthmus.model import Document
from tests.support.controlled import Cluster
from tests.support.objects import pod, service


async def only(cluster: Cluster) -> Document:
    await cluster.settle()
    [one] = await cluster.all("endpoints")
    return one


async def running(cluster: Cluster, name: str, ip: str, *, ready: bool = True) -> None:
    await cluster.create(pod(name, nodeName="n1"))
    await cluster.run_pod(name, ready=ready, ip=ip)


def said(endpoints: Document) -> list[tuple[list[str], list[str]]]:
    """Per subset: addresses ready, and not."""
    return [
        (
            [one["ip"] for one in subset.get("addresses", [])],
            [one["ip"] for one in subset.get("notReadyAddresses", [])],
        )
        for subset in endpoints.get("subsets", [])
    ]


async def test_ready_and_unready_addresses(cluster: Cluster) -> None:
    await cluster.create(service())
    await running(cluster, "b", "10.1.0.2")
    await running(cluster, "a", "10.1.0.1")
    await running(cluster, "c", "10.1.0.3", ready=False)
    found = await only(cluster)
    assert found["metadata"]["name"] == "web"
    assert found["metadata"]["labels"] == {MANAGED_BY: MANAGER}
    assert said(found) == [(["10.1.0.1", "10.1.0.2"], ["10.1.0.3"])]
    assert found["subsets"][0]["ports"] == [{"name": "http", "port": 80, "protocol": "TCP"}]
    assert found["subsets"][0]["addresses"][0]["nodeName"] == "n1"


async def test_a_leaving_pod_is_out(cluster: Cluster) -> None:
    await cluster.create(service())
    await running(cluster, "a", "10.1.0.1")
    await cluster.delete("pods", "a")
    assert said(await only(cluster)) == []


async def test_unready_ones_are_published_on_request(cluster: Cluster) -> None:
    await cluster.create(service(publishNotReadyAddresses=True))
    await running(cluster, "a", "10.1.0.1", ready=False)
    await running(cluster, "b", "10.1.0.2")
    await cluster.delete("pods", "b")
    assert said(await only(cluster)) == [(["10.1.0.1", "10.1.0.2"], [])]


async def test_labels_follow_the_service(cluster: Cluster) -> None:
    made = service(clusterIP="None")
    made["metadata"]["labels"] = {"team": "x"}
    await cluster.create(made)
    labels = {MANAGED_BY: MANAGER, "service.kubernetes.io/headless": ""}
    assert (await only(cluster))["metadata"]["labels"] == {"team": "x", **labels}
    await cluster.update("services", "web", {"metadata": {"labels": {"team": None}}})
    assert (await only(cluster))["metadata"]["labels"] == labels


async def test_over_a_thousand_the_rest_is_left_out_and_told(cluster: Cluster) -> None:
    await cluster.create(service())
    for number in range(1002):
        ip = f"10.1.{number // 200}.{number % 200 + 1}"
        await running(cluster, f"p{number}", ip, ready=number != 0)
    found = await only(cluster)
    [(ready, unready)] = said(found)
    assert (len(ready), unready) == (1000, [])
    assert found["metadata"]["annotations"] == {OVER_CAPACITY: "truncated"}
    await cluster.delete("pods", "p5", grace=0)
    await cluster.delete("pods", "p6", grace=0)
    found = await only(cluster)
    [(ready, unready)] = said(found)
    assert (len(ready), len(unready)) == (999, 1)
    assert "annotations" not in found["metadata"] or not found["metadata"]["annotations"]


async def test_they_go_with_the_service(cluster: Cluster) -> None:
    await cluster.create(service())
    await only(cluster)
    await cluster.delete("services", "web")
    await cluster.settle()
    assert await cluster.all("endpoints") == []


async def test_hand_made_ones_without_a_service_stay(cluster: Cluster) -> None:
    metadata = {"name": "x", "namespace": "shop"}
    await cluster.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata})
    assert (await only(cluster))["metadata"]["name"] == "x"
