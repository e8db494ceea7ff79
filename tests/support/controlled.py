"""A cluster in one process for controllers' tests: real engine, store, Objects; time by hand.

`Cluster` turns the controllers itself, step by step, in any order, with crashes; the tests of the
shell run the real Board and Reconciler instead.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

import msgspec

from isthmus.aio import ManualClock
from isthmus.ca import Bound
from isthmus.controllers import CONTROLLERS, Controller, Settings, admissions
from isthmus.controllers.execute import Executor
from isthmus.controllers.reconcile import places
from isthmus.controllers.settings import SETTINGS
from isthmus.controllers.steps import Step, Wait, Write, writes
from isthmus.controllers.time import FLOOR
from isthmus.engine import Change, Database, Delete, Put
from isthmus.errors import AlreadyExists, Conflict, NotFound
from isthmus.mesh import ALSO, SOURCES
from isthmus.mesh.census import CENSUS, CensusKey, Place, facts
from isthmus.model import Document, Key, Kind, ObjectKey
from isthmus.model.registry import BUILT_IN
from isthmus.model.times import format_time
from isthmus.store import Memory
from isthmus.store.objects import Admission, Objects, Preconditions

CLUSTER = "here"
NETWORKS = (ipaddress.ip_network("10.96.0.0/16"), ipaddress.ip_network("fd00:96::/112"))
SETTINGS_HERE = Settings("linkerd", "PEM")
FASTER = (AlreadyExists, NotFound, Conflict)


KINDS = BUILT_IN


def sign(account: Bound, secret: str) -> str:
    """A token that a test can read."""
    return f"{account.namespace}/{account.name}/{account.uid}/{secret}"


class Cluster:
    """Objects, tables over them, and the controllers, turned by hand."""

    def __init__(
        self,
        *,
        networks: Sequence[Any] = NETWORKS[:1],
        controllers: Sequence[Controller] = CONTROLLERS,
        seed: int = 1,
        more: Sequence[Admission] = (),
    ) -> None:
        self.clock = ManualClock()
        self.store = Memory(clock=self.clock)
        self.random = Random(seed)
        self.objects = Objects(
            self.store,
            clock=self.clock,
            random=self.random,
            admissions=(*admissions(self.store, networks), *more),
        )
        self._addresses = (f"10.1.{n // 250}.{n % 250 + 1}" for n in count())
        self.db = Database()
        self._held: dict[Key, int] = {}
        self.controllers = controllers
        self.executor = Executor(self.objects, KINDS.by_key_resource, self.clock, sign)
        self.db.commit([Put(SETTINGS, CLUSTER, SETTINGS_HERE)])

    # ---------------------------------------------------------------- people

    async def create(self, document: Document) -> Document:
        """As kubectl would."""
        kind = self.kind(document)
        return (await self.objects.create(kind, document)).document

    def kind(self, document: Document) -> Kind:
        """The kind that a document names."""
        kind = KINDS.by_api_version(document["apiVersion"], document["kind"])
        assert kind is not None, document["kind"]
        return kind

    async def namespace(self, name: str = "shop") -> None:
        """A namespace, and every other thing it begins with."""
        await self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def update(
        self, resource: str, name: str, patch: Document, *, status: bool = False, ns: str = "shop"
    ) -> Document:
        """Merge `patch` into an object, or into its status."""
        done = await self.objects.update(
            self.by_resource(resource),
            ns,
            name,
            lambda document: merge(document, patch),
            subresource="status" if status else "",
        )
        return done.document

    async def delete(
        self, resource: str, name: str, *, ns: str = "shop", propagation: str = "Background",
        grace: int | None = None,
    ) -> None:  # fmt: skip
        """As kubectl would; gone already is fine."""
        try:
            await self.objects.delete(
                self.by_resource(resource), ns, name, propagation=propagation, grace_seconds=grace
            )
        except NotFound:
            return

    def by_resource(self, resource: str) -> Kind:
        """The kind of a store key's resource."""
        kind = KINDS.by_key_resource(resource)
        assert kind is not None, resource
        return kind

    async def get(self, resource: str, name: str, ns: str = "shop") -> Document | None:
        """A stored document."""
        kind = self.by_resource(resource)
        record = await self.store.get(kind.key(ns, name))
        return None if record is None else msgspec.json.decode(record.value)

    async def all(self, resource: str, ns: str = "shop") -> list[Document]:
        """Stored documents by name."""
        page = await self.store.list(resource, ns)
        return [msgspec.json.decode(record.value) for record in page.records]

    async def names(self, resource: str, ns: str = "shop") -> list[str]:
        """Names of stored objects."""
        return [one["metadata"]["name"] for one in await self.all(resource, ns)]

    # --------------------------------------------------------------- kubelet

    async def run_pod(
        self, name: str, *, ready: bool = True, ip: str = "", ns: str = "shop"
    ) -> None:
        """What a node would report of a pod that runs."""
        row = await self.get("pods", name, ns)
        assert row is not None, name
        address = ip or (row.get("status") or {}).get("podIP") or next(self._addresses)
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": format_time(self.clock.utc()),
        }
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [condition],
        }
        await self.update("pods", name, {"status": status}, status=True, ns=ns)

    async def kubelet(self) -> None:
        """Run every pod that should run, remove every one that should go."""
        for pod in await self.all("pods", ""):
            meta = pod["metadata"]
            if meta.get("deletionTimestamp"):
                await self.delete("pods", meta["name"], ns=meta["namespace"], grace=0)
            elif pod["status"].get("phase") not in ("Succeeded", "Failed") and not ready(pod):
                await self.run_pod(meta["name"], ns=meta["namespace"])

    # ----------------------------------------------------------- controllers

    async def absorb(self) -> None:
        """Bring the tables to what the store holds, and time to what the clock says."""
        page = await self.store.list()
        changes: list[Change] = [Put(FLOOR, "", int(self.clock.time()))]
        now = {record.key: record.revision for record in page.records}
        for gone in self._held.keys() - now.keys():
            changes += rows(gone, None)
        for record in page.records:
            if self._held.get(record.key) != record.revision:
                changes += rows(record.key, record.value)
        self._held = now
        self.db.commit(changes)

    def plans(self) -> list[tuple[Controller, Any, tuple[Step, ...]]]:
        """Every plan that has a step."""
        return [
            (controller, key, plan)
            for place in self.db.read(places, CLUSTER)
            for controller in self.controllers
            for key in self.db.read(controller.keys, place)
            if (plan := self.db.read(controller.plan, key))
        ]

    def steps(self) -> list[Write]:
        """Every write that some controller wants now."""
        return [step for _, _, plan in self.plans() for step in writes(plan)]

    def moments(self) -> list[int]:
        """What some controller waits for."""
        return [s.until for _, _, plan in self.plans() for s in plan if isinstance(s, Wait)]

    def plan(self, name: str, key: object) -> tuple[Step, ...]:
        """One controller's plan for one key."""
        [controller] = [one for one in self.controllers if one.name == name]
        return self.db.read(controller.plan, key)

    async def execute(self, steps: Iterable[Write]) -> int:
        """Carry out steps; the number that found somebody faster."""
        late = 0
        for step in steps:
            try:
                await self.executor.execute(step)
            except FASTER:
                late += 1
        return late

    async def settle(self, *, kubelet: bool = False, rounds: int = 200) -> None:
        """Turn until no controller wants anything."""
        for _ in range(rounds):
            await self.absorb()
            steps = self.steps()
            if not steps and not kubelet:
                return
            before = self.store.revision
            await self.execute(steps)
            if kubelet:
                await self.kubelet()
            if not steps and self.store.revision == before:
                return
        message = f"not settled: {self.steps()[:3]}"
        raise AssertionError(message)


def rows(key: Key, value: bytes | None) -> Iterator[Change]:
    """A stored object in the tables, as the board puts it there."""
    census = CensusKey(CLUSTER, *key)
    known = facts(value) if value is not None else None
    yield Delete(CENSUS, census) if known is None else Put(CENSUS, census, known)
    for source in filter(None, (SOURCES.get(key.resource), ALSO.get(key.resource))):
        at = ObjectKey(CLUSTER, key.namespace, key.name)
        row = source.row(value) if value is not None else None
        yield Delete(source.table, at) if row is None else Put(source.table, at, row)


def ready(pod: Document) -> bool:
    """The pod's Ready condition."""
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def key(name: str, ns: str = "shop") -> ObjectKey:
    """A table key in this cluster."""
    return ObjectKey(CLUSTER, ns, name)


def merge(document: Document, patch: Document) -> Document:
    """RFC 7396."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merge(result.get(name) or {}, value)
        else:
            result[name] = value
    return result


def uid_of(document: Document) -> Preconditions:
    """The precondition that this very object is meant."""
    return Preconditions(uid=document["metadata"]["uid"])


__all__ = ["CLUSTER", "KINDS", "NETWORKS", "Cluster", "Key", "Place", "key", "merge", "uid_of"]
