"""What policies say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.app.policy import DIALECTS
from isthmus.controllers.settings import SETTINGS, Settings
from isthmus.engine import Put
from isthmus.mesh import settings as mesh_settings
from isthmus.mesh.settings import WHOLE, MeshSettings
from tests.support.controlled import CLUSTER, Cluster

pytestmark = pytest.mark.anyio

POLICY = "policy.linkerd.io"
GATEWAY = "gateway.networking.k8s.io"
PLURALS = {
    "AuthorizationPolicy": "authorizationpolicies",
    "EgressNetwork": "egressnetworks",
    "HTTPLocalRateLimitPolicy": "httplocalratelimitpolicies",
    "MeshTLSAuthentication": "meshtlsauthentications",
    "NetworkAuthentication": "networkauthentications",
    "Server": "servers",
    "ServerAuthorization": "serverauthorizations",
}
VERSIONS = {"Server": "v1beta3", "ServerAuthorization": "v1beta1"}
NETWORKS = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
OK = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
IN_FORCE = {**OK, "Enforced": ("True", "Enforced")}


@pytest.fixture(autouse=True)
async def meshed(cluster: Cluster) -> None:
    """The cluster is the mesh's own, and its dialects can be asked."""
    mesh = MeshSettings(
        cluster=CLUSTER, cluster_networks=NETWORKS, control_plane_namespace="linkerd"
    )
    cluster.db.commit(
        [
            Put(mesh_settings.SETTINGS, WHOLE, mesh),
            Put(SETTINGS, CLUSTER, Settings("linkerd", "PEM", dialects=DIALECTS)),
        ]
    )


async def make(cluster: Cluster, kind: str, name: str, spec: Any, **notes: str) -> None:  # noqa: ANN401 - JSON
    await cluster.create(
        {
            "apiVersion": f"{POLICY}/{VERSIONS.get(kind, 'v1alpha1')}",
            "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "annotations": notes},
            "spec": spec,
        }
    )


async def status(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """The status, after all controllers have had their say."""
    await cluster.settle()
    document = await cluster.get(f"{PLURALS[kind]}.{POLICY}", name)
    assert document is not None
    return dict(document.get("status") or {})


async def told(cluster: Cluster, kind: str, name: str) -> dict[str, tuple[str, str]]:
    found = (await status(cluster, kind, name))["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


async def text(cluster: Cluster, kind: str, name: str, condition: str) -> str:
    found = (await status(cluster, kind, name))["conditions"]
    [one] = [each["message"] for each in found if each["type"] == condition]
    return str(one)


async def server(cluster: Cluster, name: str = "press", app: str = "press", **more: Any) -> None:  # noqa: ANN401 - JSON
    spec = {"podSelector": {"matchLabels": {"app": app}}, "port": 80, **more}
    await make(cluster, "Server", name, spec)


async def pod(cluster: Cluster, name: str = "one", app: str = "press") -> None:
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        }
    )


def needs(*refs: tuple[str, str], kind: str = "Server", name: str = "press") -> dict[str, Any]:
    return {
        "targetRef": {"group": POLICY, "kind": kind, "name": name},
        "requiredAuthenticationRefs": [
            {"group": "" if kind == "ServiceAccount" else POLICY, "kind": kind, "name": name}
            for kind, name in refs
        ],
    }


BOSS = ("ServiceAccount", "boss")


async def test_a_policy_that_decides(cluster: Cluster) -> None:
    await server(cluster)
    await pod(cluster)
    await make(cluster, "AuthorizationPolicy", "p", needs(BOSS))
    assert await told(cluster, "AuthorizationPolicy", "p") == IN_FORCE
    assert await told(cluster, "Server", "press") == {
        "Accepted": ("True", "Accepted"),
        "Enforced": ("True", "Enforced"),
    }


async def test_a_policy_for_workloads_of_another_cluster_says_that_it_decides_nothing(
    cluster: Cluster,
) -> None:
    await server(cluster)
    await make(cluster, "AuthorizationPolicy", "p", needs(BOSS))
    for kind, name in (("AuthorizationPolicy", "p"), ("Server", "press")):
        assert (await told(cluster, kind, name))["Enforced"] == ("False", "NoWorkloads")
        said = await text(cluster, kind, name, "Enforced")
        assert said.startswith("nothing here to decide: no workload of this cluster")
    await pod(cluster)
    assert await told(cluster, "AuthorizationPolicy", "p") == IN_FORCE


