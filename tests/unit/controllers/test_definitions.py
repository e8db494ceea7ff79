from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from isthmus.controllers.definitions import DefinitionLives, plan
from isthmus.controllers.execute import Executor
from isthmus.errors import MethodNotAllowed, NotFound
from isthmus.mesh.definitions import RESOURCE, registry, remains
from isthmus.model import Key, ObjectKey
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.store.contract import Put
from isthmus.store.objects import Proposed
from tests.support.controlled import CLUSTER, Cluster, sign
from tests.support.objects import config
from tests.unit.model.crd.widgets import Said, definition, version, widget

pytestmark = pytest.mark.anyio

NAME = "widgets.shop.example.com"


def follow(cluster: Cluster) -> None:
    """Let the controllers know the kinds that are defined."""

    def kinds(resource: str) -> Kind | None:
        found = cluster.db.read(registry, CLUSTER).by_key_resource(resource)
        return found or cluster.db.read(remains, ObjectKey(CLUSTER, "", resource))

    cluster.executor = Executor(cluster.objects, kinds, cluster.clock, sign)


async def defined(cluster: Cluster, document: Said | None = None) -> Kind:
    """Define widgets; their kind."""
    follow(cluster)
    await cluster.create(document or definition())
    await cluster.settle()
    kind = cluster.db.read(registry, CLUSTER).by_key_resource(NAME)
    assert kind is not None
    return kind


async def conditions(cluster: Cluster, name: str = NAME) -> dict[str, tuple[str, str]]:
    document = await cluster.get(RESOURCE, name, "")
    assert document is not None
    listed = document["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in listed}


async def test_a_definition_is_established_and_says_its_names(cluster: Cluster) -> None:
    await defined(cluster)
    assert await conditions(cluster) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    document = await cluster.get(RESOURCE, NAME, "")
    assert document is not None
    assert document["status"]["acceptedNames"] == {
        "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
        "shortNames": ["wg"], "categories": ["toys"],
    }  # fmt: skip
    assert document["status"]["storedVersions"] == ["v1"]


async def test_every_version_that_was_stored_in_is_remembered(cluster: Cluster) -> None:
    await defined(cluster)
    versions = [version("v1", storage=False), version("v2")]
    await cluster.update(RESOURCE, NAME, {"spec": {"versions": versions}}, ns="")
    await cluster.settle()
    document = await cluster.get(RESOURCE, NAME, "")
    assert document is not None
    assert document["status"]["storedVersions"] == ["v1", "v2"]


async def test_a_built_in_kind_is_not_replaced(cluster: Cluster) -> None:
    follow(cluster)
    names = {"singular": "httproute", "kind": "HTTPRoute", "listKind": "HTTPRouteList"}
    document = definition(group="gateway.networking.k8s.io", plural="httproutes", **names)
    await cluster.create(document)
    await cluster.settle()
    name = "httproutes.gateway.networking.k8s.io"
    found = await conditions(cluster, name)
    assert found == {"NamesAccepted": ("True", "BuiltIn"), "Established": ("True", "BuiltIn")}
    assert cluster.db.read(registry, CLUSTER) is BUILT_IN
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "kept", "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gate"}]},
    }
    await cluster.create(route)
    await cluster.delete(RESOURCE, name, ns="")
    await cluster.settle()
    assert await cluster.get(RESOURCE, name, "") is None
    assert await cluster.get(name, "kept") is not None


