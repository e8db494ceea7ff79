"""The shell with the real board, store and clockwork; time is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from isthmus import controllers
from isthmus.aio import ManualClock
from isthmus.board import Board, Intake, Intakes
from isthmus.controllers import Settings, Wiring, admissions, build
from isthmus.controllers.lives import TERMINATING
from isthmus.controllers.reconcile import Controller, Duty, Reconciler, Waiting
from isthmus.controllers.steps import Update
from isthmus.controllers.trouble import TROUBLE
from isthmus.engine import Database, Put, View, query
from isthmus.engine import Delete as Drop
from isthmus.errors import Cause, Forbidden, NotFound
from isthmus.mesh import ALSO, SOURCES
from isthmus.mesh.census import CENSUS, Place, facts
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.clusters import Cluster as LinkedCluster
from isthmus.mesh.linked import linked as linked_cluster
from isthmus.mesh.links import LINKS
from isthmus.mesh.settings import SETTINGS as MESH_SETTINGS
from isthmus.mesh.settings import WHOLE, MeshSettings
from isthmus.mesh.tables import NAMESPACES, SERVICES
from isthmus.model import Document, Key, ObjectKey
from isthmus.model.core import Service
from isthmus.model.core.service import ServicePort, ServiceSpec
from isthmus.model.meta import Meta
from isthmus.store import Memory
from isthmus.store.objects import Objects, Proposed, Verdict
from tests.support.controlled import CLUSTER, KINDS, NETWORKS, sign
from tests.support.log import ListLog
from tests.support.objects import service, workload

SETTLED = 400
"""Turns of the loop in which everything that can happen without time has happened."""


class Whims:
    """An admission that refuses names for as long as it is told to."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.causes: tuple[Cause, ...] = ()
        self.tries: list[str] = []

    async def admit(self, proposed: Proposed) -> Verdict:
        self.tries.append(proposed.name)
        if proposed.name in self.refused:
            raise Forbidden(f"{proposed.name} may not be", causes=self.causes)
        return Verdict(None)


class Running:
    """A board and the controllers, running."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Memory(clock=self.clock)
        self.whims, self.log, self.db = Whims(), ListLog(), Database()
        self.objects = Objects(
            self.store,
            clock=self.clock,
            random=Random(1),
            admissions=(*admissions(self.store, NETWORKS[:1]), self.whims),
        )
        self.board = self.new_board(self.db)
        self.reconcilers: list[Reconciler] = []

    def new_board(self, db: Database) -> Board:
        intakes = {name: Intake(*source) for name, source in SOURCES.items()}
        also = {name: Intake(*source) for name, source in ALSO.items()}
        where = Intakes(intakes, Intake(CENSUS, facts), also)
        return Board(
            db, CLUSTER, self.store, where, clock=self.clock, random=Random(2), log=self.log
        )

    def controllers(self, db: Database, board: Board) -> Reconciler:
        wiring = Wiring(
            board, db.commit, self.objects, KINDS.by_key_resource, sign,
            self.clock, Random(3), self.log,
        )  # fmt: skip
        made = build(CLUSTER, Settings("linkerd", "PEM"), wiring)
        self.reconcilers.append(made)
        return made

    @asynccontextmanager
    async def running(self, replicas: int = 1) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = []
            for at in range(replicas):
                db = self.db if not at else Database()
                board = self.board if not at else self.new_board(db)
                tasks.append(group.create_task(board.run()))
                tasks.append(group.create_task(self.controllers(db, board).run()))
            yield
            for task in tasks:
                task.cancel()

    async def pass_time(self, seconds: float = 2.0) -> None:
        """Let tasks run, and time go by in the steps of the board's quiet moments."""
        for _ in range(int(seconds / 0.1)):
            await self.clock.turn(0.1)

    async def create(self, document: Document) -> None:
        kind = KINDS.by_api_version(document["apiVersion"], document["kind"])
        assert kind is not None
        await self.objects.create(kind, document)

    async def names(self, resource: str, namespace: str = "shop") -> list[str]:
        return [record.key.name for record in (await self.store.list(resource, namespace)).records]


