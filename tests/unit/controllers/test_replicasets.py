from __future__ import annotations

import pytest

from isthmus.controllers.steps import Create, Delete
from isthmus.model import Document
from tests.support.controlled import Cluster, key
from tests.support.objects import pod, reference, workload


async def start(cluster: Cluster, replicas: int, **spec: object) -> Document:
    document = await cluster.create(workload("ReplicaSet", "web", replicas, **spec))
    await cluster.settle()
    return document


async def status(cluster: Cluster) -> Document:
    row = await cluster.get("replicasets.apps", "web")
    assert row is not None
    found: Document = row["status"]
    return found


async def test_pods_are_as_the_template_says(cluster: Cluster) -> None:
    owner = await start(cluster, 2)
    for one in await cluster.all("pods"):
        meta = one["metadata"]
        assert meta["name"].startswith("web-")
        assert (meta["labels"], meta["generateName"]) == ({"app": "web"}, "web-")
        assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert meta["ownerReferences"][0]["controller"] is True
        assert one["spec"]["serviceAccountName"] == "default"
        assert one["status"]["phase"] == "Pending"


async def test_a_pod_that_goes_is_replaced_under_a_new_name(cluster: Cluster) -> None:
    await start(cluster, 3)
    before = await cluster.names("pods")
    await cluster.delete("pods", before[0])
    await cluster.settle()
    after = await cluster.names("pods")
    assert len(after) == 3
    assert before[0] not in after
    assert len(set(before) & set(after)) == 2


async def test_a_finished_pod_is_replaced_and_kept(cluster: Cluster) -> None:
    await start(cluster, 1)
    [name] = await cluster.names("pods")
    await cluster.update("pods", name, {"status": {"phase": "Failed"}}, status=True)
    await cluster.settle()
    assert len(await cluster.names("pods")) == 2
    assert (await status(cluster))["replicas"] == 1


async def test_counts(cluster: Cluster) -> None:
    await start(cluster, 3)
    one, two, _ = await cluster.names("pods")
    await cluster.run_pod(one)
    await cluster.run_pod(two, ready=False)
    await cluster.settle()
    assert await status(cluster) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 1,
    }


async def test_availability_takes_its_time(cluster: Cluster) -> None:
    await start(cluster, 1, minReadySeconds=10)
    [name] = await cluster.names("pods")
    await cluster.run_pod(name)
    await cluster.settle()
    assert "availableReplicas" not in await status(cluster)
    [moment] = cluster.moments()
    assert moment == int(cluster.clock.time()) + 10
    cluster.clock.advance(10)
    await cluster.settle()
    assert (await status(cluster))["availableReplicas"] == 1
    assert cluster.moments() == []


async def test_a_matching_pod_without_owner_is_adopted_and_counts(cluster: Cluster) -> None:
    await cluster.create(pod("stray"))
    owner = await cluster.create(workload("ReplicaSet", "web", 2))
    await cluster.absorb()
    plan = cluster.plan("replicasets", key("web"))
    assert sum(isinstance(step, Create) for step in plan) == 1
    await cluster.settle()
    stray = await cluster.get("pods", "stray")
    assert stray is not None
    assert stray["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert len(await cluster.names("pods")) == 2


async def test_a_pod_of_somebody_else_is_left_alone(cluster: Cluster) -> None:
    owner = await cluster.create(workload("ReplicaSet", "first", 1))
    other = pod("theirs")
    other["metadata"]["ownerReferences"] = [{**reference(owner), "controller": True}]
    await start(cluster, 1)
    await cluster.create(other)
    await cluster.absorb()
    assert cluster.plan("replicasets", key("web")) == ()


async def test_a_pod_that_stops_matching_is_released_and_replaced(cluster: Cluster) -> None:
    await start(cluster, 2)
    name = (await cluster.names("pods"))[0]
    await cluster.update("pods", name, {"metadata": {"labels": {"app": "debug"}}})
    await cluster.settle()
    released = await cluster.get("pods", name)
    assert released is not None
    assert not released["metadata"].get("ownerReferences")
    assert len(await cluster.names("pods")) == 3


async def scaled_down(cluster: Cluster, replicas: int) -> list[str]:
    await cluster.update("replicasets.apps", "web", {"spec": {"replicas": replicas}})
    await cluster.absorb()
    plan = cluster.plan("replicasets", key("web"))
    return [step.name for step in plan if isinstance(step, Delete)]


async def place(cluster: Cluster, name: str, node: str) -> None:
    await cluster.update("pods", name, {"spec": {"nodeName": node}})


async def test_unplaced_then_unready_pods_go_first(cluster: Cluster) -> None:
    await start(cluster, 4)
    unplaced, pending, unready, ready = await cluster.names("pods")
    for name, node in ((pending, "n1"), (unready, "n2"), (ready, "n3")):
        await place(cluster, name, node)
    await cluster.run_pod(unready, ready=False)
    await cluster.run_pod(ready)
    await cluster.settle()
    assert await scaled_down(cluster, 1) == [unplaced, pending, unready]


async def test_cheap_then_crowded_then_young_pods_go_first(cluster: Cluster) -> None:
    await start(cluster, 4)
    cheap, crowded, old, young = await cluster.names("pods")
    for name, node in ((cheap, "n1"), (crowded, "n2"), (old, "n3"), (young, "n4")):
        await place(cluster, name, node)
    await cluster.update("pods", cheap, {"metadata": {"annotations": {
        "controller.kubernetes.io/pod-deletion-cost": "-1"}}})  # fmt: skip
    for name in (cheap, crowded, old):
        await cluster.run_pod(name)
    cluster.clock.advance(60)
    await cluster.run_pod(young)
    await cluster.update("replicasets.apps", "web", {"spec": {"replicas": 5}})
    await cluster.settle()
    [neighbour] = set(await cluster.names("pods")) - {cheap, crowded, old, young}
    await place(cluster, neighbour, "n2")
    await cluster.run_pod(neighbour)
    await cluster.settle()
    order = await scaled_down(cluster, 0)
    assert order[0] == cheap
    assert order[1:3] == [neighbour, crowded]
    assert order[3:] == [young, old]


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
async def test_a_dying_set_makes_no_pods(cluster: Cluster, propagation: str) -> None:
    await start(cluster, 2)
    await cluster.delete("replicasets.apps", "web", propagation=propagation)
    await cluster.settle(kubelet=True)
    assert await cluster.names("pods") == []
    assert await cluster.names("replicasets.apps") == []


async def test_an_orphaned_pod_can_be_adopted_again(cluster: Cluster) -> None:
    await start(cluster, 2)
    before = await cluster.names("pods")
    await cluster.delete("replicasets.apps", "web", propagation="Orphan")
    await cluster.settle()
    assert await cluster.names("pods") == before
    await start(cluster, 2)
    assert await cluster.names("pods") == before


async def test_a_huge_number_is_made_in_bursts(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", 2**31 - 1))
    await cluster.create(workload("StatefulSet", "db", 2**31 - 1, podManagementPolicy="Parallel"))
    await cluster.absorb()
    for name, at in (("replicasets", "web"), ("statefulsets", "db")):
        assert (
            sum(isinstance(s, Create) and s.resource == "pods" for s in cluster.plan(name, key(at)))
            == 500
        )
