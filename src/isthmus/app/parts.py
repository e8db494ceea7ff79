"""What a server is made of, and how its parts hang together."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Self

from isthmus import controllers
from isthmus.aio import Clock, Log, deadline, supervise
from isthmus.app import announce, certificates, figures, listeners, stores
from isthmus.board import Board, Intake, Intakes
from isthmus.ca import Keyring
from isthmus.config import ServerConfig
from isthmus.config.settings import LISTENERS
from isthmus.config.values import HostPort
from isthmus.engine import Database, View, query
from isthmus.errors import DeadlineExceeded
from isthmus.mesh.census import CENSUS, facts
from isthmus.mesh.tables import NAMESPACES, SOURCES
from isthmus.model.key import ObjectKey
from isthmus.model.registry import BUILT_IN
from isthmus.serve.admin import Admin, registry
from isthmus.serve.kube.api import Dispatcher
from isthmus.serve.kube.auth import AccountTokens, MastersOnly
from isthmus.serve.kube.server import KubeApi
from isthmus.store.contract import Store
from isthmus.store.objects import Objects

SERVED = frozenset({"kube", "admin"})
"""The surfaces of this version; others have addresses already."""

PATIENCE = 60.0
"""Seconds between two lines that say what the start waits for."""
PUBLISHING = 5.0
"""Seconds that readiness waits for default namespaces, and for the ConfigMap. Both go on being
tried afterwards."""

DEFAULT_NAMESPACE = "default"


@query
def stands(db: View, namespace: ObjectKey) -> bool:
    """Whether the namespace is there."""
    return NAMESPACES.get(db, namespace) is not None


Run = Callable[[], Coroutine[None, None, None]]


class Parts:
    """Opens what a server needs, in order, and closes it in reverse.

    Entered, `runs` names what must run; nothing runs before. `stopping` is set by whoever ends it.
    """

    def __init__(self, config: ServerConfig, *, clock: Clock, random: Random, log: Log) -> None:
        self._config = config
        self._clock = clock
        self._random = random
        self._log = log
        self._open = AsyncExitStack()
        self._endpoints: dict[str, HostPort] = {}
        self._announced = False
        self.stopping = False
        self.runs: list[tuple[str, Run]] = []

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    async def _start(self) -> None:
        self._warn_of_the_unserved()
        announce.withdraw(self._config)
        self._open.callback(announce.withdraw, self._config)
        self._store = await stores.open_store(self._config.store, clock=self._clock)
        self._open.push_async_callback(self._store.close)
        self._objects = Objects(
            self._store,
            clock=self._clock,
            random=self._random,
            admissions=controllers.admissions(self._store, (self._config.service_cidr,)),
        )
        self._database = Database()
        self._board = self._make_board(self._store)
        self._readings = figures.of_state(self._database, self._board, self._store)
        self.runs.append(("board", self._board.run))
        self._certificates, keyring = certificates.load(self._config, self._clock)
        self.runs.append(("certificates", self._renew))
        self._start_controllers()
        await self._start_kube(keyring)
        self._start_admin()

    def _warn_of_the_unserved(self) -> None:
        for listener in self._config.listeners:
            asked_for = str(listener.at) != LISTENERS[listener.name]
            if asked_for and listener.name not in SERVED:
                self._log.warning(
                    "this version does not serve the listener yet",
                    listener=listener.name,
                    at=str(listener.at),
                )

    def _make_board(self, store: Store) -> Board:
        intakes = {resource: Intake(*source) for resource, source in SOURCES.items()}
        return Board(
            self._database,
            self._config.cluster,
            store,
            Intakes(intakes, every=Intake(CENSUS, facts)),
            clock=self._clock,
            random=self._random,
            log=self._log,
        )

    def _start_controllers(self) -> None:
        wiring = controllers.Wiring(
            board=self._board,
            commit=self._board.commit,
            objects=self._objects,
            kinds=BUILT_IN.by_key_resource,
            clock=self._clock,
            random=self._random,
            log=self._log,
        )
        settings = controllers.Settings(
            control_plane_namespace=self._config.control_plane_namespace,
            root_ca=self._certificates.authority.bundle.decode(),
            families=(f"IPv{self._config.service_cidr.version}",),
        )
        reconciler = controllers.build(self._config.cluster, settings, wiring)
        self._supervised("controllers", reconciler.run)

    def _supervised(self, name: str, run: Run) -> None:
        """Run the part again when it fails: the others go on meanwhile."""
        again = functools.partial(
            supervise, name, run, clock=self._clock, random=self._random, log=self._log
        )
        self.runs.append((name, again))

    async def _start_kube(self, keyring: Keyring) -> None:
        listening = self._bind("kube")
        if listening is None:
            return
        requests = figures.Requests()
        dispatcher = Dispatcher(
            store=self._store,
            objects=self._objects,
            kinds=BUILT_IN,
            clock=self._clock,
            authorizer=MastersOnly(),
            tokens=AccountTokens(keyring, self._store, BUILT_IN, self._clock),
            issuer=keyring,
            secret=self._certificates.secret("continue tokens"),
            ready=lambda: not self.reasons(),
            observe=requests.observe,
        )
        self._readings += figures.of_requests(requests)
        api = KubeApi(dispatcher, clock=self._clock, log=self._log)
        self._readings.append(figures.of_watches(api))
        await api.start(listening, self._certificates.context)
        self.runs.append(("kube", api.run))

    def _start_admin(self) -> None:
        listening = self._bind("admin")
        if listening is None:
            return
        names = [listener.at.host for listener in self._config.listeners]
        admin = Admin(listening, self.reasons, registry(self._readings), names=names)
        self.runs.append(("admin", admin.run))

    def _bind(self, name: str) -> socket.socket | None:
        """The socket of a surface, None if it is off."""
        at = self._config.listener(name)
        if at is None:
            return None
        listening = self._open.enter_context(listeners.bind(name, at))
        self._endpoints[name] = listeners.bound(listening)
        return listening

    async def _renew(self) -> None:
        await self._certificates.run(self._rewrite, self._log)

    def _rewrite(self) -> None:
        if "kube" in self._endpoints:
            announce.write_kubeconfig(self._config, self._endpoints["kube"], self._certificates)

    def reasons(self) -> Mapping[str, str]:
        """What stands in the way of readiness, by part."""
        health = self._board.health
        reasons = {
            "server": "stopping" if self.stopping else "" if self._announced else "starting",
            "board": "" if health.synced else "the first sync is not done",
            "store": health.trouble,
        }
        return {part: reason for part, reason in reasons.items() if reason}

    async def settled(self) -> None:
        """Return when the tables hold what the store held when we started."""
        wanted = self._store.revision
        while True:
            try:
                await self._board.at(wanted, seconds=PATIENCE)
            except DeadlineExceeded:
                self._log.warning("still waiting", **self.reasons())
            else:
                break
        await self._namespaces_stand()

    async def _namespaces_stand(self) -> None:
        """Wait, but not for ever, until the controllers have made what users take for granted."""
        key = ObjectKey(self._config.cluster, "", DEFAULT_NAMESPACE)
        try:
            async with (
                deadline(self._clock, PUBLISHING, "making the default namespaces"),
                self._board.subscribe() as watched,
            ):
                watched.add(stands, key)
                while not (await watched.next())[stands, key]:
                    pass
        except DeadlineExceeded as fault:
            self._log.warning("still trying", what=fault.message)

    async def announce(self, group: asyncio.TaskGroup) -> None:
        """Tell the world where we listen; then be ready."""
        announce.write_files(self._config, self._endpoints, self._certificates)
        publishing = group.create_task(self._publish(), name="publish")
        try:
            async with deadline(self._clock, PUBLISHING, "writing the ConfigMap of endpoints"):
                await asyncio.shield(publishing)
        except DeadlineExceeded as fault:
            self._log.warning("still trying", what=fault.message)
        self._announced = True

    async def _publish(self) -> None:
        await supervise(
            "publish",
            lambda: announce.publish(self._objects, self._config, self._endpoints),
            clock=self._clock,
            random=self._random,
            log=self._log,
        )

    @property
    def told(self) -> Mapping[str, str]:
        """Where we listen, for the log."""
        return {name: str(at) for name, at in self._endpoints.items()}