def namespace(name: str = "shop") -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def test_from_nothing_to_pods() -> None:
    here = Running()
    async with here.running():
        await here.pass_time()
        assert len(await here.names("namespaces", "")) == 5
        await here.create(namespace())
        await here.create(workload("Deployment", "web", 3))
        await here.create(service())
        await here.pass_time()
        assert len(await here.names("pods")) == 3
        assert len(await here.names("endpointslices.discovery.k8s.io")) == 1
        kind = KINDS.by_key_resource("namespaces")
        assert kind is not None
        await here.objects.delete(kind, "", "shop")
        await here.pass_time(4)
        assert "shop" not in await here.names("namespaces", "")


async def test_what_was_there_before_the_start_is_attended() -> None:
    here = Running()
    await here.create(namespace())
    await here.create(workload("Deployment", "web", 2))
    async with here.running():
        await here.pass_time()
        assert len(await here.names("pods")) == 2


async def test_two_replicas_make_as_many_pods_as_one() -> None:
    here = Running()
    await here.create(namespace())
    async with here.running(replicas=2):
        await here.create(workload("Deployment", "web", 4))
        await here.create(workload("StatefulSet", "db", 2, podManagementPolicy="Parallel"))
        await here.pass_time(4)
        assert len(await here.names("pods")) == 6
        assert len(await here.names("replicasets.apps")) == 1


async def test_what_comes_too_late_for_its_namespace_is_no_news() -> None:
    """Nor is it given up: the namespace may be another one by then."""
    here = Running()
    here.whims.refused = {"default"}
    here.whims.causes = (Cause("metadata.namespace", "it ends", TERMINATING),)
    async with here.running():
        await here.create(namespace())
        await here.pass_time()
        assert here.whims.tries.count("default") > 1
        assert "step refused" not in here.log.events()
        here.whims.refused = set()
        await here.pass_time(4)
        assert await here.names("serviceaccounts") == ["default"]


async def test_nothing_is_kept_of_what_is_gone() -> None:
    here = Running()
    kind = KINDS.by_key_resource("namespaces")
    assert kind is not None
    async with here.running():
        await here.pass_time()
        before = [each.attended for each in here.reconcilers], here.clock.waiting
        for name in ("one", "two", "three"):
            await here.create(namespace(name))
            web = workload("Deployment", "web", 3)
            web["metadata"]["namespace"] = name
            await here.create(web)
            await here.pass_time(0.3)
            await here.objects.delete(kind, "", name)
            await here.pass_time(6)
        assert ([each.attended for each in here.reconcilers], here.clock.waiting) == before


async def test_a_key_that_fails_is_tried_again_with_growing_pauses_and_alone() -> None:
    here = Running()
    here.whims.refused = {"default"}
    await here.create(namespace("other"))
    async with here.running():
        await here.create(namespace())
        await here.create(workload("Deployment", "web", 2))
        await here.pass_time(4)
        assert len(await here.names("pods")) == 2
        assert await here.names("configmaps") == ["kube-root-ca.crt"]
        early = here.whims.tries.count("default")
        await here.pass_time(4)
        assert here.whims.tries.count("default") - early < early
        assert "step refused" in here.log.events()
        here.whims.refused = set()
        await here.pass_time(35)
        assert await here.names("serviceaccounts") == ["default"]


async def test_a_moment_that_passes_is_acted_upon() -> None:
    here = Running()
    await here.create(namespace())
    async with here.running():
        await here.create(workload("Deployment", "web", 1, progressDeadlineSeconds=30))
        await here.pass_time(25)
        assert b"ProgressDeadlineExceeded" not in await deployment(here)
        await here.pass_time(10)
        assert b"ProgressDeadlineExceeded" in await deployment(here)


async def deployment(here: Running) -> bytes:
    [record] = (await here.store.list("deployments.apps")).records
    return record.value


