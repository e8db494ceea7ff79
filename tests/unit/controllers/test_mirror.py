"""What the cases of tests/interop do not tell: names that collide, Links that do, bad input."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.engine import Database
from isthmus.mesh.exports import targets
from tests.support.controlled import CLUSTER
from tests.support.linked import MC, LinkedWorld

pytestmark = pytest.mark.anyio

FLAT = {"mirror.linkerd.io/exported": "remote-discovery"}
MEMBER = {"mirror.linkerd.io/federated": "member"}
GATEWAY = {"address": "192.0.2.7", "port": "4143", "identity": "gateway"}


@pytest.fixture
async def world() -> LinkedWorld:
    """A cluster with the namespaces of links and `shop`."""
    world = LinkedWorld()
    await world.start()
    await world.apply({"ns": "shop"})
    return world


async def export(world: LinkedWorld, cluster: str, name: str, **more: Any) -> None:  # noqa: ANN401
    compact = {"in": cluster, "svc": f"shop/{name}", "ports": [80], "labels": FLAT}
    await world.apply({**compact, **more})


async def remote_of(world: LinkedWorld, name: str) -> tuple[str, str]:
    found = await world.service(f"shop/{name}")
    assert found is not None
    labels = found["metadata"]["labels"]
    remote = labels["multicluster.linkerd.io/remote-service"]
    return labels["mirror.linkerd.io/cluster-name"], remote


# ------------------------------------------------------------------------------- names


@pytest.mark.parametrize("first", ["c", "b-c"])
async def test_of_two_exports_with_one_name_the_older_link_has_it(
    world: LinkedWorld, first: str
) -> None:
    """`a-b` of `c` and `a` of `b-c`: whoever was there first, the same one has the name."""
    await world.link("b-c")
    await world.link("c")
    for cluster in ("c", "b-c") if first == "c" else ("b-c", "c"):
        await export(world, cluster, "a-b" if cluster == "c" else "a")
        world.sync(cluster)
        await world.settle()
    assert await remote_of(world, "a-b-c") == ("b-c", "a")
    assert (await world.reports("b-c", "mirror"))["shop/a"]["status"] == "True"
    loser = (await world.reports("c", "mirror"))["shop/a-b"]
    assert (loser["status"], loser["reason"]) == ("False", "Error")
    assert "mirror of a of cluster b-c" in loser["message"]
    await world.delete("b-c: svc shop/a")
    await world.settle()
    assert await remote_of(world, "a-b-c") == ("c", "a-b")
    assert (await world.reports("c", "mirror"))["shop/a-b"]["status"] == "True"


async def test_a_persons_service_is_never_touched(world: LinkedWorld) -> None:
    await world.apply({"svc": "shop/cart-east", "ports": [7], "labels": {"mine": "1"}})
    before = await world.service("shop/cart-east")
    await world.link("east", gateway=GATEWAY)
    await export(world, "east", "cart", labels={"mirror.linkerd.io/exported": "true"})
    await world.apply({"in": "east", "slice": "shop/c", "svc": "cart", "eps": [{"ip": "10.0.0.1"}]})
    world.sync("east")
    await world.settle()
    assert await world.service("shop/cart-east") == before
    assert await world.endpoints("shop/cart-east") is None
    report = (await world.reports("east", "mirror"))["shop/cart"]
    assert (report["status"], report["reason"]) == ("False", "Error")
    assert "not ours" in report["message"]
    await world.delete("svc shop/cart-east")
    await world.settle()
    assert (await world.reports("east", "mirror"))["shop/cart"]["status"] == "True"


async def test_a_mirror_of_a_real_service_mirror_is_taken_on(world: LinkedWorld) -> None:
    """Labels say that it is one; what people put on it stays."""
    labels = {
        "mirror.linkerd.io/mirrored-service": "true",
        "mirror.linkerd.io/cluster-name": "east",
        "team": "stale",
        "own": "1",
    }
    await world.apply({"svc": "shop/cart-east", "ports": [7], "labels": labels})
    await world.link("east")
    await export(world, "east", "cart", labels={**FLAT, "team": "red"})
    world.sync("east")
    await world.settle()
    found = await world.service("shop/cart-east")
    assert found is not None
    assert found["metadata"]["labels"] == {
        **labels,
        "team": "red",
        "multicluster.linkerd.io/remote-discovery": "east",
        "multicluster.linkerd.io/remote-service": "cart",
    }
    assert [port["port"] for port in found["spec"]["ports"]] == [80]


async def test_a_cluster_called_federated_has_no_mirrors(world: LinkedWorld) -> None:
    await world.link("federated")
    await export(world, "federated", "cart")
    world.sync("federated")
    await world.settle()
    assert await world.here.names("services") == []
    report = (await world.reports("federated", "mirror"))["shop/cart"]
    assert "kept for a federated Service" in report["message"]


@pytest.mark.parametrize(
    ("cluster", "name", "more", "why"),
    [
        ("east", "x" * 60, {}, "no name of a Service"),
        ("far.east", "cart", {}, "no name of a Service"),
        ("east", "cart", {"type": "ExternalName"}, "ExternalName"),
        ("east", "cart", {"ports": []}, "no exposed ports"),
    ],
)
async def test_what_cannot_be_mirrored_is_told(
    world: LinkedWorld, cluster: str, name: str, more: dict[str, Any], why: str
) -> None:
    await world.link(cluster)
    await export(world, cluster, name, **more)
    await export(world, cluster, "fine")
    world.sync(cluster)
    await world.settle()
    report = (await world.reports(cluster, "mirror"))[f"shop/{name}"]
    assert (report["status"], report["reason"]) == ("False", "InvalidService")
    assert why in report["message"]
    assert await world.here.names("services") == (["fine-east"] if cluster == "east" else [])
    events = await world.here.all("events", MC)
    assert any(f"shop/{name}" in each["message"] for each in events)
    assert all(each["involvedObject"]["kind"] == "Link" for each in events)


@pytest.mark.parametrize(
    ("gateway", "why"), [(None, "no gatewayAddress"), ({**GATEWAY, "port": "https"}, "gatewayPort")]
)
async def test_a_gateway_that_cannot_be_reached(
    world: LinkedWorld, gateway: dict[str, str] | None, why: str
) -> None:
    selector = {"matchLabels": {"mirror.linkerd.io/exported": "true"}}
    await world.link("east", gateway=gateway, selector=selector)
    await export(world, "east", "cart", labels={"mirror.linkerd.io/exported": "true"})
    world.sync("east")
    await world.settle()
    report = (await world.reports("east", "mirror"))["shop/cart"]
    assert (report["status"], report["reason"]) == ("False", "Error")
    assert why in report["message"]
    assert await world.here.names("services") == []


# ------------------------------------------------------------------------------- links


async def test_of_two_links_to_one_cluster_the_older_counts(world: LinkedWorld) -> None:
    await world.link("east", name="first")
    await world.link("east", name="second", federatedServiceSelector={"matchLabels": FLAT})
    await export(world, "east", "cart")
    world.sync("east")
    await world.settle()
    assert await world.here.names("services") == ["cart-east"]
    assert (await world.reports("second", "mirror")) == {}
    conditions = {each["type"]: each for each in (await world.status("second"))["conditions"]}
    assert (conditions["Accepted"]["status"], conditions["Accepted"]["reason"]) == (
        "False",
        "DuplicateCluster",
    )
    assert "first" in conditions["Accepted"]["message"]
    await world.here.delete("links.multicluster.linkerd.io", "first", ns=MC)
    await world.settle()
    assert await world.here.names("services") == ["cart-east", "cart-federated"]


@pytest.mark.parametrize("name", [CLUSTER, ""])
async def test_a_link_that_leads_nowhere_says_so(world: LinkedWorld, name: str) -> None:
    await world.apply({"svc": "shop/cart", "ports": [80], "labels": {**FLAT, "mine": "1"}})
    await world.link(name, name="odd")
    await world.settle()
    assert await world.here.names("services") == ["cart"]
    status = await world.status("odd")
    [accepted] = [each for each in status["conditions"] if each["type"] == "Accepted"]
    assert accepted["status"] == "False"
    assert (status["mirrorServices"], status["federatedServices"]) == ([], [])


async def test_a_cluster_that_is_renamed_takes_its_mirrors_along(world: LinkedWorld) -> None:
    await world.link("east")
    await export(world, "east", "cart")
    world.sync("east")
    await world.settle()
    await world.relink("east", targetClusterName="orient")
    world.lose("east")
    await export(world, "orient", "cart")
    world.sync("orient")
    await world.settle()
    assert await world.here.names("services") == ["cart-orient"]


async def test_links_in_a_circle_do_not_grow(world: LinkedWorld) -> None:
    """A mirror there matches a selector of people's labels; it is no export unless it says so."""
    await world.link("east", remoteDiscoverySelector={"matchLabels": {"team": "red"}})
    made = {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "here"}
    await export(world, "east", "cart-here", labels={**made, "team": "red"})
    await export(world, "east", "pay-here", labels={**made, **FLAT, "team": "red"})
    world.sync("east")
    await world.settle()
    assert await world.here.names("services") == ["pay-here-east"]


