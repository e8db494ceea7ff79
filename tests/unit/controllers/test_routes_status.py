"""What routes say of their parents."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.app.policy import DIALECTS
from isthmus.controllers.routes_status import CONTROLLER
from isthmus.controllers.settings import SETTINGS, Settings
from isthmus.engine import Put
from isthmus.mesh import budget
from isthmus.mesh import settings as mesh_settings
from isthmus.mesh.settings import WHOLE, MeshSettings
from isthmus.model import Document
from tests.support.controlled import CLUSTER, Cluster

pytestmark = pytest.mark.anyio

GATEWAY = "gateway.networking.k8s.io"
POLICY = "policy.linkerd.io"
CONTROL_PLANE = {"linkerd.io/control-plane-ns": "linkerd"}
ACCEPTED = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


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


async def service(cluster: Cluster, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
    ports = [{"name": "web", "port": 80}, {"name": "more", "port": 81}]
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"ports": ports, **spec},
        }
    )


def parent(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"group": "", "kind": "Service", "name": name, **more}


def server(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"group": POLICY, "kind": "Server", "name": name, **more}


def network(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"group": POLICY, "kind": "EgressNetwork", "name": name, "port": 80, **more}


async def route(
    cluster: Cluster,
    name: str,
    *parents: Document,
    kind: str = "HTTPRoute",
    group: str = GATEWAY,
    version: str = "v1",
    status: Document | None = None,
    **spec: Any,  # noqa: ANN401 - JSON
) -> None:
    document = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"parentRefs": list(parents), **spec},
    }
    await cluster.create(document)
    if status is not None:
        resource = f"{kind.lower()}s.{group}"
        await cluster.update(resource, name, {"status": status}, status=True)


async def told(
    cluster: Cluster, name: str, kind: str = "HTTPRoute", group: str = GATEWAY
) -> list[dict[str, Any]]:
    """The entries of a route, after all controllers have had their say."""
    await cluster.settle()
    document = await cluster.get(f"{kind.lower()}s.{group}", name)
    assert document is not None
    return list((document.get("status") or {}).get("parents", ()))


def brief(entry: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in entry["conditions"]}


def text(entry: dict[str, Any], kind: str) -> str:
    [found] = [each["message"] for each in entry["conditions"] if each["type"] == kind]
    return str(found)


def to(name: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    return [{"backendRefs": [{"name": name, "port": 80, **more}]}]


async def test_a_service_takes_a_route_whose_backend_is_there(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await service(cluster, "till")
    await route(cluster, "r", parent("cart", port=80), rules=to("till"))
    [entry] = await told(cluster, "r")
    named = {"group": "", "kind": "Service", "namespace": "shop", "name": "cart", "port": 80}
    assert (entry["parentRef"], entry["controllerName"]) == (named, CONTROLLER)
    assert brief(entry) == ACCEPTED
    assert {each["observedGeneration"] for each in entry["conditions"]} == {1}


async def test_a_route_without_backends_or_port(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await route(cluster, "r", parent("cart"))
    [entry] = await told(cluster, "r")
    assert "port" not in entry["parentRef"]
    assert brief(entry) == ACCEPTED


async def test_a_parent_comes_and_goes(cluster: Cluster) -> None:
    await route(cluster, "r", parent("cart", port=80))
    [entry] = await told(cluster, "r")
    assert brief(entry) == {**ACCEPTED, "Accepted": ("False", "NoMatchingParent")}
    cluster.clock.advance(60)
    await service(cluster, "cart")
    [after] = await told(cluster, "r")
    assert brief(after) == ACCEPTED
    before, now = times(entry), times(after)
    assert now["ResolvedRefs"] == before["ResolvedRefs"]
    assert now["Accepted"] > before["Accepted"]
    await cluster.delete("services", "cart")
    [entry] = await told(cluster, "r")
    assert brief(entry)["Accepted"] == ("False", "NoMatchingParent")


def times(entry: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["lastTransitionTime"] for each in entry["conditions"]}


@pytest.mark.parametrize(
    "spec", [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "a.example"}]
)
async def test_services_without_an_address_are_no_parents(
    cluster: Cluster, spec: dict[str, str]
) -> None:
    await service(cluster, "calm", **spec)
    await route(cluster, "r", parent("calm", port=80))
    [entry] = await told(cluster, "r")
    assert brief(entry)["Accepted"] == ("False", "NoMatchingParent")
    assert text(entry, "Accepted") == "parent service must have a ClusterIP"


async def test_one_missing_backend_of_several(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await service(cluster, "till")
    await route(cluster, "r", parent("cart", port=80), rules=[*to("till"), *to("ghost")])
    [entry] = await told(cluster, "r")
    assert brief(entry) == {**ACCEPTED, "ResolvedRefs": ("False", "BackendNotFound")}
    assert "shop/ghost" in text(entry, "ResolvedRefs")


async def test_a_backend_of_a_strange_kind(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await route(cluster, "r", parent("cart"), rules=to("x", group="x.example", kind="Basket"))
    [entry] = await told(cluster, "r")
    assert brief(entry)["ResolvedRefs"] == ("False", "InvalidKind")


async def test_parents_of_others_have_no_entry(cluster: Cluster) -> None:
    gate = {"group": GATEWAY, "kind": "Gateway", "name": "gate"}
    await service(cluster, "cart")
    await route(cluster, "theirs", gate)
    await route(cluster, "both", gate, parent("cart", port=80))
    assert await told(cluster, "theirs") == []
    [entry] = await told(cluster, "both")
    assert entry["parentRef"]["kind"] == "Service"


CONDITION = {
    "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
    "lastTransitionTime": "2026-01-01T00:01:00Z",
}  # fmt: skip


async def test_entries_of_other_controllers_stay_and_stale_ones_of_ours_go(
    cluster: Cluster,
) -> None:
    gate = {"group": GATEWAY, "kind": "Gateway", "name": "gate"}
    other = {"parentRef": gate, "controllerName": "a.example/b", "conditions": [CONDITION]}
    gone = {"group": "core", "kind": "Service", "namespace": "shop", "name": "gone", "port": 80}
    stale = {"parentRef": gone, "controllerName": CONTROLLER, "conditions": [CONDITION]}
    await service(cluster, "cart")
    await route(cluster, "r", gate, parent("cart"), status={"parents": [stale, other]})
    [first, second] = await told(cluster, "r")
    assert first == other
    assert (second["parentRef"]["name"], brief(second)) == ("cart", ACCEPTED)


async def test_others_may_fill_the_status_and_ours_come_to_rest(cluster: Cluster) -> None:
    gates = [{"group": GATEWAY, "kind": "Gateway", "name": f"g{at}"} for at in range(31)]
    others = [
        {"parentRef": gate, "controllerName": "a.example/b", "conditions": [CONDITION]}
        for gate in gates
    ]
    await service(cluster, "cart")
    await service(cluster, "till")
    await route(cluster, "r", parent("cart"), parent("till"), status={"parents": others})
    entries = await told(cluster, "r")
    assert [len(entries), entries[-1]["parentRef"]["name"]] == [32, "cart"]


async def test_servers(cluster: Cluster) -> None:
    await press(cluster)
    await route(cluster, "r", server("press"), server("ghost"), group=POLICY, version="v1beta3")
    [first, second] = await told(cluster, "r", group=POLICY)
    assert brief(first) == {"Accepted": ("True", "Accepted")}
    assert first["parentRef"] == {**server("press"), "namespace": "shop"}
    assert brief(second) == {"Accepted": ("False", "NoMatchingParent")}
    assert text(second, "Accepted") == "there is no Server ghost"


async def test_a_server_named_with_a_port_takes_the_route_from_all(cluster: Cluster) -> None:
    await press(cluster)
    await press(cluster, "pulp")
    await route(cluster, "r", server("press", port=80), server("pulp"))
    [first, second] = await told(cluster, "r")
    assert brief(first) == brief(second) == {"Accepted": ("False", "NoMatchingParent")}
    assert "another parentRef" in text(second, "Accepted")


async def press(cluster: Cluster, name: str = "press") -> None:
    await cluster.create(
        {
            "apiVersion": f"{POLICY}/v1beta3",
            "kind": "Server",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"podSelector": {"matchLabels": {"app": "press"}}, "port": 80},
        }
    )


async def test_the_most_specific_kind_at_one_port_wins(cluster: Cluster) -> None:
    await service(cluster, "cart")
    at = parent("cart", port=80)
    kinds = {"TCPRoute": "v1alpha2", "TLSRoute": "v1alpha2", "HTTPRoute": "v1", "GRPCRoute": "v1"}
    for kind, version in kinds.items():
        more: dict[str, Any] = {"rules": to("cart")} if version == "v1alpha2" else {}
        if kind == "TLSRoute":
            more["hostnames"] = ["x.example"]
        await route(cluster, "r", at, kind=kind, version=version, **more)
    found = {kind: brief((await told(cluster, "r", kind))[0])["Accepted"] for kind in kinds}
    conflicted = ("False", "RouteReasonConflicted")
    assert found == {**dict.fromkeys(kinds, conflicted), "GRPCRoute": ("True", "Accepted")}
    await cluster.delete(f"grpcroutes.{GATEWAY}", "r")
    [entry] = await told(cluster, "r")
    assert brief(entry) == ACCEPTED


async def test_both_groups_of_http_routes_stand_together(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await route(cluster, "r", parent("cart", port=80))
    await route(cluster, "r", parent("cart", port=80), group=POLICY, version="v1beta3")
    for group in (GATEWAY, POLICY):
        [entry] = await told(cluster, "r", group=group)
        assert brief(entry) == ACCEPTED
    await cluster.delete(f"httproutes.{GATEWAY}", "r")
    [entry] = await told(cluster, "r", group=POLICY)
    assert brief(entry) == ACCEPTED


async def egress(cluster: Cluster, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
    await cluster.create(
        {
            "apiVersion": f"{POLICY}/v1alpha1",
            "kind": "EgressNetwork",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"trafficPolicy": "Allow", **spec},
        }
    )


async def test_egress_networks_as_parents(cluster: Cluster) -> None:
    await egress(cluster, "outer")
    await egress(cluster, "inner", networks=[{"cidr": "10.0.0.0/8"}])
    await route(cluster, "r", network("outer"), network("inner"), network("ghost"))
    outer, inner, ghost = await told(cluster, "r")
    assert brief(outer) == ACCEPTED
    assert brief(inner)["Accepted"] == brief(ghost)["Accepted"] == ("False", "NoMatchingParent")
    assert text(inner, "Accepted") == "EgressNetwork parent has not been accepted"
    assert inner["parentRef"]["port"] == 80


# -------------------------------------------------------------- what cannot be done as written


async def test_parts_that_cannot_be_done_are_named(cluster: Cluster) -> None:
    await service(cluster, "cart")
    extension = {"type": "ExtensionRef", "extensionRef": {"group": "g", "kind": "K", "name": "n"}}
    await route(cluster, "r", parent("cart"), rules=[{"filters": [extension]}])
    [entry] = await told(cluster, "r")
    assert brief(entry)["PartiallyInvalid"] == ("True", "UnsupportedValue")
    assert "spec.rules[0].filters[0]" in text(entry, "PartiallyInvalid")
    patch = {"spec": {"rules": [{"matches": [{"path": {"type": "Exact", "value": "/a"}}]}]}}
    await cluster.update(f"httproutes.{GATEWAY}", "r", patch)
    [entry] = await told(cluster, "r")
    assert brief(entry) == ACCEPTED
    assert {each["observedGeneration"] for each in entry["conditions"]} == {2}


REWRITE = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}},
}


async def pod(cluster: Cluster, name: str, proxy: str) -> None:
    env = [{"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:4143"}]
    sidecar = {"name": "linkerd-proxy", "image": "proxy", "env": env}
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "shop",
                "labels": {**CONTROL_PLANE, "app": "press"},
                "annotations": {"config.isthmus.dev/proxy": proxy},
            },
            "spec": {"containers": [{"name": "app", "image": "app"}, sidecar]},
        }
    )


async def test_a_dialect_has_a_say_only_where_somebody_speaks_it(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await pod(cluster, "one", "envoy")
    await route(cluster, "r", parent("cart", port=80), rules=[{"filters": [REWRITE]}])
    [entry] = await told(cluster, "r")
    assert brief(entry) == ACCEPTED
    await pod(cluster, "two", "linkerd")
    [entry] = await told(cluster, "r")
    assert brief(entry)["Supported"] == ("False", "URLRewrite")
    assert text(entry, "Supported").startswith("linkerd: URLRewrite: ")
    await cluster.delete("pods", "two", grace=0)
    [entry] = await told(cluster, "r")
    assert brief(entry) == ACCEPTED


async def test_raw_paths_are_told_where_a_linkerd_proxy_stands(cluster: Cluster) -> None:
    await press(cluster)
    rules = [{"matches": [{"path": {"type": "PathPrefix", "value": "/private"}}]}]
    await route(cluster, "r", server("press"), rules=rules)
    await pod(cluster, "two", "linkerd")
    [entry] = await told(cluster, "r")
    assert brief(entry) == {
        "Accepted": ("True", "Accepted"),
        "RawPathMatching": ("True", "RawPathMatching"),
    }
    await cluster.delete("pods", "two", grace=0)
    [entry] = await told(cluster, "r")
    assert brief(entry) == {"Accepted": ("True", "Accepted")}


async def test_nothing_is_written_when_nothing_changed(cluster: Cluster) -> None:
    await service(cluster, "cart")
    await route(cluster, "r", parent("cart", port=80), rules=to("ghost"))
    await cluster.settle()
    before = cluster.store.revision
    await cluster.update("services", "cart", {"metadata": {"labels": {"a": "b"}}})
    await cluster.settle()
    assert cluster.store.revision == before + 1


async def test_a_route_beyond_a_budget_is_told_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "MATCHES", 1)
    await service(cluster, "cart", clusterIP="10.96.0.1")
    await route(cluster, "a", parent("cart"), rules=to("cart"))
    await route(cluster, "b", parent("cart"), rules=to("cart"))
    assert [brief(one) for one in await told(cluster, "a")] == [ACCEPTED]
    (beyond,) = await told(cluster, "b")
    assert brief(beyond) == ACCEPTED | {"Accepted": ("False", "TooMany")}