async def test_the_older_of_two_has_the_name(cluster: Cluster) -> None:
    await defined(cluster)
    cluster.clock.advance(5)
    other = definition(
        plural="wares", singular="ware", kind="Widget", listKind="WareList", shortNames=[]
    )
    await cluster.create(other)
    await cluster.settle()
    assert await conditions(cluster, "wares.shop.example.com") == {
        "NamesAccepted": ("False", "NameConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert (await conditions(cluster))["Established"][0] == "True"
    await cluster.delete(RESOURCE, NAME, ns="")
    await cluster.settle()
    assert (await conditions(cluster, "wares.shop.example.com"))["Established"][0] == "True"


async def test_a_definition_goes_after_its_objects(cluster: Cluster) -> None:
    kind = await defined(cluster)
    for name in ("a", "b"):
        await cluster.objects.create(kind, widget(name))
    held = {**widget("c"), "metadata": {"name": "c", "namespace": "shop", "finalizers": ["x.y/z"]}}
    await cluster.objects.create(kind, held)
    await cluster.delete(RESOURCE, NAME, ns="")
    await cluster.settle()
    assert await cluster.names(NAME) == ["c"]
    assert (await conditions(cluster))["Terminating"] == ("True", "InstanceDeletionInProgress")
    ending = cluster.db.read(registry, CLUSTER).by_key_resource(NAME)
    assert ending is not None
    assert "create" not in ending.verbs

    def release(document: Said) -> Said:
        return {**document, "metadata": {**document["metadata"], "finalizers": []}}

    await cluster.objects.update(ending, "shop", "c", release)
    await cluster.settle()
    assert await cluster.get(RESOURCE, NAME, "") is None
    assert await cluster.names(NAME) == []
    assert cluster.db.read(registry, CLUSTER) is BUILT_IN
    again = await defined(cluster)
    assert again.definition != kind.definition
    assert await cluster.names(NAME) == []


def unreadable(document: Said) -> None:
    document["spec"]["names"] = "lost"


def without_versions(document: Said) -> None:
    del document["spec"]["versions"]


def broken_rule(document: Said) -> None:
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": "self.nobody >"}]


def misnamed(document: Said) -> None:
    document["spec"]["names"]["shortNames"] = ["Not A Label"]


@pytest.mark.parametrize("spoil", [unreadable, without_versions, broken_rule, misnamed])
async def test_what_cannot_be_served_can_be_deleted(
    cluster: Cluster, spoil: Callable[[Said], None]
) -> None:
    kind = await defined(cluster)
    await cluster.objects.create(kind, widget("a"))
    held = {**widget("b"), "metadata": {"name": "b", "namespace": "shop", "finalizers": ["x.y/z"]}}
    if spoil is not misnamed:  # whose objects can be seen, and so what holds them is waited for
        await cluster.objects.create(kind, held)
    await cluster.settle()
    # As another version of the server may have left it.
    key = Key(RESOURCE, "", NAME)
    record = await cluster.store.get(key)
    assert record is not None
    document = msgspec.json.decode(record.value)
    spoil(document)
    await cluster.store.txn((), (Put(key, msgspec.json.encode(document)),))
    await cluster.settle()
    await cluster.delete(RESOURCE, NAME, ns="")
    await cluster.settle()
    assert await cluster.names(NAME) == []
    assert await cluster.get(RESOURCE, NAME, "") is None


async def test_a_namespace_takes_its_custom_objects_along(cluster: Cluster) -> None:
    kind = await defined(cluster)
    await cluster.objects.create(kind, widget())
    await cluster.delete("namespaces", "shop", ns="")
    await cluster.settle()
    assert await cluster.names(NAME) == []
    assert await cluster.get("namespaces", "shop", "") is None


async def test_custom_objects_go_with_their_owners(cluster: Cluster) -> None:
    kind = await defined(cluster)
    owner = await cluster.objects.create(kind, widget("owner"))
    reference: dict[str, Any] = {
        "apiVersion": "shop.example.com/v1", "kind": "Widget", "name": "owner",
        "uid": owner.document["metadata"]["uid"],
    }  # fmt: skip
    owned = widget("owned")
    owned["metadata"]["ownerReferences"] = [reference]
    await cluster.objects.create(kind, owned)
    await cluster.objects.delete(kind, "shop", "owner")
    await cluster.settle()
    assert await cluster.names(NAME) == []


async def test_what_its_objects_owned_goes_before_the_definition(cluster: Cluster) -> None:
    """Afterwards nobody could tell that the owners are gone."""
    kind = await defined(cluster)
    owner = (await cluster.objects.create(kind, widget("owner"))).document
    await cluster.create(config("owned", owner))
    await cluster.delete(RESOURCE, NAME, ns="")
    await cluster.objects.delete(kind, "shop", "owner")
    await cluster.absorb()
    assert not cluster.db.read(plan, ObjectKey(CLUSTER, "", NAME))
    await cluster.settle()
    assert await cluster.get("configmaps", "owned") is None
    assert await cluster.get(RESOURCE, NAME, "") is None


async def test_nothing_is_created_while_or_after_the_definition_goes(cluster: Cluster) -> None:
    kind = await defined(cluster)
    held = {**widget("c"), "metadata": {"name": "c", "namespace": "shop", "finalizers": ["x.y/z"]}}
    await cluster.objects.create(kind, held)
    await cluster.delete(RESOURCE, NAME, ns="")
    with pytest.raises(MethodNotAllowed, match="terminating"):
        await cluster.objects.create(kind, widget("late"))
    await cluster.objects.delete(kind, "shop", "c")
    await cluster.objects.update(
        kind, "shop", "c", lambda d: {**d, "metadata": {**d["metadata"], "finalizers": None}}
    )
    await cluster.settle()
    with pytest.raises(NotFound):
        await cluster.objects.create(kind, widget("late"))
    await defined(cluster)
    with pytest.raises(NotFound):
        await cluster.objects.create(kind, widget("late"))


async def test_the_definition_is_compared_in_the_transaction(cluster: Cluster) -> None:
    kind = await defined(cluster)
    lives = DefinitionLives(cluster.store)
    verdict = await lives.admit(Proposed(kind, "shop", "a", None, widget(), ""))
    record = await cluster.store.get(cluster.by_resource(RESOURCE).key("", NAME))
    assert record is not None
    assert [(each.key, each.revision) for each in verdict.compares] == [
        (record.key, record.revision)
    ]
    update = await lives.admit(Proposed(kind, "shop", "a", widget(), widget(), ""))
    assert update.compares == ()
