"""Default roles are made and kept; aggregation follows what people wrote."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.controllers import Controller, roles
from isthmus.controllers.default_roles import BINDINGS, ROLES
from isthmus.mesh import rbac
from isthmus.model.kind import Document
from isthmus.model.registry import BUILT_IN
from tests.support.controlled import Cluster, key

RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"clusterroles.{RBAC}"
CLUSTER_BINDINGS = f"clusterrolebindings.{RBAC}"


async def role(cluster: Cluster, name: str) -> Document:
    found = await cluster.get(CLUSTER_ROLES, name, "")
    assert found is not None, name
    return found


def may(document: Document, verb: str, group: str, resource: str) -> bool:
    return any(
        verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"]
        for rule in document["rules"]
        if "resources" in rule
    )


def cluster_role(name: str, *resources: str, **labels: str) -> Document:
    metadata = {"name": name, "labels": labels}
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": list(resources)}]
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": rules if resources else [],
    }


def gathering(name: str, *selectors: Document, **labels: str) -> Document:
    rule = {"clusterRoleSelectors": list(selectors)}
    return {**cluster_role(name, **labels), "aggregationRule": rule}


def label(**pairs: str) -> Document:
    return {"matchLabels": pairs}


def resources(document: Document) -> list[str]:
    return sorted(name for rule in document["rules"] for name in rule["resources"])


async def test_every_default_role_and_binding_is_there(cluster: Cluster) -> None:
    assert await cluster.names(CLUSTER_ROLES, "") == sorted(each.name for each in ROLES)
    assert await cluster.names(CLUSTER_BINDINGS, "") == sorted(each.name for each in BINDINGS)


async def test_view_edit_and_admin_are_what_their_names_say(cluster: Cluster) -> None:
    view, edit, admin = [await role(cluster, name) for name in ("view", "edit", "admin")]
    assert may(view, "list", "", "pods")
    assert may(view, "watch", "policy.linkerd.io", "servers")
    assert may(view, "get", "gateway.networking.k8s.io", "httproutes")
    assert not may(view, "get", "", "secrets")
    assert not may(view, "create", "", "pods")
    assert may(edit, "get", "", "secrets")
    assert may(edit, "patch", "policy.linkerd.io", "authorizationpolicies")
    assert may(edit, "delete", "apps", "deployments")
    assert not may(edit, "update", "", "endpoints")
    assert not may(edit, "get", RBAC, "roles")
    assert may(admin, "create", RBAC, "rolebindings")
    for held, more in ((view, edit), (edit, admin)):
        assert [rule for rule in held["rules"] if rule not in more["rules"]] == []


async def test_every_namespaced_kind_of_the_mesh_can_be_viewed_and_edited(
    cluster: Cluster,
) -> None:
    view, edit = await role(cluster, "view"), await role(cluster, "edit")
    for kind in BUILT_IN:
        if kind.custom and kind.namespaced:
            assert may(view, "list", kind.group, kind.plural), kind.resource
            assert may(edit, "create", kind.group, kind.plural), kind.resource


@pytest.mark.parametrize("name", ["cluster-admin", "view", "system:basic-user"])
async def test_a_default_role_comes_back(cluster: Cluster, name: str) -> None:
    await cluster.delete(CLUSTER_ROLES, name, ns="")
    await cluster.settle()
    assert (await role(cluster, name))["rules"]


async def test_what_is_taken_away_comes_back_and_what_is_added_stays(cluster: Cluster) -> None:
    before = (await role(cluster, "system:basic-user"))["rules"]
    added = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    patch: Document = {
        "rules": [before[1], added],
        "metadata": {"labels": {"kubernetes.io/bootstrapping": None}},
    }
    await cluster.update(CLUSTER_ROLES, "system:basic-user", patch, ns="")
    await cluster.update(CLUSTER_BINDINGS, "system:discovery", {"subjects": []}, ns="")
    await cluster.settle()
    after = await role(cluster, "system:basic-user")
    assert after["rules"] == [before[1], added, before[0]]
    assert after["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults"}
    binding = await cluster.get(CLUSTER_BINDINGS, "system:discovery", "")
    assert binding is not None
    assert [each["name"] for each in binding["subjects"]] == ["system:authenticated"]


async def test_who_does_not_want_that_says_so(cluster: Cluster) -> None:
    off: Document = {"metadata": {"annotations": {roles.AUTO_UPDATE: "false"}}, "rules": []}
    await cluster.update(CLUSTER_ROLES, "system:discovery", off, ns="")
    unbound: Document = {"metadata": off["metadata"], "subjects": []}
    await cluster.update(CLUSTER_BINDINGS, "system:public-info-viewer", unbound, ns="")
    await cluster.settle()
    assert (await role(cluster, "system:discovery"))["rules"] == []
    binding = await cluster.get(CLUSTER_BINDINGS, "system:public-info-viewer", "")
    assert binding is not None
    assert binding["subjects"] == []


async def test_a_default_binding_of_another_role_is_made_anew(cluster: Cluster) -> None:
    await cluster.delete(CLUSTER_BINDINGS, "system:discovery", ns="")
    other: Document = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:discovery"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [],
    }
    await cluster.create(other)
    await cluster.settle()
    binding = await cluster.get(CLUSTER_BINDINGS, "system:discovery", "")
    assert binding is not None
    assert binding["roleRef"]["name"] == "system:discovery"


# ----------------------------------------------------------------------------------- aggregation


@pytest.fixture
async def bare() -> Cluster:
    """Aggregation alone."""
    return Cluster(controllers=[Controller("aggregation", roles.keys, roles.plan)])


async def test_rules_are_gathered_and_follow_labels_rules_and_deletion(bare: Cluster) -> None:
    await bare.create(gathering("all", label(to="all")))
    await bare.create(cluster_role("b", "pods", to="all"))
    await bare.create(cluster_role("a", "services", to="all"))
    await bare.create(cluster_role("c", "secrets", to="none"))
    await bare.settle()
    assert resources(await role(bare, "all")) == ["pods", "services"]
    await bare.update(CLUSTER_ROLES, "c", {"metadata": {"labels": {"to": "all"}}}, ns="")
    await bare.update(CLUSTER_ROLES, "a", {"metadata": {"labels": {"to": "none"}}}, ns="")
    await bare.delete(CLUSTER_ROLES, "b", ns="")
    await bare.settle()
    assert resources(await role(bare, "all")) == ["secrets"]


async def test_what_somebody_writes_into_a_gathering_role_is_undone(bare: Cluster) -> None:
    await bare.create(gathering("all", label(to="all")))
    patch: Document = {"rules": cluster_role("x", "secrets")["rules"]}
    await bare.update(CLUSTER_ROLES, "all", patch, ns="")
    await bare.settle()
    assert (await role(bare, "all"))["rules"] == []


async def test_a_role_that_does_not_gather_keeps_its_rules(bare: Cluster) -> None:
    await bare.create(cluster_role("a", "pods"))
    await bare.settle()
    assert resources(await role(bare, "a")) == ["pods"]


@pytest.mark.parametrize(
    ("selectors", "wanted"),
    [
        ([label(to="x")], ["one"]),
        ([label(to="x"), label(to="y")], ["one", "two"]),
        ([label(to="x", also="yes")], []),
        ([{"matchExpressions": [{"key": "to", "operator": "Exists"}]}], ["one", "two"]),
        ([{"matchExpressions": [{"key": "to", "operator": "NotIn", "values": ["x"]}]}], ["two"]),
        ([{}], ["one", "two"]),
    ],
)
async def test_selectors(bare: Cluster, selectors: list[Any], wanted: list[str]) -> None:
    await bare.create(cluster_role("a", "one", to="x"))
    await bare.create(cluster_role("b", "two", to="y"))
    await bare.create(gathering("all", *selectors))
    await bare.settle()
    assert resources(await role(bare, "all")) == wanted


async def test_circles_end(bare: Cluster) -> None:
    await bare.create(gathering("a", label(to="a"), to="b"))
    await bare.create(gathering("b", label(to="b"), to="a"))
    await bare.create(gathering("self", label(to="self"), to="self"))
    await bare.create(cluster_role("x", "pods", to="a"))
    await bare.create(cluster_role("y", "services", to="b"))
    await bare.settle(rounds=3)
    for name in ("a", "b"):
        assert resources(await role(bare, name)) == ["pods", "services"]
    assert (await role(bare, "self"))["rules"] == []


async def test_a_chain_is_gathered_in_one_round(bare: Cluster) -> None:
    await bare.create(gathering("top", label(to="top")))
    await bare.create(gathering("middle", label(to="middle"), to="top"))
    await bare.create(cluster_role("x", "pods", to="middle"))
    await bare.absorb()
    assert bare.db.read(rbac.aggregated, key("top", "")) != ()
    assert await bare.execute(bare.steps()) == 0
    await bare.absorb()
    assert bare.steps() == []
