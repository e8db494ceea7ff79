from __future__ import annotations

import pytest

from isthmus.errors import Forbidden, NotFound
from isthmus.model import Document
from tests.support.controlled import Cluster


def config(namespace: str) -> Document:
    metadata = {"name": "x", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def test_nothing_is_created_in_a_namespace_that_is_missing(cluster: Cluster) -> None:
    with pytest.raises(NotFound, match='^namespaces "nowhere" not found$') as refused:
        await cluster.create(config("nowhere"))
    assert refused.value.about.resource == "namespaces"


async def test_nothing_is_created_in_a_namespace_that_goes(cluster: Cluster) -> None:
    await cluster.delete("namespaces", "shop", ns="")
    said = "unable to create new content in namespace shop because it is being terminated"
    with pytest.raises(Forbidden, match=said) as refused:
        await cluster.create(config("shop"))
    [cause] = refused.value.causes
    assert (cause.path, cause.reason) == ("metadata.namespace", "NamespaceTerminating")


async def test_what_is_there_may_still_change(cluster: Cluster) -> None:
    await cluster.create(config("shop"))
    await cluster.delete("namespaces", "shop", ns="")
    after = await cluster.update("configmaps", "x", {"data": {"a": "b"}})
    assert after["data"] == {"a": "b"}


async def test_a_create_compares_the_namespace(cluster: Cluster) -> None:
    """Somebody deletes the namespace between the look and the write."""
    admission = cluster.objects._admissions[0]  # noqa: SLF001  # the race cannot be timed otherwise
    told: list[bool] = []

    class Racing:
        async def admit(self, proposed: object) -> object:
            verdict = await admission.admit(proposed)  # type: ignore[arg-type]
            if not told:
                told.append(True)
                await cluster.delete("namespaces", "shop", ns="")
            return verdict

    cluster.objects._admissions = (Racing(),)  # type: ignore[assignment] # noqa: SLF001
    with pytest.raises(Forbidden):
        await cluster.create(config("shop"))


async def test_a_namespace_is_labelled_with_its_name(cluster: Cluster) -> None:
    namespace = await cluster.get("namespaces", "shop", "")
    assert namespace is not None
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
async def test_what_every_cluster_has_is_not_deleted(cluster: Cluster, name: str) -> None:
    await cluster.settle()
    said = f'^namespaces "{name}" is forbidden: this namespace may not be deleted$'
    with pytest.raises(Forbidden, match=said):
        await cluster.delete("namespaces", name, ns="")
    namespace = await cluster.get("namespaces", name, "")
    assert namespace is not None
    assert namespace["status"]["phase"] == "Active"