# -------------------------------------------------------------------- people, and time


async def test_what_people_take_away_comes_back(world: LinkedWorld) -> None:
    await world.link("east", gateway=GATEWAY)
    await export(world, "east", "cart", labels={"mirror.linkerd.io/exported": "true"})
    await world.apply({"in": "east", "slice": "shop/c", "svc": "cart", "eps": [{"ip": "10.0.0.1"}]})
    world.sync("east")
    await world.settle()
    await world.here.delete("endpoints", "cart-east")
    await world.here.update("services", "cart-east", {"spec": {"selector": {"app": "mine"}}})
    await world.settle()
    found, endpoints = (
        await world.service("shop/cart-east"),
        await world.endpoints("shop/cart-east"),
    )
    assert found is not None
    assert endpoints is not None
    assert "selector" not in found["spec"]
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "192.0.2.7"}]


async def test_a_namespace_on_its_way_out_gets_nothing(world: LinkedWorld) -> None:
    await world.link("east")
    await world.apply({"svc": "shop/own", "ports": [80]})
    await world.here.update("services", "own", {"metadata": {"finalizers": ["isthmus.test/keep"]}})
    await world.here.delete("namespaces", "shop", ns="")
    await export(world, "east", "cart")
    world.sync("east")
    await world.settle()
    assert await world.here.names("services") == ["own"]
    report = (await world.reports("east", "mirror"))["shop/cart"]
    assert report["reason"] == "MissingNamespace"
    assert "being deleted" in report["message"]


