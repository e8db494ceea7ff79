"""One cluster of a lab, running: control plane, nodes, load balancers, ways in and out."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec

from isthmus import ca
from isthmus.aio import Clock, Log
from isthmus.ca.kubeconfig import ADMIN, MASTERS
from isthmus.lab.addressing import API, KUBELET, ClusterAt, Plan
from isthmus.lab.agents import Agents
from isthmus.lab.balancers import Balancers, Published
from isthmus.lab.forks import Forks
from isthmus.lab.images import Images
from isthmus.lab.kubelet.server import Kubelet, server_context
from isthmus.lab.manifests import Applier
from isthmus.lab.network import relay
from isthmus.lab.network.broker import Outside
from isthmus.lab.network.fabric import Fabric, Router
from isthmus.lab.network.names import NameRelay
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.network.relay import DatagramRelay, Relay
from isthmus.lab.nodeproxy import NodeProxy, keep
from isthmus.lab.pods.api import Api, client_context
from isthmus.lab.pods.context import Tools
from isthmus.lab.pods.naming import Naming
from isthmus.lab.pods.node import ApiReporter, Nodes
from isthmus.lab.pods.plug import NetworkThread, PodPlug
from isthmus.lab.pods.pod import Home, Pod
from isthmus.lab.pods.probes import Prober
from isthmus.lab.pods.sidecar import Sidecars
from isthmus.lab.pods.sources import ApiSources
from isthmus.lab.servers import Server
from isthmus.lab.trust import TrustFiles

NODES = "system:nodes"
"""The group of kubelets, in every Kubernetes."""


class Means(msgspec.Struct, frozen=True):
    """What every part of a lab is given."""

    plan: Plan
    fabric: Fabric
    outside: Outside
    thread: NetworkThread
    images: Images
    sidecars: Sidecars
    agents: Agents | None
    folder: Path
    clock: Clock
    random: Random
    log: Log
    forks: Forks


class Cluster:
    """Everything of one cluster. `run` until cancelled; `ready` when it can be used."""

    def __init__(self, at: ClusterAt, trust: TrustFiles | None, means: Means) -> None:
        self.at = at
        self._means = means
        self._router: Router = means.fabric.routers[at.name]
        self.server = Server(
            at, self._router.namespace, means.folder / "clusters" / at.name, trust, means.clock,
            means.log, means.forks,
        )  # fmt: skip
        self._ready = asyncio.Event()
        self._has_agent = False
        self.nodes: Nodes | None = None
        self.balancers: Balancers | None = None

    @property
    def pods(self) -> list[Pod]:
        """The pods that run."""
        return [] if self.nodes is None else self.nodes.pods

    async def ready(self) -> None:
        """When its API answers from this machine, and its nodes are there."""
        await self._ready.wait()

    async def run(self) -> None:
        """Start, then keep up."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.server.run())
            await self.server.ready()
            await self._open_ways(group)
            await self._start_agent(group)
            authority = self._authority()
            api = f"https://{self.at.loopback}:{API}"
            async with (
                Api(api, self._client(authority, ADMIN, [MASTERS]), self._inside) as admin,
                Api(api, self._client(authority, self._kubelet_name, [NODES, MASTERS]),
                    self._inside) as node,
            ):  # fmt: skip
                await self._start(group, authority, admin, node)
                await asyncio.get_running_loop().create_future()  # until cancelled

    @property
    def _inside(self) -> Namespace:
        return self._router.namespace

    @property
    def _kubelet_name(self) -> str:
        return f"system:node:{self.at.nodes[0].name}"

    async def _start_agent(self, group: asyncio.TaskGroup) -> None:
        """Before any node: a pod that asks for a proxy must not start without."""
        agents, endpoints = self._means.agents, self.server.endpoints()
        if agents is None or not {"identity", "xds"} <= endpoints.keys():
            return
        name = self.at.name
        group.create_task(agents.run(name, self._realm, self._inside, endpoints))
        await agents.ready(name)
        self._has_agent = True

    @property
    def _realm(self) -> ca.Realm:
        flags = self.at.cluster.server
        return ca.Realm(
            str(flags.get("trust_domain") or "cluster.local"),
            str(flags.get("control_plane_namespace") or "linkerd"),
        )

    async def _start_node_proxy(self, admin: Api) -> None:
        """For pods without a sidecar; nobody waits for it."""
        agents, means = self._means.agents, self._means
        if agents is None or not self._has_agent:
            return
        proxy = NodeProxy(
            at=self.at, realm=self._realm, inside=self._inside, api=admin,
            log=means.folder / "clusters" / self.at.name / "node-proxy.log", clock=means.clock,
        )  # fmt: skip
        await keep(agents.of_node(proxy), means.clock, means.log)

    def _authority(self) -> ca.Authority:
        home = self.server.data_dir / "ca"
        return ca.load_or_make(home, f"isthmus {self.at.name}", now=self._means.clock.utc())

    def _client(self, authority: ca.Authority, user: str, groups: list[str]) -> ssl.SSLContext:
        leaf = authority.issue_client(user, groups, now=self._means.clock.utc())
        return client_context(authority.bundle, leaf)

    # -------------------------------------------------------------------------------- ways in

    async def _open_ways(self, group: asyncio.TaskGroup) -> None:
        """The control plane's listeners, for this machine, for pods and for the other clusters."""
        clock, outside, inside = self._means.clock, self._means.outside, self._inside
        endpoints = self.server.endpoints()
        for text in endpoints.values():
            host, _, port = text.rpartition(":")
            listening = await outside.listen(host, int(port))
            dial = relay.to(inside, host, int(port))
            group.create_task(Relay(listening, dial, clock).run())
        if "dns" in endpoints:
            await self._open_dns(group, endpoints["dns"])
        if "kube" not in endpoints:
            return
        host, _, port = endpoints["kube"].rpartition(":")
        dial = relay.to(inside, host, int(port))
        near = [(str(self.at.api_ip), 443), *((str(n.ip), API) for n in self.at.nodes)]
        ways = [(inside, *each) for each in near if each != (host, int(port))]
        for name, router in self._means.fabric.routers.items():
            if name != self.at.name:
                ways.append((router.namespace, host, int(port)))
        for namespace, ip, number in ways:
            group.create_task(Relay(namespace.listen(ip, number), dial, clock).run())

    async def _open_dns(self, group: asyncio.TaskGroup, text: str) -> None:
        host, _, port = text.rpartition(":")
        clock, inside, ip = self._means.clock, self._inside, str(self.at.dns_ip)
        target = (host, int(port))
        outer = await self._means.outside.listen(*target, datagrams=True)
        group.create_task(DatagramRelay(outer, inside, target).run())
        group.create_task(NameRelay(inside.datagrams(ip, 53), inside, target, clock).run())
        group.create_task(Relay(inside.listen(ip, 53), relay.to(inside, *target), clock).run())

    # ----------------------------------------------------------------------------------- nodes

    async def _start(
        self, group: asyncio.TaskGroup, authority: ca.Authority, admin: Api, node: Api
    ) -> None:
        means, at = self._means, self.at
        prober = Prober(self._inside, means.clock)
        tools = Tools(
            clock=means.clock,
            random=means.random,
            log=means.log,
            images=means.images,
            prober=prober,
            sources=ApiSources(node),
            switches_users=whole_user_range(),
        )
        self.nodes = Nodes(at, node, self._homes(node), tools)
        self.balancers = Balancers(
            self._router, admin, means.outside, means.thread, means.clock, means.log
        )
        await self._serve_kubelets(authority)
        group.create_task(self.nodes.run())
        group.create_task(self.balancers.run())
        await self.nodes.synced()
        group.create_task(self._start_node_proxy(admin))
        applier = Applier(admin)
        for path in at.cluster.manifests:
            await applier.file(path)
        self._ready.set()

    def _homes(self, api: Api) -> dict[str, Home]:
        at, means = self.at, self._means
        hosts = {each.host.name: str(each.ip) for each in means.plan.hosts_seen_by(at.cluster)}
        domain = str(at.cluster.server.get("cluster_domain") or "cluster.local")
        plug = PodPlug(self._router, means.thread)
        return {
            node.name: Home(
                cluster=at.name,
                node=node.name,
                host_ip=str(node.ip),
                api_host=str(at.api_ip),
                cluster_domain=domain,
                namespace=self._inside,
                plug=plug,
                reporter=ApiReporter(api),
                sidecars=means.sidecars,
                naming=Naming(server=str(at.dns_ip), domain=domain, hosts=hosts),
                logs=means.folder / "pods" / at.name,
            )
            for node in at.nodes
        }

    async def _serve_kubelets(self, authority: ca.Authority) -> None:
        assert self.nodes is not None  # noqa: S101  # made before
        for node in self.at.nodes:
            names = [str(node.ip), node.name]
            leaf = authority.issue_server(names, now=self._means.clock.utc())
            kubelet = Kubelet(self.nodes.pod, self._means.clock)
            listening = self._inside.listen(str(node.ip), KUBELET)
            await kubelet.serve_tls(listening, server_context(leaf, authority.bundle))

    async def published(self) -> list[Published]:
        """What can be reached from this machine once the manifests' Services are published."""
        assert self.balancers is not None  # noqa: S101  # it is ready
        await self.balancers.settled()
        return self.balancers.published

    def status(self) -> Mapping[str, object]:
        """For `lab status`."""
        pods = [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "ip": pod.ip,
                "ready": sum(each.ready for each in pod.facts().records),
                "containers": len(pod.facts().records),
                "restarts": sum(each.restarts for each in pod.facts().records),
            }
            for pod in sorted(self.pods, key=lambda pod: (pod.namespace, pod.name))
        ]
        published = [] if self.balancers is None else self.balancers.published
        return {
            "name": self.at.name,
            "api": f"https://{self.at.loopback}:{API}",
            "network": self.at.network.name,
            "podCIDR": str(self.at.cluster.pod_cidr),
            "serviceCIDR": str(self.at.cluster.service_cidr),
            "nodes": [{"name": node.name, "ip": str(node.ip)} for node in self.at.nodes],
            "ready": self._ready.is_set(),
            "serverPid": self.server.pid,
            "pods": pods,
            "published": [msgspec.to_builtins(each) for each in published],
        }


def whole_user_range() -> bool:
    """Whether other users exist for this process: root, and in no user namespace of its own."""
    mapped = Path("/proc/self/uid_map").read_text().split()
    return os.getuid() == 0 and len(mapped) >= 3 and int(mapped[2]) > 65536
