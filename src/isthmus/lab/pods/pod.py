"""One pod, from its place in the network to its last breath.

    place     namespace, address, volumes
    live      sidecar, init containers one after the other, then all others
    end       asked to go: drain, stop everything, give everything back

Its status is computed from what is true (`status`) and written whenever that changed; writing never
holds the pod up.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from datetime import datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Protocol

import msgspec

from isthmus.aio import Latest
from isthmus.errors import DeadlineExceeded, IsthmusError, NotFound, Unavailable
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.network.sandbox import SCRATCH
from isthmus.lab.pods import process
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.container import Container
from isthmus.lab.pods.context import RETRY, Context, Tools
from isthmus.lab.pods.mounts import Mount
from isthmus.lab.pods.naming import Naming
from isthmus.lab.pods.sidecar import Place, Sidecar, Sidecars
from isthmus.lab.pods.sources import ConfigError, Where
from isthmus.lab.pods.states import PodFacts, Record, Role, Waiting
from isthmus.lab.pods.status import pod_status
from isthmus.lab.pods.volumes import Volumes
from isthmus.model.document import items, number, text, truth

REFRESH = 60.0
"""Seconds between looks at the objects that volumes show (the kubelet's sync period)."""

_LATER = (Unavailable, DeadlineExceeded)
"""What a server that is away, or just starts, answers."""

_Write = Callable[[], Awaitable[None]]


class Plug(Protocol):
    """Where pods get their network; the fabric's router, off the loop."""

    async def plug(self) -> tuple[Namespace, IPv4Address]:
        """A connected namespace and its address."""
        ...

    async def unplug(self, namespace: Namespace, ip: IPv4Address) -> None:
        """Give both back; whatever runs inside is killed."""
        ...


class Reporter(Protocol):
    """Whom a pod tells how it is."""

    async def report(self, document: Document, status: Document) -> None:
        """Store the status. NotFound: the pod is gone; Unavailable: try again."""
        ...

    async def remove(self, document: Document) -> None:
        """Nothing of the pod is left: let its object go."""
        ...


class Home(msgspec.Struct, frozen=True):
    """The node that a pod is on."""

    cluster: str
    node: str
    host_ip: str
    api_host: str
    cluster_domain: str
    namespace: Namespace
    """The node's own, for pods with hostNetwork."""
    plug: Plug
    reporter: Reporter
    sidecars: Sidecars
    naming: Naming
    logs: Path


class Pod:
    """Runs one pod. `run` ends when the pod is gone."""

    def __init__(self, document: Document, home: Home, tools: Tools) -> None:
        self.document = document
        self._home = home
        self._tools = tools
        self._namespace: Namespace | None = None
        self._ip: IPv4Address | None = None
        self._sidecar: Sidecar | None = None
        self._volumes: Volumes | None = None
        self._containers: list[Container] = []
        self._waiting = self._unborn()
        self._started: datetime | None = None
        self._over = False
        self._ending = asyncio.Event()
        self._forced = False
        self._context: Context | None = None
        self._blocked = ""
        self._said: Document | None = None
        self._turns = 0
        self._changes: Latest[int] = Latest(0)
        self._conditions = items(document, "status.conditions")
        self._logs = home.logs / self.namespace / f"{self.name}_{self.uid[:8]}"
        self._scratch = SCRATCH / "pods" / (self.uid or self.name)

    @property
    def name(self) -> str:
        return text(self.document, "metadata.name")

    @property
    def namespace(self) -> str:
        return text(self.document, "metadata.namespace")

    @property
    def uid(self) -> str:
        return text(self.document, "metadata.uid")

    @property
    def ip(self) -> str:
        """Its address, "" before it has one."""
        return "" if self._ip is None else str(self._ip)

    def container(self, name: str) -> Container | None:
        """A container by its name; the first that is no init container if "" is asked for."""
        found = [each for each in self._containers if each.name == name or not name]
        main = [each for each in found if each.record.role is Role.MAIN]
        return next(iter(main or found), None)

    def sidecar_log(self, name: str) -> Path | None:
        """The file that the sidecar writes, if it plays the container of this name."""
        beside = self._sidecar
        played = beside is not None and name in beside.names
        return self._logs / f"{name}.log" if played else None

    @property
    def network(self) -> Namespace | None:
        """Its network namespace, once it has one."""
        return self._namespace

    # --------------------------------------------------------------------------- what it is told

    def update(self, document: Document) -> None:
        """Its object has changed."""
        self.document = document
        self._conditions = items(document, "status.conditions") or self._conditions
        if text(document, "metadata.deletionTimestamp"):
            self._ending.set()
        self.touch()

    def vanish(self) -> None:
        """Its object is gone: nothing is waited for any more."""
        self._forced = True
        self._ending.set()
        for each in self._containers:
            each.kill()

    def touch(self) -> None:
        """Something that the status tells has changed."""
        self._turns += 1
        self._changes.set(self._turns)

    # ------------------------------------------------------------------------------------- life

    async def run(self) -> None:
        """Live until asked to go, then go."""
        self._started = self._tools.clock.utc()
        if text(self.document, "metadata.deletionTimestamp"):
            self._ending.set()
        try:
            async with asyncio.TaskGroup() as group:
                reporting = group.create_task(self._reporting())
                life = group.create_task(self._live())
                await self._ending.wait()
                if self._context is None:  # it has no place yet, or no sidecar
                    life.cancel()
                    await asyncio.wait([life])
                await self._end()
                life.cancel()
                reporting.cancel()
        except Exception:
            for each in self._containers:
                each.kill()
            await self._release()
            raise
        await self._farewell()

    async def _live(self) -> None:
        if not await self._settle():
            return
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(self._refresh())
            beside = await self._through_init(group)
            if beside is not None:
                mains = [self._make(spec, Role.MAIN) for spec in self._specs("containers")]
                self.touch()
                running = [group.create_task(each.run()) for each in mains]
                if running:
                    await asyncio.wait(running)
                else:
                    await self._ending.wait()
                for each in reversed(beside):
                    await each.stop(self._grace())
            refreshing.cancel()
        if not self._ending.is_set():
            await self._completed()

    async def _completed(self) -> None:
        """All containers have ended for good: the pod stays as a record."""
        if self._sidecar is not None:
            await self._sidecar.stop()
        self._over = True
        await self._release()
        self.touch()

    async def _settle(self) -> bool:
        """A place, volumes, a sidecar; tried until it works. False when asked to go meanwhile."""
        while not self._ending.is_set():
            try:
                context = await self._place()
                await context.volumes.prepare()
                if self._sidecar is not None:
                    await self._sidecar.start()
            except (ConfigError, IsthmusError, OSError) as fault:
                self._wait_for(fault)
                await self._tools.clock.sleep(RETRY)
            else:
                self._context = context
                return True
        return False

    def _wait_for(self, fault: BaseException) -> None:
        told = str(fault)
        if told != self._blocked:
            self._blocked = told
            self._tools.log.warning("pod waits", pod=f"{self.namespace}/{self.name}", why=told)

    async def _place(self) -> Context:
        home = self._home
        if self._namespace is None:
            if truth(self.document, "spec.hostNetwork"):
                self._namespace, self._ip = home.namespace, IPv4Address(home.host_ip)
            else:
                self._namespace, self._ip = await home.plug.plug()
        where = Where(
            node=home.node,
            host_ip=home.host_ip,
            pod_ip=self.ip,
            cluster_domain=home.cluster_domain,
            api_host=home.api_host,
        )
        self._scratch.mkdir(parents=True, exist_ok=True)
        for folder in (self._scratch.parent, self._scratch):  # other users pass through
            folder.chmod(0o711)
        volumes = Volumes(self.document, where, self._tools.sources, self._scratch / "volumes")
        self._volumes = volumes
        if self._sidecar is None:
            self._sidecar = home.sidecars.beside(self._place_of(where))
        beside = self._sidecar
        self.touch()
        return Context(
            document=self.document,
            tools=self._tools,
            where=where,
            namespace=self._namespace,
            volumes=volumes,
            mounts=(*self._names(where), *(beside.mounts if beside is not None else ())),
            env=beside.env if beside is not None else {},
            proxied=beside is not None,
            scratch=self._scratch,
            logs=self._logs,
            changed=self.touch,
        )

    def _place_of(self, where: Where) -> Place:
        assert self._namespace is not None and self._ip is not None  # noqa: S101, PT018  # placed
        return Place(
            cluster=self._home.cluster,
            document=self.document,
            node=where.node,
            host_ip=where.host_ip,
            ip=self._ip,
            namespace=self._namespace,
            folder=self._scratch,
            logs=self._logs,
            start=process.start,
            token=lambda audience, seconds: self._tools.sources.token(
                self.document, audience, seconds
            ),
            changed=self.touch,
        )

    def _names(self, where: Where) -> tuple[Mount, ...]:
        folder = self._scratch / "etc"
        folder.mkdir(exist_ok=True)
        found = []
        for name, body in self._home.naming.files(self.document, where).items():
            path = folder / name
            path.write_text(body)
            path.chmod(0o644)
            found.append(Mount(str(path), f"/etc/{name}"))
        return tuple(found)

    async def _through_init(self, group: asyncio.TaskGroup) -> list[Container] | None:
        """Run the init containers; return the native sidecars. None: one failed for good."""
        beside: list[Container] = []
        for spec in self._specs("initContainers"):
            native = text(spec, "restartPolicy") == "Always"
            container = self._make(spec, Role.NATIVE_SIDECAR if native else Role.INIT)
            self.touch()
            if native:
                group.create_task(container.run())
                await container.started()
                beside.append(container)
            elif not await container.run():
                for each in reversed(beside):
                    await each.stop(self._grace())
                return None
        return beside

    def _specs(self, name: str) -> list[Document]:
        played = self._sidecar.names if self._sidecar is not None else frozenset()
        listed = items(self.document, f"spec.{name}")
        return [each for each in listed if text(each, "name") not in played]

    def _make(self, spec: Document, role: Role) -> Container:
        assert self._context is not None  # noqa: S101  # settled before
        container = Container(self._context, spec, role)
        self._containers.append(container)
        return container

    def _grace(self) -> int:
        asked = number(self.document, "metadata.deletionGracePeriodSeconds", -1)
        own = number(self.document, "spec.terminationGracePeriodSeconds", 30)
        return asked if asked >= 0 else own

    async def _refresh(self) -> None:
        while True:
            await self._tools.clock.sleep(REFRESH)
            if self._volumes is None or not self._volumes.changing:
                continue
            try:
                await self._volumes.prepare()
            except (ConfigError, OSError) as fault:
                self._wait_for(fault)

    # -------------------------------------------------------------------------------------- end

    async def _end(self) -> None:
        grace = 0 if self._forced else self._grace()
        if self._sidecar is not None and not self._over and not self._forced:
            await self._sidecar.drain(grace)
        mains = [each for each in self._containers if each.record.role is not Role.NATIVE_SIDECAR]
        async with asyncio.TaskGroup() as group:
            for each in mains:
                group.create_task(each.stop(grace))
        for each in reversed(self._containers):
            await each.stop(grace)
        if self._sidecar is not None and not self._over:
            await self._sidecar.stop()

    async def _farewell(self) -> None:
        """Nothing runs any more."""
        await self._release()
        self._over = True
        if not self._forced:
            await self._say(self._status())
            await self._persist(lambda: self._home.reporter.remove(self.document))

    async def _release(self) -> None:
        if self._namespace is not None and self._namespace is not self._home.namespace:
            assert self._ip is not None  # noqa: S101  # both are had together
            namespace, self._namespace = self._namespace, None
            await self._home.plug.unplug(namespace, self._ip)
        shutil.rmtree(self._scratch, ignore_errors=True)

    # ----------------------------------------------------------------------------------- status

    async def _reporting(self) -> None:
        with self._changes.watch() as watch:
            while True:
                await watch.next()
                await self._say(self._status())

    async def _say(self, status: Document) -> None:
        if status != self._said:
            await self._persist(lambda: self._home.reporter.report(self.document, status))
            self._said = status
            self._conditions = status["conditions"]

    async def _persist(self, write: _Write) -> None:
        """Write until the server takes it; what it refuses for good is told in the log."""
        while True:
            try:
                await write()
            except _LATER as fault:
                self._wait_for(fault)
                await self._tools.clock.sleep(RETRY)
                if self._forced:
                    return
            except IsthmusError as fault:
                if not isinstance(fault, NotFound):
                    self._wait_for(fault)
                return
            else:
                return

    def _status(self) -> Document:
        return pod_status(self.facts(), self._conditions, self._tools.clock.utc())

    def facts(self) -> PodFacts:
        """What is true of it now."""
        gates = tuple(
            text(each, "conditionType") for each in items(self.document, "spec.readinessGates")
        )
        return PodFacts(
            records=self._records(),
            restart_policy=text(self.document, "spec.restartPolicy") or "Always",
            gates=gates,
            host_ip=self._home.host_ip,
            pod_ip=self.ip,
            started=self._started,
            placed=self._namespace is not None,
            over=self._over,
        )

    def _records(self) -> tuple[Record, ...]:
        found = {each.name: each.record for each in self._containers}
        if self._sidecar is not None:
            found |= self._sidecar.records()
        return tuple(found.get(each.name, each) for each in self._waiting)

    def _unborn(self) -> tuple[Record, ...]:
        """The records of containers before their turn comes."""
        found = []
        before = items(self.document, "spec.initContainers")
        for spec in before:
            native = text(spec, "restartPolicy") == "Always"
            role = Role.NATIVE_SIDECAR if native else Role.INIT
            found.append(Record(name=text(spec, "name"), image=text(spec, "image"), role=role))
        waiting = Waiting("PodInitializing") if before else Waiting()
        found += [
            Record(name=text(spec, "name"), image=text(spec, "image"), state=waiting)
            for spec in items(self.document, "spec.containers")
        ]
        return tuple(found)
