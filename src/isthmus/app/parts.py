"""What a server is made of, and how its parts hang together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

from isthmus import controllers
from isthmus.app import (
    announce,
    certificates,
    dashboard,
    destination,
    dns,
    explain,
    figures,
    gatewaynames,
    identity,
    links,
    listeners,
    meshconfig,
    policy,
    rejections,
    stores,
    xds,
)
from isthmus.app.limits import open_files
from isthmus.app.means import Means, Run
from isthmus.app.readiness import Readiness
from isthmus.board import Board, Intake, Intakes, LiveKinds
from isthmus.config import MemoryStore, ServerConfig
from isthmus.config.settings import LISTENERS
from isthmus.config.values import HostPort
from isthmus.controllers.inject import Injector
from isthmus.engine import Database
from isthmus.errors import DeadlineExceeded
from isthmus.mesh import ALSO, CENSUS, SOURCES, facts
from isthmus.model.registry import BUILT_IN
from isthmus.serve.admin import Admin, Page, registry
from isthmus.serve.dns import DnsServer, Resolver
from isthmus.serve.identity import IdentityServer
from isthmus.serve.kube.accounts import AccountTokens
from isthmus.serve.kube.api import Dispatcher, Observe, Verdict
from isthmus.serve.kube.auditlog import AuditLog
from isthmus.serve.kube.escalation import NoEscalation
from isthmus.serve.kube.limits import DEFAULT_LIMITS, within
from isthmus.serve.kube.node_proxy import NodeProxy
from isthmus.serve.kube.rbac import Rbac
from isthmus.serve.kube.server import KubeApi
from isthmus.serve.linkerd import GrpcServer, Service, Streams
from isthmus.store.objects import Objects

SERVED = ("kube", "destination", "policy", "identity", "xds", "dns", "admin")
"""The surfaces of this version; others have addresses already."""
SOCKETS = ("kube", "identity", "admin")
"""Those that take a socket from us; gRPC makes its own."""


class Parts:
    """Opens what a server needs, in order, and closes it in reverse.

    Entered, `runs` names what must run; nothing runs before. `stopping` says whether the end has
    begun: then nothing is ready.
    """

    def __init__(self, config: ServerConfig, means: Means, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._config = config
        self._means = means
        self._open = AsyncExitStack()
        self._sockets: dict[str, socket.socket] = {}
        self._endpoints: dict[str, HostPort] = {}
        self._identity: IdentityServer | None = None
        self._pages: dict[str, Page] = {}
        self._streams: dict[str, Streams] = {}
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
        for name in SOCKETS:
            self._bind(name)
        self._bind_dns()
        hosts = {self._endpoints["kube"].host} if "kube" in self._endpoints else set()
        self._certificates, self._keyring = certificates.load(
            self._config, self._means.clock, hosts=hosts
        )
        self.runs.append(("certificates", self._renew))
        rotation = certificates.rotation(self._config, self._keyring, self._means)
        self.runs.append(("token keys", rotation.run))
        await self._open_store()
        await self._open_trust()
        self._start_controllers()
        self._start_links()
        await self._start_kube()
        self._start_grpc("destination", {destination.NAME: destination.service()})
        self._start_grpc(policy.NAME, policy.services())
        self._readings += figures.of_streams(self._streams)
        self._start_identity()
        self._start_xds()
        self._start_dns()
        self._start_admin()

    def _warn_of_the_unserved(self) -> None:
        for listener in self._config.listeners:
            asked_for = str(listener.at) != LISTENERS[listener.name]
            if asked_for and listener.name not in SERVED:
                self._means.log.warning(
                    "this version does not serve the listener yet",
                    listener=listener.name,
                    at=str(listener.at),
                )

    def _bind(self, name: str) -> None:
        """Bind the socket of a surface, unless it is off."""
        at = self._config.listener(name)
        if at is not None:
            listening = self._open.enter_context(listeners.bind(name, at))
            self._sockets[name] = listening
            self._endpoints[name] = listeners.bound(listening)

    def _bind_dns(self) -> None:
        at = self._config.listener(dns.NAME)
        self._dns = None if at is None else dns.bind(at)
        for each in self._dns or ():
            self._open.enter_context(each)
            self._endpoints[dns.NAME] = listeners.bound(each)

    async def _open_store(self) -> None:
        clock, random, log = self._means
        store = await stores.open_store(self._config.store, clock=clock)
        self._open.push_async_callback(store.close)
        self._admissions = (
            *controllers.admissions(store, (self._config.service_cidr,)),
            Injector(store, self._config.control_plane_namespace),
        )
        self._objects = Objects(store, clock=clock, random=random, admissions=self._admissions)
        self._store = store
        database = Database()
        self._board = Board(
            database, self._config.cluster, store, intakes(), clock=clock, random=random, log=log
        )
        self._kinds = LiveKinds(self._board, self._config.cluster)
        self.runs.append(("kinds", partial(self._means.keep, "kinds", self._kinds.run)))
        self._board.commit([destination.mesh_settings(self._config), *dns.hosts(self._config)])
        self.runs.append(("board", self._board.run))
        self._readings = figures.of_state(database, self._board, store)
        self.readiness = Readiness(self._config, self._means, store, self._board, self._stopping)

    async def _open_trust(self) -> None:
        """The mesh's trust, which is not the API's."""
        self._trust = await identity.keeper(self._config, self._means, self._store, self._objects)
        self.runs.append(("trust", partial(self._means.keep, "trust", self._trust.run)))
        self._tokens = AccountTokens(self._keyring, self._store, BUILT_IN, self._means.clock)

    def _start_controllers(self) -> None:
        clock, random, log = self._means
        wiring = controllers.Wiring(
            board=self._board,
            commit=self._board.commit,
            objects=self._objects,
            kinds=self._kinds.by_key_resource,
            sign=self._keyring.sign_kept,
            clock=clock,
            random=random,
            log=log,
        )
        settings = controllers.Settings(
            control_plane_namespace=self._config.control_plane_namespace,
            root_ca=self._certificates.authority.bundle.decode(),
            unsupported=destination.FAULTS,
            dialects=policy.DIALECTS,
        )
        reconciler = controllers.build(self._config.cluster, settings, wiring)
        name = "controllers"
        self.runs.append((name, partial(self._means.keep, name, reconciler.run)))

    def _start_links(self) -> None:
        passing = isinstance(self._config.store, MemoryStore)
        home = None if passing else self._config.data_dir / "links"
        place = links.Place(
            self._board, self._store, self._objects, links.remote(intakes()), self._means, home
        )
        self._links = links.Links(self._config.cluster, place)
        self.runs.append(("links", partial(self._means.keep, "links", self._links.run)))
        names = gatewaynames.GatewayNames(self._config.cluster, self._board, self._means)
        self.runs.append(("gateway names", partial(self._means.keep, "names", names.run)))
        self._readings += links.figures_of(self._links, self._means.clock)
        self._pages["/links"] = links.page_of(self._links, self._means.clock)

    async def _settled(self) -> None:
        """Our own objects are known, and those of linked clusters as far as they answer."""
        await self.readiness.settled()  # before, every Service would seem to be missing
        await self._links.settled()

    async def _start_kube(self) -> None:
        if "kube" not in self._sockets:
            return
        clock, random, _ = self._means
        keyring, requests = self._keyring, figures.Requests()
        audit = AuditLog(self._config.data_dir, clock, self._means.log)
        self._open.push_async_callback(audit.close)
        self.runs.append(("audit", audit.run))
        rights = Rbac(self._board, self._config.cluster)
        # Writes of people pass one gate more than those of the controllers.
        gates = (*self._admissions, NoEscalation(rights, self._store))
        dispatcher = Dispatcher(
            store=self._store,
            objects=Objects(self._store, clock=clock, random=random, admissions=gates),
            kinds=self._kinds,
            clock=clock,
            authorizer=rights,
            tokens=self._tokens,
            issuer=keyring,
            fence=self._in_force,
            nodes=NodeProxy(self._store, self._certificates.to_kubelets),
            secret=self._certificates.secret("continue tokens"),
            ready=lambda: not self.readiness.reasons(),
            observe=_both(requests.observe, audit.observe),
        )
        self._kinds.on_retire(dispatcher.retire)
        limits = within(DEFAULT_LIMITS, open_files())
        api = KubeApi(dispatcher, clock=clock, log=self._means.log, limits=limits)
        self._open.push_async_callback(api.stop)
        await api.start(self._sockets["kube"], self._certificates.context)
        self.runs.append(("kube", api.run))
        self._readings += [
            *figures.of_requests(requests),
            figures.of_watches(api),
            *figures.of_connections(api),
            *figures.of_audit(audit),
        ]

    async def _in_force(self, revision: int) -> None:
        """The tables, and so the authorizer, know the revision."""
        try:
            await self._board.at(revision)
        except DeadlineExceeded as fault:
            self._means.log.warning("rights are written and not yet in force", why=fault.message)

    def _start_grpc(self, name: str, services: Mapping[str, Service]) -> None:
        """Serve what linkerd2-proxies ask on a listener, unless it is off."""
        at = self._config.listener(name)
        if at is None:
            return
        clock, random, log = self._means
        server = GrpcServer(services, self._board, clock=clock, random=random, log=log)
        self._open.push_async_callback(server.close)
        self._endpoints[name] = listeners.bind_grpc(server.bind, name, at)

        async def run() -> None:
            await self._settled()
            await server.run()

        self.runs.append((name, run))
        self._streams[name] = server.streams

    def _start_identity(self) -> None:
        if "identity" not in self._sockets:
            return
        server = identity.server(
            self._sockets["identity"],
            self._config,
            self._means,
            self._trust,
            self._tokens,
            (self._store, self._objects),
        )
        self._open.push_async_callback(server.close)
        self.runs.append(("identity", server.run))
        self._readings += figures.of_identity(server)
        self._identity = server

    def _start_xds(self) -> None:
        at = self._config.listener(xds.NAME)
        if at is None:
            return
        serving = identity.Serving(self._config, self._trust, self._means.clock)
        serving.look()
        server = xds.server(self._config, self._means, self._board)
        self._open.push_async_callback(server.close)
        listening = partial(server.bind, leaf=xds.leaf(serving, self._means))
        self._endpoints[xds.NAME] = listeners.bind_grpc(listening, xds.NAME, at)
        self.runs.append(("certificate of xds", partial(self._means.keep, "xds leaf", serving.run)))

        async def run() -> None:
            await self._settled()
            await server.run()

        self.runs.append((xds.NAME, run))
        self._readings += figures.of_xds(server.streams)
        streams, cluster = server.streams, self._config.cluster
        nacked = rejections.Rejections(streams.nacked, BUILT_IN, self._board.commit)
        self.runs.append(("rejections", partial(self._means.keep, "rejections", nacked.run)))
        self._pages["/proxies"] = lambda _: streams.report()
        self._pages[xds.LEAVING] = xds.leaving(self._board, streams, cluster)
        if self._identity is not None:
            self._identity.heard = xds.leaving_outside(self._board, streams, cluster)

    def _start_dns(self) -> None:
        if self._dns is None:
            return
        server = DnsServer(Resolver(self._board.read), *self._dns, self._means.clock)

        async def run() -> None:
            await self.readiness.settled()  # before, every name would seem to be missing
            await server.run()

        self.runs.append((dns.NAME, run))
        self._readings += figures.of_dns(server.resolver)

    def _start_admin(self) -> None:
        if "admin" not in self._sockets:
            return
        self._pages[explain.PAGE] = explain.page(self._board.read)
        names = [listener.at.host for listener in self._config.listeners]
        metrics = registry(self._readings)
        reasons, store = self.readiness.reasons, self._store
        shown = dashboard.overview(self._config.cluster, store, reasons, dict(self._pages))
        self._pages["/overview"] = shown
        admin = Admin(
            self._sockets["admin"],
            self.readiness.reasons,
            metrics,
            names=names,
            pages=self._pages,
        )
        self.runs.append(("admin", admin.run))

    async def _renew(self) -> None:
        await self._certificates.run(self._rewrite, self._means.log)

    def _rewrite(self) -> None:
        if "kube" in self._endpoints:
            announce.write_kubeconfig(self._config, self._endpoints["kube"], self._certificates)

    async def announce(self, group: asyncio.TaskGroup) -> None:
        """See `Readiness.announce`."""
        await self.readiness.announce(group, self._objects, self._endpoints, self._certificates)
        follow = partial(meshconfig.follow, self._objects, self._config, self._trust.now)
        group.create_task(self._means.keep("mesh config", follow), name="mesh config")

    @property
    def told(self) -> Mapping[str, str]:
        """Where we listen, for the log."""
        return {name: str(at) for name, at in self._endpoints.items()}


def _both(first: Observe, second: Observe) -> Observe:
    def observe(verdict: Verdict) -> None:
        first(verdict)
        second(verdict)

    return observe


def intakes() -> Intakes:
    """The mesh's tables, and the census of everything."""
    by_resource = {resource: Intake(*source) for resource, source in SOURCES.items()}
    also = {resource: Intake(*source) for resource, source in ALSO.items()}
    return Intakes(by_resource, every=Intake(CENSUS, facts), also=also)
