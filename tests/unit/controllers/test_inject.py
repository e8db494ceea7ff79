"""Which pods are injected, and what they look like then."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from isthmus.aio import ManualClock
from isthmus.controllers.inject import INJECT, PROXY, Injector, decide
from isthmus.model.core.namespace import NAMESPACE
from isthmus.model.core.pod import POD
from isthmus.model.registry import BUILT_IN
from isthmus.store import Memory
from isthmus.store.objects import Objects, Written

Annotations = dict[str, str]


def pod(annotations: Annotations | None = None, /, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


class World:
    def __init__(self) -> None:
        clock = ManualClock()
        store = Memory(clock=clock)
        self.objects = Objects(
            store, clock=clock, random=Random(1), admissions=(Injector(store, "linkerd"),)
        )

    async def namespace(self, name: str = "shop", **annotations: str) -> None:
        said = {key.replace("__", "/").replace("_", "."): v for key, v in annotations.items()}
        await self.objects.create(NAMESPACE, {"metadata": {"name": name, "annotations": said}})

    async def create(self, document: dict[str, Any]) -> Written:
        kind = BUILT_IN.by_api_version(document["apiVersion"], document["kind"])
        assert kind is not None
        return await self.objects.create(kind, document)


@pytest.mark.parametrize(
    ("around", "own", "wanted"),
    [
        ("", "", False),
        ("", "enabled", True),
        ("", "ingress", True),
        ("", "disabled", False),
        ("enabled", "", True),
        ("enabled", "enabled", True),
        ("enabled", "disabled", False),
        ("ingress", "", True),
        ("disabled", "enabled", True),
        ("disabled", "", False),
        ("enabled", "yes", False),
        ("true", "enabled", False),
    ],
)
def test_the_pod_wins_over_its_namespace(around: str, own: str, wanted: bool) -> None:
    outer = {INJECT: around} if around else {}
    assert decide(pod({INJECT: own} if own else {}), outer).inject is wanted


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (pod({INJECT: "yes"}), "invalid_inject_annotation_at_workload"),
        (pod({INJECT: "enabled"}, hostNetwork=True), "hostNetwork is enabled"),
        (
            pod({INJECT: "enabled"}, containers=[{"name": "linkerd-proxy", "image": "x"}]),
            "sidecar injected already",
        ),
    ],
)
async def test_who_asked_and_cannot_have_one_is_told(document: dict[str, Any], says: str) -> None:
    world = World()
    await world.namespace()
    written = await world.create(document)
    assert len(written.document["spec"]["containers"]) == 1
    assert any(says in warning for warning in written.warnings)


async def test_nobody_who_did_not_ask_is_bothered() -> None:
    world = World()
    await world.namespace()
    written = await world.create(pod())
    assert written.warnings == ()
    assert "linkerd.io/control-plane-ns" not in written.document["metadata"].get("labels", {})


async def test_an_injected_pod_looks_like_linkerds() -> None:
    world = World()
    await world.namespace(linkerd_io__inject="enabled")
    made = (await world.create(pod())).document
    assert made["metadata"]["labels"] == {
        "linkerd.io/control-plane-ns": "linkerd",
        "linkerd.io/workload-ns": "shop",
    }
    annotations = made["metadata"]["annotations"]
    assert annotations[PROXY] == "envoy"
    assert annotations[INJECT] == "enabled"
    first, proxy = made["spec"]["containers"]
    assert first["name"] == "c"
    assert proxy["name"] == "linkerd-proxy"
    ports = [(each["name"], each["containerPort"]) for each in proxy["ports"]]
    assert ports == [("linkerd-proxy", 4143), ("linkerd-admin", 4191)]
    assert {each["name"]: each["value"] for each in proxy["env"]} == {
        "LINKERD2_PROXY_ADMIN_LISTEN_ADDR": "0.0.0.0:4191",
        "LINKERD2_PROXY_CONTROL_LISTEN_ADDR": "0.0.0.0:4190",
        "LINKERD2_PROXY_INBOUND_LISTEN_ADDR": "0.0.0.0:4143",
    }
    names = [each["name"] for each in made["spec"]["volumes"]]
    assert names == ["linkerd-identity-end-entity", "linkerd-identity-token"]


async def test_configuration_is_inherited_and_the_pods_own_wins() -> None:
    world = World()
    await world.namespace(
        linkerd_io__inject="enabled",
        config_isthmus_dev__proxy="linkerd",
        example_org__other="x",
    )
    own = {"config.linkerd.io/opaque-ports": "9000"}
    made = (await world.create(pod(own))).document["metadata"]["annotations"]
    assert made[PROXY] == "linkerd"
    assert made["config.linkerd.io/opaque-ports"] == "9000"
    assert "example.org/other" not in made
    mine = (await world.create(pod({PROXY: "envoy"}) | _named("q"))).document
    assert mine["metadata"]["annotations"][PROXY] == "envoy"


def _named(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "annotations": {PROXY: "envoy"}}
    return {"metadata": metadata}


async def test_a_word_that_is_no_proxy_is_envoy() -> None:
    world = World()
    await world.namespace(linkerd_io__inject="enabled")
    made = (await world.create(pod({PROXY: "nginx\n"}))).document
    assert made["metadata"]["annotations"][PROXY] == "envoy"


async def test_no_default_opaque_ports_are_written() -> None:
    world = World()
    await world.namespace(linkerd_io__inject="enabled")
    ports = [{"containerPort": 3306}]
    containers = [{"name": "c", "image": "x", "ports": ports}]
    made = (await world.create(pod(containers=containers))).document
    assert "config.linkerd.io/opaque-ports" not in made["metadata"]["annotations"]


async def test_the_owner_is_the_deployment_not_its_replicaset() -> None:
    world = World()
    await world.namespace(linkerd_io__inject="enabled")
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    await world.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web-1",
                "namespace": "shop",
                "ownerReferences": [_ref("Deployment", "web")],
            },
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        }
    )
    document = pod()
    document["metadata"]["ownerReferences"] = [_ref("ReplicaSet", "web-1")]
    labels = (await world.create(document)).document["metadata"]["labels"]
    assert labels["linkerd.io/proxy-deployment"] == "web"


def _ref(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}


async def test_an_update_injects_nothing() -> None:
    world = World()
    await world.namespace()
    await world.create(pod())
    changed = await world.objects.update(
        POD, "shop", "p", lambda held: _annotated(held, {INJECT: "enabled"})
    )
    assert len(changed.document["spec"]["containers"]) == 1


def _annotated(held: dict[str, Any], annotations: Annotations) -> dict[str, Any]:
    return {**held, "metadata": {**held["metadata"], "annotations": annotations}}