async def test_a_restart_reads_the_same_from_the_tables(world: LinkedWorld) -> None:
    await world.link("east")
    await world.link("west")
    await export(world, "east", "cart", labels={**FLAT, **MEMBER})
    await export(world, "west", "cart", labels=MEMBER)
    world.sync("east")
    world.sync("west")
    await world.settle()
    held = await world.service("shop/cart-federated")
    world.lose("east")
    world.lose("west")
    assert await world.settle() == 0
    world.sync("west")
    assert await world.settle() == 0
    assert await world.service("shop/cart-federated") == held


async def test_dates_move_with_the_status_alone(world: LinkedWorld) -> None:
    await world.link("east")
    await export(world, "east", "cart")
    world.sync("east")
    await world.settle()
    first = (await world.reports("east", "mirror"))["shop/cart"]
    world.here.clock.advance(60)
    await export(world, "east", "pay")
    await world.settle()
    found = await world.reports("east", "mirror")
    assert found["shop/cart"] == first
    assert found["shop/pay"]["lastTransitionTime"] > first["lastTransitionTime"]
    world.here.clock.advance(60)
    await export(world, "east", "cart", ports=[])
    await world.settle()
    last = (await world.reports("east", "mirror"))["shop/cart"]
    assert last["lastTransitionTime"] > found["shop/pay"]["lastTransitionTime"]


