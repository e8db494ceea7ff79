from __future__ import annotations

import pytest

from tests.support.controlled import Cluster
from tests.support.objects import config, reference


async def left(cluster: Cluster) -> list[str]:
    return [name for name in await cluster.names("configmaps") if name != "kube-root-ca.crt"]


async def test_a_dependent_goes_with_its_owner(cluster: Cluster) -> None:
    owner = await cluster.create(config("owner"))
    dependent = await cluster.create(config("dependent", owner))
    await cluster.create(config("its", dependent))
    await cluster.create(config("free"))
    await cluster.delete("configmaps", "owner")
    await cluster.settle()
    assert await left(cluster) == ["free"]


async def test_it_stays_while_one_owner_lives_and_loses_the_other(cluster: Cluster) -> None:
    one, two = await cluster.create(config("one")), await cluster.create(config("two"))
    await cluster.create(config("dependent", one, two))
    await cluster.delete("configmaps", "one")
    await cluster.settle()
    dependent = await cluster.get("configmaps", "dependent")
    assert dependent is not None
    assert dependent["metadata"]["ownerReferences"] == [reference(two)]
    await cluster.delete("configmaps", "two")
    await cluster.settle()
    assert await left(cluster) == []


async def test_an_owner_of_the_same_name_is_not_the_owner(cluster: Cluster) -> None:
    owner = await cluster.create(config("owner"))
    await cluster.create(config("dependent", owner))
    await cluster.delete("configmaps", "owner")
    await cluster.create(config("owner"))
    await cluster.settle()
    assert await left(cluster) == ["owner"]


async def test_an_owner_may_be_of_any_kind_and_in_no_namespace(cluster: Cluster) -> None:
    namespace = await cluster.get("namespaces", "default", "")
    assert namespace is not None
    await cluster.create(config("dependent", namespace))
    await cluster.settle()
    assert await left(cluster) == ["dependent"]


async def test_an_owner_in_another_namespace_does_not_count(cluster: Cluster) -> None:
    owner = await cluster.create(config("owner", namespace="default"))
    await cluster.create(config("dependent", owner))
    await cluster.settle()
    assert await left(cluster) == []


async def test_an_owner_of_a_kind_that_nobody_serves_keeps_what_it_owns(cluster: Cluster) -> None:
    """Nothing here can tell whether it is gone; the kind may be defined later, or in a moment."""
    owner = {
        "apiVersion": "example.org/v1",
        "kind": "Rollout",
        "metadata": {"name": "x", "uid": "1"},
    }
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "uid": "2"}}
    await cluster.create(config("kept", owner))
    await cluster.create(config("kept-too", owner, gone))
    await cluster.create(config("not", gone))
    await cluster.settle()
    assert await left(cluster) == ["kept", "kept-too"]


async def test_orphans_stay_without_the_reference(cluster: Cluster) -> None:
    owner = await cluster.create(config("owner"))
    await cluster.create(config("dependent", owner))
    await cluster.delete("configmaps", "owner", propagation="Orphan")
    await cluster.settle()
    dependent = await cluster.get("configmaps", "dependent")
    assert await left(cluster) == ["dependent"]
    assert dependent is not None
    assert not dependent["metadata"].get("ownerReferences")


@pytest.mark.parametrize("blocks", [True, False])
async def test_in_the_foreground_the_owner_waits_for_those_that_block(
    cluster: Cluster, blocks: bool
) -> None:
    owner = await cluster.create(config("owner"))
    dependent = config("dependent")
    dependent["metadata"] |= {
        "ownerReferences": [reference(owner, blocks=blocks)],
        "finalizers": ["example.org/wait"],
    }
    await cluster.create(dependent)
    await cluster.delete("configmaps", "owner", propagation="Foreground")
    await cluster.settle()
    assert ("owner" in await left(cluster)) == blocks
    await cluster.update("configmaps", "dependent", {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert await left(cluster) == []


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_owners_in_a_ring_do_not_wait_for_each_other(cluster: Cluster, length: int) -> None:
    ring = [await cluster.create(config(f"c{number}")) for number in range(length)]
    for number, each in enumerate(ring):
        owners = [reference(ring[number - 1])]
        name = each["metadata"]["name"]
        await cluster.update("configmaps", name, {"metadata": {"ownerReferences": owners}})
    await cluster.settle()
    assert len(await left(cluster)) == length
    await cluster.delete("configmaps", "c0", propagation="Foreground")
    await cluster.settle()
    assert await left(cluster) == []


async def test_a_ring_still_waits_for_what_hangs_on_it(cluster: Cluster) -> None:
    one, two = await cluster.create(config("one")), await cluster.create(config("two"))
    for name, owner in (("one", two), ("two", one)):
        owners = {"metadata": {"ownerReferences": [reference(owner)]}}
        await cluster.update("configmaps", name, owners)
    hanging = config("hanging", one)
    hanging["metadata"]["finalizers"] = ["example.org/wait"]
    await cluster.create(hanging)
    await cluster.delete("configmaps", "one", propagation="Foreground")
    await cluster.settle()
    assert "one" in await left(cluster)
    await cluster.update("configmaps", "hanging", {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert await left(cluster) == []


async def test_what_is_in_no_namespace_is_not_collected_for_an_owner_in_one(
    cluster: Cluster,
) -> None:
    owner = await cluster.create(config("owner"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["metadata"] = {"name": "n", "ownerReferences": [reference(owner)]}
    await cluster.create(node)
    await cluster.settle()
    assert await cluster.names("nodes", "") == ["n"]


async def test_a_delete_that_says_nothing_keeps_what_was_said(cluster: Cluster) -> None:
    owner = config("owner")
    owner["metadata"]["finalizers"] = ["orphan"]
    made = await cluster.create(owner)
    await cluster.create(config("dependent", made))
    await cluster.delete("configmaps", "owner", propagation="")
    await cluster.settle()
    assert await left(cluster) == ["dependent"]
