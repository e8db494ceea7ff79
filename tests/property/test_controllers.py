"""Plans end: whatever people did, in whatever order steps land, whoever crashes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.controllers.steps import Write
from isthmus.errors import UserFault
from isthmus.model import Document
from tests.support.controlled import Cluster
from tests.support.examples import examples

NAMES = ("a", "b")
Action = Callable[[Cluster, Random], Coroutine[Any, Any, None]]


def workload(kind: str, name: str, replicas: int, image: str, **spec: object) -> Document:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
            **spec,
        },
    }


def service(name: str, selects: str) -> Document:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": selects}, "ports": ports},
    }


# ---------------------------------------------------------------- what people do


def create(document: Document) -> Action:
    async def act(cluster: Cluster, _random: Random) -> None:
        await cluster.create(document)

    return act


def change(resource: str, name: str, spec: Document) -> Action:
    async def act(cluster: Cluster, _random: Random) -> None:
        await cluster.update(resource, name, {"spec": spec})

    return act


def remove(resource: str, name: str, propagation: str) -> Action:
    async def act(cluster: Cluster, _random: Random) -> None:
        await cluster.delete(resource, name, propagation=propagation)

    return act


async def kill_a_pod(cluster: Cluster, random: Random) -> None:
    if pods := await cluster.names("pods"):
        await cluster.delete("pods", random.choice(pods), grace=0)


async def run_a_pod(cluster: Cluster, random: Random) -> None:
    if pods := await cluster.names("pods"):
        await cluster.run_pod(random.choice(pods), ready=random.random() < 0.7)


async def end_a_pod(cluster: Cluster, random: Random) -> None:
    if pods := await cluster.names("pods"):
        status = {"status": {"phase": "Failed"}}
        await cluster.update("pods", random.choice(pods), status, status=True)


async def relabel_a_pod(cluster: Cluster, random: Random) -> None:
    if pods := await cluster.names("pods"):
        labels = {"metadata": {"labels": {"app": random.choice([*NAMES, "other"])}}}
        await cluster.update("pods", random.choice(pods), labels)


async def some_steps(cluster: Cluster, random: Random) -> None:
    """The controllers start, and crash somewhere in between."""
    await cluster.absorb()
    steps = cluster.steps()
    random.shuffle(steps)
    await cluster.execute(steps[: random.randrange(len(steps) + 1)])


async def a_while(cluster: Cluster, random: Random) -> None:
    """Everything comes to rest."""
    await rest(cluster, random, kubelet=True)


KINDS = ("Deployment", "StatefulSet")
RESOURCES = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps"}
SHAPES: tuple[Document, ...] = (
    {},
    {"strategy": {"type": "Recreate"}},
    {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
    {"strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}},
    {"podManagementPolicy": "Parallel"},
    {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
    {"paused": True},
)


def template(image: str) -> Document:
    return {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}


@st.composite
def workloads(draw: st.DrawFn) -> Action:
    kind, name = draw(st.sampled_from(KINDS)), draw(st.sampled_from(NAMES))
    allowed = {"Deployment": ("strategy", "paused"), "StatefulSet": ("podM", "updateS")}[kind]
    shape = draw(st.sampled_from([s for s in SHAPES if all(k.startswith(allowed) for k in s)]))
    replicas, image = draw(st.integers(0, 4)), draw(st.sampled_from("xyz"))
    return create(workload(kind, name, replicas, image, **shape))


@st.composite
def edits(draw: st.DrawFn) -> Action:
    kind, name = draw(st.sampled_from(KINDS)), draw(st.sampled_from(NAMES))
    edit = draw(
        st.one_of(
            st.integers(0, 5).map(lambda count: {"replicas": count}),
            st.sampled_from("xyz").map(template),
            st.booleans().map(lambda on: {"paused": on} if kind == "Deployment" else {}),
        )
    )
    return change(RESOURCES[kind], name, edit)


removals = st.builds(
    remove,
    st.sampled_from([*RESOURCES.values(), "replicasets.apps", "services"]),
    st.sampled_from(NAMES),
    st.sampled_from(["Background", "Foreground", "Orphan"]),
)
services = st.builds(service, st.sampled_from(NAMES), st.sampled_from(NAMES)).map(create)
events = st.sampled_from(
    [kill_a_pod, run_a_pod, run_a_pod, end_a_pod, relabel_a_pod, some_steps, some_steps, a_while]
)
begins = st.tuples(workloads(), workloads(), services, workloads())
middles = st.lists(
    st.one_of(edits(), edits(), events, events, events, workloads(), removals, services),
    min_size=8,
    max_size=40,
)
histories = st.tuples(begins, middles).map(lambda both: [*both[0], *both[1]])


async def play(cluster: Cluster, history: list[Action], random: Random) -> None:
    await cluster.namespace()
    for action in history:
        try:
            await action(cluster, random)
        except UserFault:
            continue  # the API refuses what cannot be


async def rest(cluster: Cluster, random: Random, *, kubelet: bool) -> None:
    """Turn to the end, steps in any order; and at the end nothing is wanted."""
    for _ in range(300):
        await cluster.absorb()
        steps = cluster.steps()
        before = cluster.store.revision
        random.shuffle(steps)
        await cluster.execute(steps)
        if kubelet:
            await cluster.kubelet()
        if not steps and cluster.store.revision == before:
            return
    raise AssertionError(cluster.steps()[:5])


def active(pods: list[Document], owner: str) -> list[Document]:
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
        and not pod["metadata"].get("deletionTimestamp")
        and any(
            ref["uid"] == owner and ref.get("controller")
            for ref in pod["metadata"].get("ownerReferences") or []
        )
    ]


async def check(cluster: Cluster) -> None:
    """What people asked for is there, no more, no less."""
    pods = await cluster.all("pods")
    for one in await cluster.all("replicasets.apps"):
        assert len(active(pods, one["metadata"]["uid"])) == one["spec"]["replicas"], one
    for one in await cluster.all("statefulsets.apps"):
        check_ordinals(one, pods)
    for one in await cluster.all("deployments.apps"):
        assert one["status"]["observedGeneration"] == one["metadata"]["generation"]
    await check_slices(cluster, pods)
    await check_owners(cluster)


def check_ordinals(one: Document, pods: list[Document]) -> None:
    name = one["metadata"]["name"]
    own = [pod["metadata"]["name"] for pod in active(pods, one["metadata"]["uid"])]
    wanted = [f"{name}-{at}" for at in range(one["spec"]["replicas"])]
    # A pod that was released keeps its name, and in order nothing comes after it.
    present = {pod["metadata"]["name"] for pod in pods}
    foreign = present.difference(own).intersection(wanted)
    assert sorted(own) == wanted or (foreign and set(own) < set(wanted) | present), (own, wanted)
    if not foreign:
        assert (
            one["status"]["updateRevision"] == one["status"]["currentRevision"]
            or (one["spec"]["updateStrategy"]["rollingUpdate"]["partition"])
        )


async def check_slices(cluster: Cluster, pods: list[Document]) -> None:
    slices = await cluster.all("endpointslices.discovery.k8s.io")
    for one in await cluster.all("services"):
        wanted = {
            pod["status"]["podIP"]
            for pod in pods
            if one["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            and pod["status"].get("podIP")
            and pod["status"]["phase"] not in ("Succeeded", "Failed")
        }
        own = [s for s in slices if owned(s, one["metadata"]["uid"])]
        said = [address for s in own for e in s["endpoints"] for address in e["addresses"]]
        assert sorted(said) == sorted(wanted)
        assert own, "a Service without endpoints has an empty slice"


def owned(one: Document, uid: str) -> bool:
    return any(ref["uid"] == uid for ref in one["metadata"].get("ownerReferences") or [])


async def check_owners(cluster: Cluster) -> None:
    records = [one for r in ("pods", "replicasets.apps") for one in await cluster.all(r)]
    page = await cluster.store.list()
    present = b" ".join(record.value for record in page.records)
    for one in records:
        for ref in one["metadata"].get("ownerReferences") or []:
            assert b'"uid":"' + ref["uid"].encode() in present


@given(histories, st.integers(0, 2**32))
def test_plans_end_in_any_order_after_any_history(history: list[Action], seed: int) -> None:
    async def run() -> None:
        random, cluster = Random(seed), Cluster(seed=seed)
        await play(cluster, history, random)
        await rest(cluster, random, kubelet=False)
        await rest(cluster, random, kubelet=True)
        await check(cluster)

    asyncio.run(run())


@given(histories, st.integers(0, 2**32))
def test_two_replicas_with_the_same_plans_are_one(history: list[Action], seed: int) -> None:
    async def run() -> None:
        random, cluster = Random(seed), Cluster(seed=seed)
        await play(cluster, history, random)
        for _ in range(8):
            await cluster.absorb()
            steps: list[Write] = cluster.steps()
            await cluster.execute(steps)
            before = cluster.store.revision
            random.shuffle(steps)
            await cluster.execute(steps)
            assert cluster.store.revision == before

    asyncio.run(run())


@given(histories, st.integers(0, 2**32))
@settings(max_examples=examples(30))
def test_a_namespace_ends_whatever_is_in_it(history: list[Action], seed: int) -> None:
    async def run() -> None:
        random, cluster = Random(seed), Cluster(seed=seed)
        await play(cluster, history, random)
        await cluster.delete("namespaces", "shop", ns="")
        await rest(cluster, random, kubelet=True)
        page = await cluster.store.list("", "shop")
        assert page.records == ()
        assert "shop" not in await cluster.names("namespaces", "")
        held = [*(await cluster.store.list("isthmus-clusterips")).records]
        assert held == []

    asyncio.run(run())