async def test_rest_writes_nothing() -> None:
    here = Running()
    await here.create(namespace())
    await here.create(workload("Deployment", "web", 2))
    async with here.running():
        await here.pass_time(4)
        revision, evaluations = here.store.revision, here.db.stats.evaluations
        await here.pass_time(30)
        assert here.store.revision == revision
        assert here.db.stats.evaluations == evaluations
    assert here.clock.waiting == 0


@query
def stubborn_keys(_db: View, where: Place) -> tuple[ObjectKey, ...]:
    return () if where.namespace else (ObjectKey(where.cluster, "", "stubborn"),)


@query
def stubborn(db: View, key: ObjectKey) -> tuple[Any, ...]:
    """A plan with a bug: beside one namespace it cannot be made, beside another it never ends."""
    if NAMESPACES.get(db, key._replace(name="broken")) is not None:
        raise NotFound("a bug")
    endless = NAMESPACES.get(db, key._replace(name="endless"))
    if endless is None:
        return ()
    return (Update("namespaces", "", "endless", endless.metadata.uid, b"{}"),)


async def test_a_plan_that_cannot_be_made_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Controller("stubborn", stubborn_keys, stubborn)
    monkeypatch.setattr(controllers, "CONTROLLERS", (bad, *controllers.CONTROLLERS))
    here = Running()
    async with here.running():
        await here.create(namespace("broken"))
        await here.pass_time()
        assert await here.names("serviceaccounts", "broken") == ["default"]


async def test_a_plan_that_does_not_end_is_told_and_slowed_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = Controller("stubborn", stubborn_keys, stubborn)
    monkeypatch.setattr(controllers, "CONTROLLERS", (bad, *controllers.CONTROLLERS))
    here = Running()
    async with here.running():
        await here.create(namespace("endless"))
        await here.pass_time(10)
        told = here.log.events().count("plan without end")
        assert 3 <= told <= 8
        assert await here.names("serviceaccounts", "endless") == ["default"]


async def test_a_duty_has_one_worker_at_a_time_and_is_not_forgotten() -> None:
    waiting = Waiting()
    one, two = (Duty(Controller("c", stubborn_keys, stubborn), name) for name in ("1", "2"))
    waiting.add(one)
    waiting.add(one)
    waiting.add(two)
    assert await waiting.take() == one
    waiting.add(one)
    assert await waiting.take() == two
    assert not waiting.idle
    waiting.done(one)
    assert await waiting.take() == one
    waiting.done(one)
    waiting.done(two)
    assert waiting.idle


def test_no_two_controllers_share_a_query() -> None:
    """The shell finds a controller by its queries."""
    for named in ("name", "keys", "plan"):
        found = [getattr(each, named) for each in controllers.CONTROLLERS]
        assert len(set(found)) == len(found)


# ------------------------------------------------------------- what writes of Links show


EAST = ObjectKey("east", "shop", "cart")
LINK = "links.multicluster.linkerd.io"


async def linked(here: Running) -> None:
    """A Link to `east`, and one export there."""
    here.db.commit([Put(MESH_SETTINGS, WHOLE, MeshSettings(cluster=CLUSTER))])
    await here.pass_time()
    await here.create(namespace())
    await here.create(namespace("links"))
    spec = {"targetClusterName": "east", "clusterCredentialsSecret": "to-east"}
    selector = {"matchLabels": {"mirror.linkerd.io/exported": "remote-discovery"}}
    metadata = {"name": "east", "namespace": "links"}
    link = {"apiVersion": "multicluster.linkerd.io/v1alpha3", "kind": "Link", "metadata": metadata}
    await here.create({**link, "spec": {**spec, "remoteDiscoverySelector": selector}})
    here.db.commit([Put(LINKED, "east", LinkedCluster("cluster.local", "cluster.local"))])
    export(here, "cart")


def export(here: Running, *names: str) -> None:
    labels = {"mirror.linkerd.io/exported": "remote-discovery"}
    row = Service(metadata=Meta(labels=labels), spec=ServiceSpec(ports=(ServicePort(port=80),)))
    here.db.commit([Put(SERVICES, EAST._replace(name=name), row) for name in names])


