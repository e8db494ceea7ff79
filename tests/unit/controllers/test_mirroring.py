from __future__ import annotations

import pytest

from isthmus.controllers.mirroring import LEADER, MANAGER, SKIP
from isthmus.controllers.slices import MANAGED_BY
from isthmus.mesh.tables import SERVICE_NAME
from isthmus.model import Document
from tests.support.controlled import Cluster
from tests.support.objects import service

SLICES = "endpointslices.discovery.k8s.io"
MIRROR = {"mirror.linkerd.io/cluster-name": "west"}


def endpoints(*ips: str, **metadata: Document) -> Document:
    subset = {"addresses": [{"ip": ip} for ip in ips], "ports": [{"name": "http", "port": 80}]}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "subsets": [subset] if ips else [],
    }


async def slices(cluster: Cluster) -> list[Document]:
    await cluster.settle()
    return await cluster.all(SLICES)


async def start(cluster: Cluster, document: Document) -> None:
    await cluster.create(service(selector=None))
    await cluster.create(document)


async def test_labels_annotations_and_addresses_are_mirrored(cluster: Cluster) -> None:
    gateway = {"mirror.linkerd.io/remote-gateway-identity": "gw", "kubectl.kubernetes.io/"
               "last-applied-configuration": "{}"}  # fmt: skip
    document = endpoints("192.0.2.1", labels=MIRROR, annotations=gateway)
    document["subsets"][0]["notReadyAddresses"] = [{"ip": "192.0.2.2", "hostname": "two"}]
    await start(cluster, document)
    [one] = await slices(cluster)
    assert one["metadata"]["labels"] == {**MIRROR, SERVICE_NAME: "web", MANAGED_BY: MANAGER}
    assert one["metadata"]["annotations"] == {"mirror.linkerd.io/remote-gateway-identity": "gw"}
    assert one["metadata"]["ownerReferences"][0]["kind"] == "Endpoints"
    assert one["ports"] == [{"name": "http", "protocol": "TCP", "port": 80}]
    assert one["endpoints"] == [
        {"addresses": ["192.0.2.1"], "conditions": {"ready": True}},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": False}, "hostname": "two"},
    ]


async def test_each_family_and_each_set_of_ports_has_its_slice(cluster: Cluster) -> None:
    document = endpoints("192.0.2.1", "2001:db8::1")
    document["subsets"].append({"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 81}]})
    await start(cluster, document)
    found = [(one["addressType"], one["ports"][0]["port"]) for one in await slices(cluster)]
    assert sorted(found) == [("IPv4", 80), ("IPv4", 81), ("IPv6", 80)]


async def test_changes_are_followed_in_place(cluster: Cluster) -> None:
    await start(cluster, endpoints("192.0.2.1"))
    [before] = await slices(cluster)
    await cluster.update("endpoints", "web", {"subsets": endpoints("192.0.2.9")["subsets"]})
    [after] = await slices(cluster)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["endpoints"][0]["addresses"] == ["192.0.2.9"]


@pytest.mark.parametrize(
    "metadata",
    [{"labels": {SKIP: "true"}}, {"annotations": {LEADER: "{}"}}],
    ids=["skip", "election"],
)
async def test_some_endpoints_are_not_mirrored(cluster: Cluster, metadata: Document) -> None:
    await start(cluster, endpoints("192.0.2.1", **metadata))
    assert await slices(cluster) == []


async def test_without_a_service_nothing_is_mirrored(cluster: Cluster) -> None:
    await cluster.create(endpoints("192.0.2.1"))
    assert await slices(cluster) == []


async def test_a_service_with_a_selector_writes_its_own(cluster: Cluster) -> None:
    await start(cluster, endpoints("192.0.2.1"))
    await slices(cluster)
    await cluster.update("services", "web", {"spec": {"selector": {"app": "web"}}})
    [one] = await slices(cluster)
    assert one["metadata"]["labels"][MANAGED_BY] != MANAGER


@pytest.mark.parametrize("resource", ["endpoints", "services"])
async def test_the_mirror_goes_with_what_it_mirrors(cluster: Cluster, resource: str) -> None:
    await start(cluster, endpoints("192.0.2.1"))
    assert len(await slices(cluster)) == 1
    await cluster.delete(resource, "web")
    assert await slices(cluster) == []


async def test_endpoints_without_addresses_have_no_slice(cluster: Cluster) -> None:
    await start(cluster, endpoints())
    assert await slices(cluster) == []
