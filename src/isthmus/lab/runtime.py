"""A lab from the inside: everything that runs in its namespaces, on one loop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from ipaddress import IPv4Network
from random import SystemRandom

import structlog
import yaml

from isthmus import ca
from isthmus.agent.contract import Means as AgentMeans
from isthmus.aio import SystemClock
from isthmus.app import limits, logs
from isthmus.config import LogFormat
from isthmus.errors import IsthmusError, UserFault
from isthmus.lab import addressing, topology
from isthmus.lab.addressing import Plan
from isthmus.lab.agents import Agents
from isthmus.lab.cluster import Cluster, Means, whole_user_range
from isthmus.lab.forks import Forks
from isthmus.lab.hosts import Hosts
from isthmus.lab.images import Images
from isthmus.lab.kubelet.server import Kubelet
from isthmus.lab.network.broker import Outside
from isthmus.lab.network.fabric import Fabric
from isthmus.lab.network.sandbox import SCRATCH
from isthmus.lab.pods.plug import NetworkThread
from isthmus.lab.pods.pod import Pod
from isthmus.lab.pods.sidecar import Bare
from isthmus.lab.state import State
from isthmus.lab.trust import TrustFiles, write_trust
from isthmus.serve.kube.yaml_body import strict_yaml

APART = "~"
"""Between a cluster's name and a namespace, on the Unix socket."""


def main(
    what: str, loopback: IPv4Network, state: State, channel: socket.socket, forks: Forks
) -> int:
    """Run the lab until it is told to stop; return the exit code."""
    log = state.log.open("a", buffering=1)
    logs.configure(LogFormat.CONSOLE, log)
    os.umask(0o077)
    limits.raise_file_limit()
    plan = addressing.plan(topology.load(what), loopback)
    return asyncio.run(Lab(plan, state, channel, forks).run())


class Lab:
    """One run of a lab."""

    def __init__(self, plan: Plan, state: State, channel: socket.socket, forks: Forks) -> None:
        self._plan = plan
        self._forks = forks
        self._state = state
        self._clock = SystemClock()
        self._log = structlog.get_logger()
        self._outside = Outside(channel, self._stop)
        self._task: asyncio.Task[int] | None = None
        self._stopping = False
        self._clusters: list[Cluster] = []
        self._hosts: Hosts | None = None
        self._agents: Agents | None = None
        self._no_agents = ""

    async def run(self) -> int:
        """Bring it up, run it, take it down."""
        self._task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        self._outside.start()
        self._forks.attach()
        try:
            await self._guarded()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        except IsthmusError as fault:
            if self._stopping:  # parts that end find others gone already
                return 0
            self._log.warning("lab failed", why=fault.message)
            causes = [(each.path, each.message) for each in fault.causes]
            self._outside.tell(failed=fault.message, causes=causes)
            return 1
        return 0

    def _stop(self) -> None:
        if not self._stopping and self._task is not None:
            self._stopping = True
            self._task.cancel()

    async def _guarded(self) -> None:
        """Errors that were foreseen come alone, not in groups."""
        first: IsthmusError | None = None
        try:
            await self._run()
        except* IsthmusError as group:
            first = _first(group)
        if first is not None:
            raise first

    async def _run(self) -> None:
        thread = NetworkThread()
        fabric = await thread.do(lambda: _build(self._plan))
        self._outside.tell(step="the networks are there")
        self._find_agents()
        means = Means(
            plan=self._plan,
            fabric=fabric,
            outside=self._outside,
            thread=thread,
            images=Images(self._plan.topology.images),
            sidecars=self._agents or Bare(self._no_agents),
            agents=self._agents,
            folder=self._state.folder,
            clock=self._clock,
            random=SystemRandom(),
            log=self._log,
            forks=self._forks,
        )
        trust = self._trust()
        self._clusters = [Cluster(at, trust.get(at.name), means) for at in self._plan.clusters]
        self._hosts = Hosts(means)
        local = Kubelet(self._find, self._clock, self._status, self._hosts)
        try:
            await local.serve_local(self._state.socket)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hosts.run())
                for cluster in self._clusters:
                    group.create_task(cluster.run())
                await self._announce()
        finally:
            await self._end()

    def _find_agents(self) -> None:
        """Without an Envoy the lab runs all the same; pods that want a proxy wait for one."""
        means = AgentMeans(self._clock, SystemRandom(), self._log)
        try:
            self._agents = Agents(SCRATCH / "agents", means, switches_users=whole_user_range())
        except UserFault as fault:
            self._no_agents = fault.message
            self._outside.tell(step=f"no pod will have a proxy: {fault.message}")

    async def _announce(self) -> None:
        async with asyncio.TaskGroup() as group:
            for cluster in self._clusters:
                group.create_task(self._announced(cluster))
        self._write_kubeconfig()
        self._outside.tell(ready=True)

    async def _announced(self, cluster: Cluster) -> None:
        await cluster.ready()
        api = f"https://{cluster.at.loopback}:{addressing.API}"
        self._outside.tell(step=f"cluster {cluster.at.name} is there: {api}")
        for each in await cluster.published():
            self._outside.tell(step=f"{each.service}: http://{each.host}/")

    async def _end(self) -> None:
        """Let the servers write what they have; the kernel takes the rest."""
        async with asyncio.TaskGroup() as group:
            for cluster in self._clusters:
                group.create_task(cluster.server.stop())

    # ------------------------------------------------------------------------------------ files

    def _trust(self) -> dict[str, TrustFiles]:
        issuers = {}
        for at in self._plan.clusters:
            flags = at.cluster.server
            namespace = flags.get("control_plane_namespace") or "linkerd"
            domain = flags.get("trust_domain") or "cluster.local"
            issuers[at.name] = f"identity.{namespace}.{domain}"
        mode = self._plan.topology.trust
        return write_trust(self._state.folder / "trust", issuers, mode, self._clock.utc())

    def _write_kubeconfig(self) -> None:
        """One file with every cluster's context; the first is the current one."""
        merged: dict[str, object] = {"apiVersion": "v1", "kind": "Config"}
        lists: dict[str, list[object]] = {"clusters": [], "users": [], "contexts": []}
        for cluster in self._clusters:
            document, _ = strict_yaml((cluster.server.data_dir / "kubeconfig").read_bytes())
            merged.setdefault("current-context", document.get("current-context"))
            for name, held in lists.items():
                held.extend(document.get(name) or [])
        text = yaml.safe_dump({**merged, **lists}, sort_keys=False, width=2**20)
        ca.write_atomic(self._state.kubeconfig, text.encode())

    # ----------------------------------------------------------------------------------- status

    def _find(self, scope: str, name: str) -> Pod | None:
        cluster, _, namespace = scope.partition(APART)
        if not cluster:
            return None if self._hosts is None else self._hosts.pod(name)
        for each in self._clusters:
            if each.at.name == cluster and each.nodes is not None:
                return each.nodes.pod(namespace, name)
        return None

    def _status(self) -> dict[str, object]:
        hosts = [] if self._hosts is None else self._hosts.status()
        return {
            "kubeconfig": str(self._state.kubeconfig),
            "clusters": [each.status() for each in self._clusters],
            "hosts": hosts,
            "networks": [
                {"name": each.name, "cidr": str(each.cidr)} for each in self._plan.topology.networks
            ],
        }


def _build(plan: Plan) -> Fabric:
    fabric = Fabric(plan)
    fabric.build()
    return fabric


def _first(group: BaseExceptionGroup[IsthmusError]) -> IsthmusError:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