async def test_a_policy_without_a_target(cluster: Cluster) -> None:
    await make(cluster, "AuthorizationPolicy", "p", needs(BOSS))
    assert await told(cluster, "AuthorizationPolicy", "p") == {
        "Accepted": ("True", "Accepted"),
        "ResolvedRefs": ("False", "NoMatchingTarget"),
        "Enforced": ("False", "NoMatchingTarget"),
    }


async def test_a_policy_whose_authentication_comes_later(cluster: Cluster) -> None:
    await server(cluster)
    await pod(cluster)
    await make(cluster, "AuthorizationPolicy", "p", needs(("MeshTLSAuthentication", "m")))
    assert await told(cluster, "AuthorizationPolicy", "p") == {
        **IN_FORCE,
        "ResolvedRefs": ("False", "RefNotFound"),
    }
    said = await text(cluster, "AuthorizationPolicy", "p", "ResolvedRefs")
    assert said == (
        "spec.requiredAuthenticationRefs[0]: there is no MeshTLSAuthentication shop/m;"
        " it grants nothing"
    )
    await make(cluster, "MeshTLSAuthentication", "m", {"identities": ["*"]})
    assert await told(cluster, "AuthorizationPolicy", "p") == IN_FORCE
    assert await told(cluster, "MeshTLSAuthentication", "m") == {"Accepted": ("True", "Accepted")}


async def test_a_policy_for_a_route_that_no_server_takes(cluster: Cluster) -> None:
    await cluster.create(
        {
            "apiVersion": f"{GATEWAY}/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "shop"},
            "spec": {"parentRefs": [{"group": "", "kind": "Service", "name": "cart"}]},
        }
    )
    spec = needs(BOSS, kind="HTTPRoute", name="r")
    spec["targetRef"]["group"] = GATEWAY
    await make(cluster, "AuthorizationPolicy", "p", spec)
    assert (await told(cluster, "AuthorizationPolicy", "p"))["Enforced"] == (
        "False",
        "NotOnAServer",
    )


async def test_the_younger_of_two_servers_says_that_it_is_overlapped(cluster: Cluster) -> None:
    await server(cluster, "old")
    cluster.clock.advance(5)
    await server(cluster, "young")
    await pod(cluster)
    found = await told(cluster, "Server", "young")
    assert found["Overlapped"] == ("True", "Overlapped")
    assert found["Enforced"] == ("False", "Shadowed")
    assert "port 80 of shop/one" in await text(cluster, "Server", "young", "Overlapped")
    await cluster.delete(f"servers.{POLICY}", "old")
    assert await told(cluster, "Server", "young") == {
        "Accepted": ("True", "Accepted"),
        "Enforced": ("True", "Enforced"),
    }


async def test_server_authorizations(cluster: Cluster) -> None:
    await server(cluster)
    await pod(cluster)
    everybody = {"unauthenticated": True}
    for name, chosen in (("a", {"name": "press"}), ("b", {"name": "ghost"})):
        await make(cluster, "ServerAuthorization", name, {"server": chosen, "client": everybody})
    await make(cluster, "ServerAuthorization", "c", {"server": {"name": "press"}, "client": {}})
    assert await told(cluster, "ServerAuthorization", "a") == IN_FORCE
    assert (await told(cluster, "ServerAuthorization", "b"))["ResolvedRefs"] == (
        "False",
        "NoMatchingTarget",
    )
    assert (await told(cluster, "ServerAuthorization", "c"))["Accepted"] == ("False", "Invalid")


async def test_egress_networks_may_not_overlap_with_the_cluster(cluster: Cluster) -> None:
    but = list(NETWORKS)
    halves = ["10.0.0.0/9", "10.128.0.0/9", *NETWORKS[1:]]
    specs: dict[str, Any] = {
        "whole": {},
        "inside": {"networks": [{"cidr": "10.50.0.0/16"}]},
        "excepted": {"networks": [{"cidr": "0.0.0.0/0", "except": but}]},
        "halves": {"networks": [{"cidr": "0.0.0.0/0", "except": halves}]},
        "apart": {"networks": [{"cidr": "203.0.113.0/24"}]},
    }
    for name, spec in specs.items():
        await make(cluster, "EgressNetwork", name, {"trafficPolicy": "Allow", **spec})
    found = {name: (await told(cluster, "EgressNetwork", name))["Accepted"] for name in specs}
    overlap = ("False", "EgressReasonNetworkOverlap")
    assert found == {
        **dict.fromkeys(specs, ("True", "Accepted")),
        "inside": overlap,
        "halves": overlap,
    }
    said = await text(cluster, "EgressNetwork", "inside", "Accepted")
    assert said == "networks overlap with clusterNetworks"