async def reports(here: Running) -> dict[str, Document]:
    found = await here.store.get(Key(LINK, "links", "east"))
    assert found is not None
    status = msgspec.json.decode(found.value).get("status") or {}
    listed = status.get("mirrorServices") or []
    return {each["remoteRef"]["name"]: each["conditions"][0] for each in listed}


async def test_a_write_that_is_refused_is_told_until_it_succeeds() -> None:
    here = Running()
    here.whims.refused.add("cart-east")
    async with here.running():
        await linked(here)
        await here.pass_time(5)
        told = (await reports(here))["cart"]
        assert (told["status"], told["reason"]) == ("False", "Error")
        assert "cart-east may not be" in told["message"]
        here.whims.refused.clear()
        await here.pass_time(40)
        assert await here.names("services") == ["cart-east"]
        told = (await reports(here))["cart"]
        assert (told["status"], told["reason"]) == ("True", "Mirrored")
        assert not TROUBLE.rows(here.db)


async def test_a_status_is_not_written_for_each_of_many_exports() -> None:
    here = Running()
    async with here.running():
        await linked(here)
        await here.pass_time(3)
        before = here.whims.tries.count("east")
        for at in range(10):
            export(here, f"s{at}")
            await here.pass_time(0.1)
        await here.pass_time(3)
        assert len(await reports(here)) == 11
        assert here.whims.tries.count("east") - before <= 3
        assert all(each.idle for each in here.reconcilers)


async def test_a_replica_that_does_not_hear_the_other_cluster_changes_nothing() -> None:
    here = Running()
    async with here.running(replicas=2):
        await linked(here)
        await here.pass_time(10)
        assert await here.names("services") == ["cart-east"]
        before = here.store.revision
        await here.pass_time(10)
        assert here.store.revision == before


async def test_nothing_is_left_of_links_that_are_gone() -> None:
    here = Running()
    async with here.running():
        await linked(here)
        await here.pass_time(3)
        sizes = []
        for _ in range(4):
            await _link_and_unlink(here, [f"far{at}" for at in range(20)])
            stats = here.db.stats
            sizes.append((stats.cells, stats.inputs, here.reconcilers[0].attended))
        assert len(set(sizes[1:])) == 1
        assert await here.names("services") == ["cart-east"]


async def _link_and_unlink(here: Running, names: list[str]) -> None:
    kind = KINDS.by_key_resource(LINK)
    assert kind is not None
    selector = {"matchLabels": {"mirror.linkerd.io/exported": "remote-discovery"}}
    for name in names:
        spec = {"targetClusterName": name, "remoteDiscoverySelector": selector}
        spec |= {"clusterCredentialsSecret": "any"}
        link = {"apiVersion": kind.api_version(), "kind": "Link", "spec": spec}
        await here.create({**link, "metadata": {"name": name, "namespace": "links"}})
        row = SERVICES.get(here.db, EAST)
        there = EAST._replace(cluster=name)
        here.db.commit([Put(SERVICES, there, row), Put(LINKED, name, LinkedCluster("t", "d"))])
    await here.pass_time(5)
    assert len(await here.names("services")) == len(names) + 1
    for name in names:
        await here.objects.delete(kind, "links", name)
        there = EAST._replace(cluster=name)
        here.db.commit([Drop(SERVICES, there), Drop(LINKED, name)])
    await here.pass_time(5)


async def test_a_report_touches_no_plan() -> None:
    """linkerd2 #13579: what a Link says of itself starts nothing anew."""
    here = Running()
    async with here.running():
        await linked(here)
        await here.pass_time(3)
        link = ObjectKey(CLUSTER, "links", "east")
        before = here.db.read(linked_cluster, CLUSTER, "east"), LINKS.get(here.db, link)
        export(here, "pay")
        await here.pass_time(3)
        assert len(await reports(here)) == 2
        after = here.db.read(linked_cluster, CLUSTER, "east"), LINKS.get(here.db, link)
        assert all(old is new for old, new in zip(before, after, strict=True))