async def test_events_are_bounded_and_go_with_what_they_tell(world: LinkedWorld) -> None:
    await world.link("east")
    for at in range(40):
        await export(world, "east", f"s{at}", type="ExternalName")
    world.sync("east")
    await world.settle()
    assert len(await world.here.all("events", MC)) == 16
    for at in range(40):
        await export(world, "east", f"s{at}")
    await world.settle()
    assert await world.here.all("events", MC) == []


async def test_what_was_made_is_admitted_like_anything(world: LinkedWorld) -> None:
    await world.link("east")
    await export(world, "east", "cart", labels={**FLAT, **MEMBER})
    world.sync("east")
    await world.settle()
    made = [await world.service(f"shop/cart-{name}") for name in ("east", "federated")]
    ips = {each["spec"]["clusterIP"] for each in made if each is not None}
    assert len(ips) == 2
    assert all(ip.startswith("10.96.") for ip in ips)


def test_without_links_there_are_no_targets() -> None:
    assert Database().read(targets, CLUSTER) == ()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ip": "None"}, "Headless service cannot join"),
        ({"type": "ExternalName"}, "ExternalName"),
        ({"svc": f"shop/{'x' * 54}"}, "too long"),
    ],
)
async def test_what_cannot_join_is_told_and_nothing_is_tried(
    world: LinkedWorld, more: dict[str, Any], why: str
) -> None:
    await world.link("east")
    compact = {"in": "east", "svc": "shop/odd", "ports": [80], "labels": MEMBER}
    await world.apply({**compact, **more})
    world.sync("east")
    await world.settle()
    assert await world.here.names("services") == []
    [report] = (await world.reports("east", "federated")).values()
    assert (report["status"], report["reason"]) == ("False", "InvalidService")
    assert why in report["message"]


async def test_shares_that_nobody_understands_are_told(world: LinkedWorld) -> None:
    await world.link("east")
    await world.apply({"in": "east", "svc": "shop/cart", "ports": [80], "labels": MEMBER})
    world.sync("east")
    await world.settle()
    note = {"annotations": {"multicluster.isthmus.dev/member.west": "weight=2"}}
    await world.metadata("svc shop/cart-federated", note)
    await world.settle()
    found = await world.service("shop/cart-federated")
    assert found is not None
    conditions = {each["type"]: each for each in found["status"]["conditions"]}
    told = conditions["multicluster.isthmus.dev/SharesUnderstood"]
    assert told["status"] == "False"
    assert "no member is of a cluster west" in told["message"]
    gone = {"annotations": {"multicluster.isthmus.dev/member.west": None}}
    await world.metadata("svc shop/cart-federated", gone)
    await world.settle()
    found = await world.service("shop/cart-federated")
    assert found is not None
    assert [each["type"] for each in found["status"]["conditions"]] == [
        "multicluster.isthmus.dev/PortsAgree"
    ]


async def test_a_mirror_that_copies_nothing_any_more_is_as_a_new_one(world: LinkedWorld) -> None:
    await world.link("east")
    await export(world, "east", "cart", labels={**FLAT, "team": "red"})
    world.sync("east")
    await world.settle()
    await export(world, "east", "cart")
    await world.settle()
    before = await world.service("shop/cart-east")
    await world.delete("svc shop/cart-east")
    await world.settle()
    after = await world.service("shop/cart-east")
    assert before is not None
    assert after is not None
    for keys in ("labels", "annotations"):
        assert after["metadata"][keys] == before["metadata"][keys]
