from __future__ import annotations

import pytest

from isthmus.controllers.steps import Wait
from isthmus.model import Document
from tests.support.controlled import Cluster, key
from tests.support.objects import conditions, image, workload

RESOURCE, SETS = "deployments.apps", "replicasets.apps"
REVISION = "deployment.kubernetes.io/revision"


async def start(cluster: Cluster, replicas: int = 2, *, run: bool = True, **spec: object) -> None:
    await cluster.create(workload("Deployment", "web", replicas, **spec))
    await cluster.settle(kubelet=run)


async def got(cluster: Cluster) -> Document:
    row = await cluster.get(RESOURCE, "web")
    assert row is not None
    return row


async def sizes(cluster: Cluster) -> list[int]:
    """spec.replicas of the ReplicaSets, oldest first."""
    rows = await cluster.all(SETS)
    rows.sort(key=lambda one: int(one["metadata"]["annotations"][REVISION]))
    return [one["spec"]["replicas"] for one in rows]


async def test_a_replicaset_carries_the_hash_of_its_template(cluster: Cluster) -> None:
    await start(cluster)
    [row] = await cluster.all(SETS)
    digest = row["metadata"]["labels"]["pod-template-hash"]
    assert row["metadata"]["name"] == f"web-{digest}"
    labels = {"app": "web", "pod-template-hash": digest}
    assert row["spec"]["selector"]["matchLabels"] == labels
    assert row["spec"]["template"]["metadata"]["labels"] == labels
    assert row["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }


async def test_kubectl_rollout_status_ends(cluster: Cluster) -> None:
    """What it reads: generations, counts, and the condition Progressing."""
    await start(cluster, run=False)
    waiting = await got(cluster)
    assert waiting["status"]["observedGeneration"] == waiting["metadata"]["generation"]
    assert waiting["status"].get("availableReplicas", 0) < 2
    assert conditions(waiting)["Available"] == ("False", "MinimumReplicasUnavailable")
    await cluster.settle(kubelet=True)
    done = await got(cluster)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert [done["status"][name] for name in counts] == [2, 2, 2, 2]
    assert "unavailableReplicas" not in done["status"]
    assert conditions(done) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert done["metadata"]["annotations"][REVISION] == "1"


async def test_a_new_template_rolls_step_by_step(cluster: Cluster) -> None:
    await start(cluster, 3)
    await cluster.update(RESOURCE, "web", image("y"))
    seen = []
    for _ in range(20):
        await cluster.settle()
        seen.append(await sizes(cluster))
        await cluster.kubelet()
    steps = [each for at, each in enumerate(seen) if not at or each != seen[at - 1]]
    assert steps == [[3, 1], [2, 2], [1, 3], [0, 3]]
    assert (await got(cluster))["metadata"]["annotations"][REVISION] == "2"


async def test_the_old_template_again_is_the_old_replicaset(cluster: Cluster) -> None:
    await start(cluster)
    [first] = await cluster.names(SETS)
    await cluster.update(RESOURCE, "web", image("y"))
    await cluster.settle(kubelet=True)
    await cluster.update(RESOURCE, "web", image("x"))
    await cluster.settle(kubelet=True)
    assert await sizes(cluster) == [0, 2]
    row = await cluster.get(SETS, first)
    assert row is not None
    assert row["metadata"]["annotations"][REVISION] == "3"


async def test_recreate_stops_everything_first(cluster: Cluster) -> None:
    await start(cluster, 2, strategy={"type": "Recreate"})
    for name in await cluster.names("pods"):
        await cluster.update("pods", name, {"spec": {"nodeName": "n"}})
    await cluster.update(RESOURCE, "web", image("y"))
    await cluster.settle()
    assert await sizes(cluster) == [0]  # two pods are still ending on their node
    await cluster.kubelet()
    await cluster.settle()
    assert await sizes(cluster) == [0, 2]


async def test_a_paused_deployment_scales_and_does_not_roll(cluster: Cluster) -> None:
    await start(cluster, 2)
    await cluster.update(RESOURCE, "web", {"spec": {"paused": True}})
    await cluster.update(RESOURCE, "web", image("y"))
    await cluster.update(RESOURCE, "web", {"spec": {"replicas": 4}})
    await cluster.settle(kubelet=True)
    assert await sizes(cluster) == [4]
    assert conditions(await got(cluster))["Progressing"] == ("Unknown", "DeploymentPaused")
    await cluster.update(RESOURCE, "web", {"spec": {"paused": False}})
    await cluster.settle(kubelet=True)
    assert await sizes(cluster) == [0, 4]
    assert conditions(await got(cluster))["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_a_rollout_that_stands_still_is_late(cluster: Cluster) -> None:
    await start(cluster, 1, run=False, progressDeadlineSeconds=60)
    cluster.clock.advance(59)
    await cluster.settle()
    assert conditions(await got(cluster))["Progressing"] == ("True", "ReplicaSetUpdated")
    assert len(cluster.moments()) == 1
    cluster.clock.advance(1)
    await cluster.settle()
    assert conditions(await got(cluster))["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert cluster.moments() == []
    await cluster.settle(kubelet=True)
    assert conditions(await got(cluster))["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_progress_gives_new_time(cluster: Cluster) -> None:
    await start(cluster, 2, run=False, progressDeadlineSeconds=60)
    cluster.clock.advance(50)
    await cluster.run_pod((await cluster.names("pods"))[0])
    await cluster.settle()
    cluster.clock.advance(50)
    await cluster.settle()
    assert conditions(await got(cluster))["Progressing"] == ("True", "ReplicaSetUpdated")


async def test_a_pod_lost_after_the_end_is_no_new_rollout(cluster: Cluster) -> None:
    await start(cluster, 2)
    await cluster.run_pod((await cluster.names("pods"))[0], ready=False)
    await cluster.settle()
    row = await got(cluster)
    assert conditions(row)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert row["status"]["unavailableReplicas"] == 1
    assert not any(isinstance(s, Wait) for s in cluster.plan("deployments", key("web")))


@pytest.mark.parametrize(("limit", "kept"), [(0, 1), (2, 3)])
async def test_history_is_limited(cluster: Cluster, limit: int, kept: int) -> None:
    await start(cluster, 1, revisionHistoryLimit=limit)
    for name in "abcd":
        await cluster.update(RESOURCE, "web", image(name))
        await cluster.settle(kubelet=True)
    assert len(await cluster.names(SETS)) == kept
    assert (await sizes(cluster))[-1] == 1


async def test_a_name_that_is_taken_counts_as_a_collision(cluster: Cluster) -> None:
    await start(cluster)
    [name] = await cluster.names(SETS)
    await cluster.delete(RESOURCE, "web")
    await cluster.settle(kubelet=True)
    await cluster.create(workload("ReplicaSet", name, 0))
    await start(cluster)
    row = await got(cluster)
    assert row["status"]["collisionCount"] == 1
    assert row["status"]["availableReplicas"] == 2


async def test_own_annotations_reach_the_replicaset(cluster: Cluster) -> None:
    await start(cluster)
    cause = {"kubernetes.io/change-cause": "a whim"}
    await cluster.update(RESOURCE, "web", {"metadata": {"annotations": cause}})
    await cluster.settle()
    [row] = await cluster.all(SETS)
    assert cause.items() <= row["metadata"]["annotations"].items()


async def test_nothing_is_left_of_a_deleted_deployment(cluster: Cluster) -> None:
    await start(cluster)
    await cluster.delete(RESOURCE, "web")
    await cluster.settle(kubelet=True)
    assert await cluster.names(SETS) == []
    assert await cluster.names("pods") == []
