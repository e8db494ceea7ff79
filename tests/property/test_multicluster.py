"""Histories of links and of what they take over.

Whatever joined and left, in whatever order steps landed, whoever crashed in between: controllers
come to rest, at what a fresh start computes; and what the tables say was computed bit by bit is
what they say from scratch. Depth: HYPOTHESIS_PROFILE=thorough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.controllers import federated, linkstatus, mirror, mirrorspaces, reports
from isthmus.controllers.settings import SETTINGS
from isthmus.controllers.time import FLOOR
from isthmus.engine import Database, Put, Table
from isthmus.errors import UserFault
from isthmus.mesh import ALSO, SOURCES
from isthmus.mesh.census import CENSUS, Place
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.exports import GATEWAY_NAMES, claims, namespaces_of, targets
from isthmus.mesh.linked import refusal
from isthmus.mesh.links import LINK_HEALTH
from isthmus.mesh.members import members
from isthmus.mesh.settings import SETTINGS as MESH_SETTINGS
from isthmus.model import Document
from tests.support.controlled import CLUSTER
from tests.support.linked import LINKS, MC, LinkedWorld

Action = Callable[[LinkedWorld, Random], Coroutine[Any, Any, None]]

CLUSTERS = ("c", "b-c", "federated")
NAMES = ("a", "a-b")
SPACES = ("shop", "yard")
PORTS: tuple[list[Document], ...] = (
    [{"name": "web", "port": 80}],
    [{"name": "web", "port": 80}, {"name": "admin", "port": 90}],
    [{"name": "web", "port": 81, "app": "http"}],
)
Labels = dict[str, str]
EXPORTED = "mirror.linkerd.io/exported"
EXPORTS: tuple[Labels, ...] = ({}, {EXPORTED: "true"}, {EXPORTED: "remote-discovery"})
FEDERATED = "mirror.linkerd.io/federated"
JOINS: tuple[Labels, ...] = ({}, {FEDERATED: "member"}, {FEDERATED: "no"})
MORE: tuple[Labels, ...] = ({}, {"team": "red"}, {"team": "blue", "drop": "1"})
GATEWAYS = (None, {"address": "192.0.2.1", "identity": "gw"}, {"address": "gw.test"})
SELECTORS: tuple[Document, ...] = (
    {},
    {"selector": {}, "federatedServiceSelector": {"matchLabels": {"team": "red"}}},
    {"remoteDiscoverySelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
    {"excludedLabels": ["drop"], "gatewayIdentity": "other"},
    {"selector": {"matchLabels": {"team": "red"}}},
)
HEADLESS = {"multicluster.isthmus.dev/headless-services": "true"}


# ---------------------------------------------------------------------- what happens


@st.composite
def services(draw: st.DrawFn) -> Action:
    cluster = draw(st.sampled_from([*CLUSTERS, *CLUSTERS, CLUSTER]))
    space, name = draw(st.sampled_from(SPACES)), draw(st.sampled_from(NAMES))
    labels = [draw(st.sampled_from(some)) for some in (EXPORTS, JOINS, MORE)]
    compact: dict[str, Any] = {
        "svc": f"{space}/{name}",
        "labels": {key: value for each in labels for key, value in each.items()},
        "annotations": draw(st.sampled_from(MORE)),
        "ports": draw(st.sampled_from(PORTS)),
    }
    if cluster != CLUSTER:
        compact["in"] = cluster
        if draw(st.integers(0, 4)) == 0:
            compact["ip"] = "None"

    async def act(world: LinkedWorld, _random: Random) -> None:
        await world.apply(compact)

    return act


@st.composite
def slices(draw: st.DrawFn) -> Action:
    cluster, name = draw(st.sampled_from(CLUSTERS)), draw(st.sampled_from(NAMES))
    space = draw(st.sampled_from(SPACES))
    hosts = draw(st.lists(st.sampled_from(["a-0", "a-1", "a"]), max_size=2, unique=True))
    ready = draw(st.booleans())
    some = [{"ip": f"10.0.0.{n}", "host": host, "ready": ready} for n, host in enumerate(hosts, 1)]
    plain = [{"ip": "10.0.0.9", "ready": ready}] if draw(st.booleans()) else []
    compact = {"in": cluster, "slice": f"{space}/{name}-1", "svc": name, "ports": [80]}
    whole = {**compact, "eps": [*some, *plain]}

    async def act(world: LinkedWorld, _random: Random) -> None:
        await world.apply(whole)

    return act


@st.composite
def gates(draw: st.DrawFn) -> Action:
    """A gateway of a linked cluster: it lets in what is labelled, whatever a Link selects."""
    says = {"config.linkerd.io/enable-gateway": draw(st.sampled_from(["true", "false"]))}
    proxy = draw(st.sampled_from(["envoy", "linkerd"]))
    compact = {
        "in": draw(st.sampled_from(CLUSTERS)), "pod": "mc/gate", "ip": "10.0.1.1", "sa": "gate",
        "meshed": True, "proxy": proxy, "annotations": says,
    }  # fmt: skip

    async def act(world: LinkedWorld, _random: Random) -> None:
        await world.apply(compact)

    return act


@st.composite
def removals(draw: st.DrawFn) -> Action:
    cluster, name = draw(st.sampled_from([*CLUSTERS, ""])), draw(st.sampled_from(NAMES))
    path = f"svc {draw(st.sampled_from(SPACES))}/{name}"

    async def act(world: LinkedWorld, _random: Random) -> None:
        if not cluster or cluster in world.there:
            await world.delete(f"{cluster}: {path}" if cluster else path)

    return act


@st.composite
def links(draw: st.DrawFn) -> Action:
    cluster, twin = draw(st.sampled_from(CLUSTERS)), draw(st.integers(0, 4)) == 0
    gateway = draw(st.sampled_from(GATEWAYS))
    notes = draw(st.sampled_from([{}, HEADLESS]))
    spec = draw(st.sampled_from(SELECTORS))

    async def act(world: LinkedWorld, _random: Random) -> None:
        name = f"{cluster}-twin" if twin else cluster
        await world.link(cluster, name=name, gateway=gateway, annotations=notes, **spec)

    return act


@st.composite
def changes(draw: st.DrawFn) -> Action:
    cluster, name = draw(st.sampled_from(CLUSTERS)), draw(st.sampled_from(["", "-twin"]))
    spec, alive = draw(st.sampled_from(SELECTORS)), draw(st.sampled_from([None, True, False]))
    what = draw(st.integers(0, 5))

    async def act(world: LinkedWorld, _random: Random) -> None:
        match what:
            case 0:
                await world.unlink(f"{cluster}{name}", cluster)
            case 1:
                await world.relink(f"{cluster}{name}", **spec)
            case 2:
                world.health(f"{cluster}{name}", gateway_alive=alive)
            case 3:
                world.resolve("gw.test", *(["192.0.2.9"] if alive else []))
            case 4:
                world.lose(cluster)
            case _:
                world.sync(cluster)

    return act


@st.composite
def people(draw: st.DrawFn) -> Action:
    """What people do where controllers want to."""
    space = draw(st.sampled_from(SPACES))
    name = draw(st.sampled_from(["a-federated", "a-b-c", "a-c", "a-0-c"]))
    what = draw(st.integers(0, 2))

    async def act(world: LinkedWorld, _random: Random) -> None:
        match what:
            case 0:
                await world.here.create(_own(space, name))
            case 1:
                await world.here.delete("services", name, ns=space)
            case _:
                await world.here.delete("endpoints", name, ns=space)

    return act


def _own(space: str, name: str) -> Document:
    metadata = {"name": name, "namespace": space, "labels": {"mine": "1"}}
    spec = {"ports": [{"port": 7}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


async def yard(world: LinkedWorld, _random: Random) -> None:
    await world.apply({"ns": "yard"})


async def some_steps(world: LinkedWorld, random: Random) -> None:
    """The controllers start, and crash somewhere in between."""
    await world.here.absorb()
    steps = world.here.steps()
    random.shuffle(steps)
    await world.here.execute(steps[: random.randrange(len(steps) + 1)])


async def look(world: LinkedWorld, _random: Random) -> None:
    """What is known bit by bit is what is known from scratch."""
    await world.here.absorb()
    told, fresh = answers(world.db), answers(copy(world.db))
    assert told == fresh


async def a_while(world: LinkedWorld, _random: Random) -> None:
    await world.settle()


events = st.sampled_from([yard, some_steps, some_steps, look, a_while])
ours = st.one_of(services(), services(), services(), slices(), gates(), removals())
theirs = st.one_of(links(), links(), changes(), people(), events)
histories = st.lists(st.one_of(ours, theirs), min_size=10, max_size=40)


# ----------------------------------------------------------------------- from scratch


TABLES: tuple[Table[Any, Any], ...] = (
    *{source.table for source in (*SOURCES.values(), *ALSO.values())},
    *(CENSUS, LINKED, LINK_HEALTH, GATEWAY_NAMES, MESH_SETTINGS, SETTINGS, FLOOR),
)


def copy(db: Database) -> Database:
    fresh = Database()
    fresh.commit([Put(t, key, row) for t in TABLES for key, row in t.rows(db).items()])
    return fresh


def answers(db: Database) -> dict[tuple[Any, ...], Any]:
    """Every query of this part, for every key that could matter."""
    found: dict[tuple[Any, ...], Any] = {("targets",): db.read(targets, CLUSTER)}
    for space in SPACES:
        place = Place(CLUSTER, space)
        for part in (mirror, federated):
            found[part.__name__, space] = keys = db.read(part.keys, place)
            for key in keys:
                found[part.__name__, key] = db.read(part.plan, key)
                found["claims", key] = db.read(claims, key)
                found["members", key] = db.read(members, key)
    for key in db.read(linkstatus.keys, Place(CLUSTER, MC)):
        found["link", key] = db.read(linkstatus.plan, key), db.read(mirrorspaces.plan, key)
        found["refusal", key] = db.read(refusal, key), db.read(namespaces_of, key)
        for which in reports.Which:
            found["listing", key, which] = db.read(reports.listing, key, which)
    return found


# --------------------------------------------------------------------------- the end


async def play(world: LinkedWorld, history: list[Action], random: Random) -> None:
    await world.start()
    await world.apply({"ns": "shop"})
    for action in history:
        try:
            await action(world, random)
        except UserFault:
            continue  # the API refuses what cannot be


async def all_is_told(world: LinkedWorld) -> None:
    """Every linked cluster answers, every host has its slices: nothing hangs on what was before."""
    world.resolve("gw.test", "192.0.2.9")
    for cluster in CLUSTERS:
        for name in NAMES:
            for space in SPACES:
                some = [{"ip": "10.0.0.1", "host": f"{name}-0"}]
                part = {"in": cluster, "slice": f"{space}/{name}-2", "svc": name, "ports": [80]}
                await world.apply({**part, "eps": some})
        linked = world.db.read(targets, CLUSTER)
        if any(target.cluster == cluster for target in linked):
            world.sync(cluster)
        else:
            world.lose(cluster)


async def stands(world: LinkedWorld) -> dict[str, Any]:
    """Everything that controllers make, without what is another one each time."""
    found: dict[str, Any] = {}
    for space in SPACES:
        every = await world.here.all("services", space)
        names = {each["spec"].get("clusterIP"): each["metadata"]["name"] for each in every}
        for each in (*every, *await world.here.all("endpoints", space)):
            meta, spec = each["metadata"], dict(each.get("spec", {}))
            headless = spec.pop("clusterIP", "") == "None"
            spec.pop("clusterIPs", None)
            path = f"{each['kind']} {space}/{meta['name']}"
            keys = {name: meta.get(name) for name in ("labels", "annotations")}
            subsets = _named(each.get("subsets"), names)
            status = _timeless(each.get("status"))
            found[path] = keys, spec, headless, subsets, status
    for link in await world.here.all(LINKS, MC):
        found[link["metadata"]["name"]] = _timeless(link.get("status"))
    return found


def _named(subsets: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Addresses of our own Services by their names."""
    if isinstance(subsets, list):
        return [_named(each, names) for each in subsets]
    if isinstance(subsets, dict):
        return {key: _named(value, names) for key, value in subsets.items()}
    return names.get(subsets, subsets)


def _timeless(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if isinstance(value, dict):
        return {k: _timeless(each) for k, each in value.items() if k != "lastTransitionTime"}
    return value


async def forget(world: LinkedWorld) -> None:
    """Take away all that controllers made."""
    for space in SPACES:
        for each in await world.here.all("services", space):
            meta = each["metadata"]
            if meta.get("labels", {}).get("mirror.linkerd.io/mirrored-service") == "true":
                await world.here.delete("services", meta["name"], ns=space)


async def converges(history: list[Action], seed: int) -> None:
    world, random = LinkedWorld(seed=seed), Random(seed)
    await play(world, history, random)
    await world.here.absorb()
    await all_is_told(world)
    await world.settle()
    assert await world.settle() == 0
    await look(world, random)
    before = await stands(world)
    await forget(world)
    await world.settle()
    after = await stands(world)
    assert after.keys() == before.keys()
    for path, what in before.items():
        assert after[path] == what, path


@given(histories, st.integers(0, 2**16))
def test_histories_end_where_a_fresh_start_does(history: list[Action], seed: int) -> None:
    asyncio.run(converges(history, seed))