async def test_of_an_egress_network_wrong_annotations_are_named(cluster: Cluster) -> None:
    key = "timeout.linkerd.io/request"
    await make(cluster, "EgressNetwork", "n", {"trafficPolicy": "Allow"}, **{key: "soon"})
    assert (await told(cluster, "EgressNetwork", "n"))["PartiallyInvalid"] == (
        "True",
        "InvalidAnnotations",
    )
    assert key in await text(cluster, "EgressNetwork", "n", "PartiallyInvalid")


async def test_of_several_rate_limits_the_oldest_counts(cluster: Cluster) -> None:
    await server(cluster)
    target = {"group": POLICY, "kind": "Server", "name": "press"}
    for name, wanted in (("old", "press"), ("young", "press"), ("lost", "ghost")):
        spec = {"targetRef": {**target, "name": wanted}, "total": {"requestsPerSecond": 10}}
        await make(cluster, "HTTPLocalRateLimitPolicy", name, spec)
        cluster.clock.advance(5)
    kind = "HTTPLocalRateLimitPolicy"
    assert (await status(cluster, kind, "old"))["targetRef"] == target
    assert await told(cluster, kind, "old") == {"Accepted": ("True", "Accepted")}
    exists, nowhere = ("False", "RateLimitReasonAlreadyExists"), ("False", "NoMatchingTarget")
    assert await told(cluster, kind, "young") == {"Accepted": exists}
    assert await told(cluster, kind, "lost") == {"Accepted": nowhere}


async def test_conditions_of_others_stay_and_nothing_is_written_twice(cluster: Cluster) -> None:
    await server(cluster)
    await pod(cluster)
    await make(cluster, "AuthorizationPolicy", "p", needs(BOSS))
    await cluster.settle()
    other = {"type": "a.example/Seen", "status": "True", "reason": "Seen", "message": ""}
    held = (await status(cluster, "AuthorizationPolicy", "p"))["conditions"]
    stamped = {**other, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch = {"status": {"conditions": [*held, stamped]}}
    await cluster.update(f"authorizationpolicies.{POLICY}", "p", patch, status=True)
    before = cluster.store.revision
    found = await told(cluster, "AuthorizationPolicy", "p")
    assert found == {**IN_FORCE, "a.example/Seen": ("True", "Seen")}
    assert cluster.store.revision == before


async def test_services_name_annotations_that_mean_nothing(cluster: Cluster) -> None:
    key = "balancer.linkerd.io/failure-accrual"
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "cart", "namespace": "shop", "annotations": {key: "sometimes"}},
            "spec": {"ports": [{"port": 80}]},
        }
    )
    await cluster.settle()
    [one] = (await cluster.get("services", "cart") or {})["status"]["conditions"]
    assert (one["type"], one["status"]) == ("isthmus.dev/Annotations", "False")
    assert key in one["message"]
    await cluster.update("services", "cart", {"metadata": {"annotations": {key: "consecutive"}}})
    await cluster.settle()
    assert not (await cluster.get("services", "cart") or {})["status"].get("conditions")


async def test_a_protocol_that_nobody_knows_is_told(cluster: Cluster) -> None:
    ports = [
        {"name": "a", "port": 80, "appProtocol": "kubernetes.io/h2c"},
        {"name": "b", "port": 81, "appProtocol": "a.example/own"},
        {"name": "c", "port": 82, "appProtocol": "linkerd.io/tcp"},
        {"name": "d", "port": 83},
    ]
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"ports": ports},
        }
    )
    await cluster.settle()
    [one] = (await cluster.get("services", "cart") or {})["status"]["conditions"]
    assert (one["type"], one["reason"]) == ("isthmus.dev/AppProtocol", "UnknownProtocol")
    assert one["message"] == "port 81: 'a.example/own' is taken as opaque"
