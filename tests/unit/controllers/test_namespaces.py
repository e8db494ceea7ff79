from __future__ import annotations

from isthmus.controllers import Settings
from isthmus.controllers.namespaces import DEFAULTS
from isthmus.controllers.settings import SETTINGS
from isthmus.engine import Put
from tests.support.controlled import CLUSTER, Cluster
from tests.support.objects import conditions, config


async def test_a_new_cluster_has_its_namespaces() -> None:
    cluster = Cluster()
    await cluster.settle()
    assert await cluster.names("namespaces", "") == sorted([*DEFAULTS, "linkerd"])


async def test_a_default_namespace_comes_back(cluster: Cluster) -> None:
    await cluster.delete("namespaces", "kube-node-lease", ns="")
    await cluster.settle()
    assert "kube-node-lease" in await cluster.names("namespaces", "")


async def test_every_namespace_has_an_account_and_the_root_certificate(cluster: Cluster) -> None:
    for namespace in await cluster.names("namespaces", ""):
        assert await cluster.names("serviceaccounts", namespace) == ["default"]
        root = await cluster.get("configmaps", "kube-root-ca.crt", namespace)
        assert root is not None
        assert root["data"] == {"ca.crt": "PEM"}


async def test_both_come_back_when_deleted(cluster: Cluster) -> None:
    await cluster.delete("serviceaccounts", "default")
    await cluster.delete("configmaps", "kube-root-ca.crt")
    await cluster.settle()
    assert await cluster.names("serviceaccounts") == ["default"]
    assert await cluster.names("configmaps") == ["kube-root-ca.crt"]


async def test_the_certificate_follows_its_rotation_and_undoes_edits(cluster: Cluster) -> None:
    await cluster.update("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": "forged", "x": "y"}})
    cluster.db.commit([Put(SETTINGS, CLUSTER, Settings("linkerd", "NEXT"))])
    await cluster.settle()
    root = await cluster.get("configmaps", "kube-root-ca.crt")
    assert root is not None
    assert root["data"] == {"ca.crt": "NEXT"}


async def test_the_name_label_cannot_be_lost(cluster: Cluster) -> None:
    labels = {"metadata": {"labels": {"kubernetes.io/metadata.name": "wrong"}}}
    await cluster.update("namespaces", "shop", labels, ns="")
    await cluster.settle()
    namespace = await cluster.get("namespaces", "shop", "")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == "shop"


async def test_a_namespace_goes_with_its_content_and_nothing_else(cluster: Cluster) -> None:
    await cluster.create(config("x"))
    await cluster.create(config("x", namespace="default"))
    await cluster.delete("namespaces", "shop", ns="")
    namespace = await cluster.get("namespaces", "shop", "")
    assert namespace is not None
    assert namespace["status"]["phase"] == "Terminating"
    await cluster.settle()
    assert await cluster.get("namespaces", "shop", "") is None
    assert await cluster.names("configmaps", "shop") == []
    assert "x" in await cluster.names("configmaps", "default")


async def test_a_namespace_tells_what_it_waits_for(cluster: Cluster) -> None:
    held = config("x")
    held["metadata"]["finalizers"] = ["example.org/wait"]
    await cluster.create(held)
    await cluster.delete("namespaces", "shop", ns="")
    await cluster.settle()
    namespace = await cluster.get("namespaces", "shop", "")
    assert conditions(namespace) == {
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    await cluster.update("configmaps", "x", {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert await cluster.get("namespaces", "shop", "") is None
