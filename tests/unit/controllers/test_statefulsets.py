from __future__ import annotations

import pytest

from isthmus.model import Document
from tests.support.controlled import Cluster
from tests.support.objects import image, pod, workload

RESOURCE = "statefulsets.apps"
REVISION = "controller-revision-hash"


async def start(cluster: Cluster, replicas: int = 2, *, run: bool = True, **spec: object) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas, serviceName="db", **spec))
    await cluster.settle(kubelet=run)


async def status(cluster: Cluster) -> Document:
    row = await cluster.get(RESOURCE, "db")
    assert row is not None
    found: Document = row["status"]
    return found


async def scale(cluster: Cluster, replicas: int) -> None:
    await cluster.update(RESOURCE, "db", {"spec": {"replicas": replicas}})
    await cluster.settle()


async def images(cluster: Cluster) -> dict[str, str]:
    return {
        one["metadata"]["name"]: one["spec"]["containers"][0]["image"]
        for one in await cluster.all("pods")
    }


async def test_pods_know_who_they_are(cluster: Cluster) -> None:
    await start(cluster)
    zero, _one = await cluster.all("pods")
    assert (zero["metadata"]["name"], zero["spec"]["hostname"]) == ("db-0", "db-0")
    assert zero["spec"]["subdomain"] == "db"
    assert zero["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-0",
        "apps.kubernetes.io/pod-index": "0",
        REVISION: (await status(cluster))["updateRevision"],
    }


async def test_in_order_each_waits_for_the_one_before(cluster: Cluster) -> None:
    await start(cluster, 3, run=False)
    assert await cluster.names("pods") == ["db-0"]
    await cluster.run_pod("db-0", ready=False)
    await cluster.settle()
    assert await cluster.names("pods") == ["db-0"]
    await cluster.run_pod("db-0")
    await cluster.settle()
    assert await cluster.names("pods") == ["db-0", "db-1"]


async def test_in_parallel_nobody_waits(cluster: Cluster) -> None:
    await start(cluster, 3, run=False, podManagementPolicy="Parallel")
    assert await cluster.names("pods") == ["db-0", "db-1", "db-2"]


async def test_scaling_down_takes_the_highest_first(cluster: Cluster) -> None:
    await start(cluster, 3)
    for name in await cluster.names("pods"):
        await cluster.update("pods", name, {"spec": {"nodeName": "n"}})
    await scale(cluster, 1)
    going = [one for one in await cluster.all("pods") if one["metadata"].get("deletionTimestamp")]
    assert [one["metadata"]["name"] for one in going] == ["db-2"]
    await cluster.settle(kubelet=True)
    assert await cluster.names("pods") == ["db-0"]


async def test_a_failed_pod_is_made_again(cluster: Cluster) -> None:
    await start(cluster)
    before = await cluster.get("pods", "db-0")
    await cluster.update("pods", "db-0", {"status": {"phase": "Failed"}}, status=True)
    await cluster.settle(kubelet=True)
    after = await cluster.get("pods", "db-0")
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_counting_may_begin_elsewhere(cluster: Cluster) -> None:
    await start(cluster, 2, ordinals={"start": 5})
    assert await cluster.names("pods") == ["db-5", "db-6"]


async def test_a_rollout_goes_down_from_the_top_and_ends(cluster: Cluster) -> None:
    await start(cluster, 3)
    old = (await status(cluster))["currentRevision"]
    await cluster.update(RESOURCE, "db", image("y"))
    await cluster.settle()
    assert await images(cluster) == {"db-0": "x", "db-1": "x", "db-2": "y"}
    during = await status(cluster)
    assert (during["currentRevision"], during["updatedReplicas"]) == (old, 1)
    assert during["updateRevision"] != old
    await cluster.settle(kubelet=True)
    assert set((await images(cluster)).values()) == {"y"}
    assert await status(cluster) == {
        "observedGeneration": 2,
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": during["updateRevision"],
        "updateRevision": during["updateRevision"],
    }


async def test_below_the_partition_pods_stay_and_come_back_as_they_were(cluster: Cluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await start(cluster, 3, updateStrategy=strategy)
    await cluster.update(RESOURCE, "db", image("y"))
    await cluster.settle(kubelet=True)
    assert await images(cluster) == {"db-0": "x", "db-1": "x", "db-2": "y"}
    await cluster.delete("pods", "db-0")
    await cluster.delete("pods", "db-2")
    await cluster.settle(kubelet=True)
    assert await images(cluster) == {"db-0": "x", "db-1": "x", "db-2": "y"}


async def test_on_delete_only_deletion_brings_the_new(cluster: Cluster) -> None:
    await start(cluster, 2, updateStrategy={"type": "OnDelete"})
    await cluster.update(RESOURCE, "db", image("y"))
    await cluster.settle(kubelet=True)
    assert set((await images(cluster)).values()) == {"x"}
    await cluster.delete("pods", "db-0")
    await cluster.settle(kubelet=True)
    assert await images(cluster) == {"db-0": "y", "db-1": "x"}


async def test_availability_takes_its_time(cluster: Cluster) -> None:
    await start(cluster, 2, run=False, minReadySeconds=10)
    await cluster.run_pod("db-0")
    await cluster.settle()
    assert await cluster.names("pods") == ["db-0"]
    assert (await status(cluster))["availableReplicas"] == 0
    cluster.clock.advance(10)
    await cluster.settle()
    assert await cluster.names("pods") == ["db-0", "db-1"]


async def test_old_templates_are_kept_up_to_the_limit(cluster: Cluster) -> None:
    await start(cluster, 1, revisionHistoryLimit=2)
    for name in "abcd":
        await cluster.update(RESOURCE, "db", image(name))
        await cluster.settle(kubelet=True)
    revisions = await cluster.all("controllerrevisions.apps")
    assert sorted(one["revision"] for one in revisions) == [3, 4, 5]
    await cluster.update(RESOURCE, "db", image("c"))
    await cluster.settle(kubelet=True)
    revisions = await cluster.all("controllerrevisions.apps")
    assert sorted(one["revision"] for one in revisions) == [3, 5, 6]


@pytest.mark.parametrize("name", ["db-x", "db-00", "db-", "other-0", "db-0-1"])
async def test_only_its_own_names_are_adopted(cluster: Cluster, name: str) -> None:
    if not name.endswith("-"):
        await cluster.create(pod(name, {"app": "db"}))
    await start(cluster, 1)
    stray = await cluster.get("pods", name)
    assert stray is None or not stray["metadata"].get("ownerReferences")


async def test_a_pod_of_its_name_is_adopted(cluster: Cluster) -> None:
    await cluster.create(pod("db-0", {"app": "db"}))
    await start(cluster, 1)
    found = await cluster.get("pods", "db-0")
    assert found is not None
    assert found["metadata"]["ownerReferences"][0]["name"] == "db"


async def test_a_foreign_pod_in_the_way_is_waited_for(cluster: Cluster) -> None:
    await cluster.create(pod("db-0", {"app": "other"}))
    await start(cluster, 1)
    assert (await status(cluster))["replicas"] == 0
    await cluster.delete("pods", "db-0")
    await cluster.settle(kubelet=True)
    assert (await status(cluster))["replicas"] == 1
