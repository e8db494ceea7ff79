from __future__ import annotations

import ipaddress

import pytest

from isthmus.controllers.addresses import RESERVED
from isthmus.controllers.families import Network
from isthmus.errors import Invalid
from isthmus.model import Document
from isthmus.store.objects import Proposed, Verdict
from tests.support.controlled import NETWORKS, Cluster


def service(name: str = "web", /, **spec: object) -> Document:
    ports = [{"port": 80}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": ports, "selector": {"app": "web"}, **spec},
    }


async def reserved(cluster: Cluster) -> list[str]:
    return [record.key.name for record in (await cluster.store.list(RESERVED)).records]


async def two_families(*networks: Network) -> Cluster:
    cluster = Cluster(networks=networks or NETWORKS)
    await cluster.namespace()
    return cluster


async def test_a_service_gets_an_address_of_the_range(cluster: Cluster) -> None:
    spec = (await cluster.create(service()))["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in NETWORKS[0]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert await reserved(cluster) == [spec["clusterIP"]]


async def test_no_two_services_have_one_address(cluster: Cluster) -> None:
    given = [(await cluster.create(service(f"s{n}")))["spec"]["clusterIP"] for n in range(50)]
    assert len(set(given)) == 50


async def test_a_requested_address_is_given(cluster: Cluster) -> None:
    spec = (await cluster.create(service(clusterIP="10.96.0.10")))["spec"]
    assert spec["clusterIPs"] == ["10.96.0.10"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"clusterIP": "10.96.0.10"}, "provided IP is already allocated"),
        ({"clusterIP": "10.97.0.1"}, "not in the valid range. The range of valid IPs is 10.96"),
        ({"clusterIP": "10.96.0.0"}, "not in the valid range"),
        ({"clusterIP": "10.96.255.255"}, "not in the valid range"),
        ({"clusterIPs": ["fd00:96::1"], "ipFamilies": ["IPv4"]}, "expected an IPv4 value"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "not configured for dual-stack"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
    ],
)
async def test_refusals_name_the_field(cluster: Cluster, spec: Document, says: str) -> None:
    await cluster.create(service("taken", clusterIP="10.96.0.10"))
    with pytest.raises(Invalid, match=says) as refused:
        await cluster.create(service(**spec))
    assert refused.value.causes[0].path.startswith("spec.")
    assert await reserved(cluster) == ["10.96.0.10"]


async def test_a_deleted_service_gives_its_address_back(cluster: Cluster) -> None:
    await cluster.create(service(clusterIP="10.96.0.10"))
    await cluster.delete("services", "web")
    assert await reserved(cluster) == []
    await cluster.create(service("next", clusterIP="10.96.0.10"))


@pytest.mark.parametrize(
    "spec",
    [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "example.org"}],
    ids=["headless", "external name"],
)
async def test_some_services_need_no_address(cluster: Cluster, spec: Document) -> None:
    given = (await cluster.create(service(**spec)))["spec"]
    assert given.get("clusterIP", "None") == "None"
    assert await reserved(cluster) == []


async def test_an_update_that_leaves_the_address_out_keeps_it(cluster: Cluster) -> None:
    before = (await cluster.create(service()))["spec"]
    gone = {"clusterIP": None, "clusterIPs": None, "ipFamilies": None, "ipFamilyPolicy": None}
    after = (await cluster.update("services", "web", {"spec": gone}))["spec"]
    assert after["clusterIPs"] == before["clusterIPs"]


async def test_an_address_may_not_change(cluster: Cluster) -> None:
    await cluster.create(service(clusterIP="10.96.0.10"))
    other = {"clusterIP": "10.96.0.11", "clusterIPs": ["10.96.0.11"]}
    with pytest.raises(Invalid, match="may not change once set"):
        await cluster.update("services", "web", {"spec": other})


async def test_becoming_an_external_name_frees_the_address(cluster: Cluster) -> None:
    await cluster.create(service(clusterIP="10.96.0.10"))
    name = {"type": "ExternalName", "externalName": "example.org"}
    after = (await cluster.update("services", "web", {"spec": name}))["spec"]
    assert "clusterIP" not in after
    assert await reserved(cluster) == []


async def test_two_families_where_wanted() -> None:
    cluster = await two_families()
    spec = (await cluster.create(service(ipFamilyPolicy="PreferDualStack")))["spec"]
    assert spec["ipFamilies"] == ["IPv4", "IPv6"]
    four, six = map(ipaddress.ip_address, spec["clusterIPs"])
    assert (four in NETWORKS[0], six in NETWORKS[1]) == (True, True)
    after = await cluster.update("services", "web", {"spec": {"ipFamilyPolicy": "SingleStack"}})
    assert after["spec"]["clusterIPs"] == spec["clusterIPs"][:1]
    assert await reserved(cluster) == spec["clusterIPs"][:1]


async def test_the_second_family_can_come_later() -> None:
    cluster = await two_families()
    before = (await cluster.create(service()))["spec"]
    policy = {"ipFamilyPolicy": "RequireDualStack"}
    after = (await cluster.update("services", "web", {"spec": policy}))["spec"]
    assert after["clusterIPs"][0] == before["clusterIP"]
    assert len(await reserved(cluster)) == 2


async def test_a_family_can_be_chosen() -> None:
    cluster = await two_families()
    spec = (await cluster.create(service(ipFamilies=["IPv6"])))["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in NETWORKS[1]


async def test_a_full_range_is_told_and_every_address_was_used() -> None:
    cluster = await two_families(ipaddress.ip_network("10.96.0.0/28"))
    given = {(await cluster.create(service(f"s{n}")))["spec"]["clusterIP"] for n in range(14)}
    assert len(given) == 14
    with pytest.raises(Invalid, match="range 10.96.0.0/28 is full"):
        await cluster.create(service())


async def test_a_status_write_leaves_addresses_alone(cluster: Cluster) -> None:
    before = (await cluster.create(service()))["spec"]
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "172.17.0.9"}]}}}
    after = await cluster.update("services", "web", status, status=True)
    assert after["spec"] == before


@pytest.mark.parametrize("field", ["clusterIP", "nodePort"])
async def test_two_writers_that_choose_the_same_cannot_both_land(
    cluster: Cluster, field: str
) -> None:
    """The other one lands between the look and the write: the slower one looks again."""
    admissions = cluster.objects._admissions  # noqa: SLF001  # the race cannot be timed otherwise
    choices: dict[str, Document] = {
        "clusterIP": {"clusterIP": "10.96.0.10"},
        "nodePort": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
    }
    wanted = choices[field]
    raced: list[bool] = []

    class Racing:
        async def admit(self, proposed: Proposed) -> Verdict:
            if not raced:
                raced.append(True)
                await cluster.create(service("faster", **wanted))
            return Verdict(None)

    cluster.objects._admissions = (*admissions, Racing())  # noqa: SLF001
    with pytest.raises(Invalid, match="already allocated"):
        await cluster.create(service(**wanted))
    assert await cluster.names("services") == ["faster"]
