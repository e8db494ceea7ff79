"""The lab's networks: bridges between clusters and hosts, a router per cluster, pods behind it.

    lab's own namespace   a bridge per network, with the network's router address
    router of a cluster   `up0` on its network with the nodes' addresses, bridge `pods`
    pod                   `eth0` on that bridge, with the router as its way out
    host                  `eth0` on its network

Clusters on one network have routes to each other's pods. Everything else sees of a cluster only
what has an address of the network: nodes, LoadBalancer Services, hosts.

All methods run on the network's thread: pyroute2 runs event loops of its own.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address
from pathlib import Path

from isthmus.lab.addressing import ClusterAt, HostAt, Plan
from isthmus.lab.network import links, nat
from isthmus.lab.network.links import Links, mac_of
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.topology import Network

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
UPLINK = "up0"
PODS = "pods"
PORT = "eth0"


class Router:
    """The namespace that a cluster's nodes and control plane live in, and its pods hang on."""

    def __init__(self, at: ClusterAt, namespace: Namespace) -> None:
        self.at = at
        self.namespace = namespace
        self._links = Links(namespace)
        self._bridge = 0
        self._prefix = at.cluster.pod_cidr.prefixlen

    def build(self, plan: Plan) -> None:
        """Addresses, routes and rules; the uplink is there already."""
        at, here = self.at, self._links
        here.up(links.LOOPBACK)
        up = here.index(UPLINK)
        for node in at.nodes:
            here.address(up, node.ip, at.network.cidr.prefixlen)
        here.up(up)
        self._bridge = here.bridge(PODS)
        here.address(self._bridge, at.pod_gateway, self._prefix)
        here.default(at.gateway)
        flat = plan.topology.flat_with(at.cluster)
        for other in flat:
            here.via(other.pod_cidr, plan.cluster(other.name).nodes[0].ip)
        for network in plan.topology.networks:
            if not plan.topology.reaches(at.cluster, network):
                here.unreachable(network.cidr)
        here.unreachable(at.cluster.service_cidr)
        for ip in (at.api_ip, at.dns_ip):
            here.address(links.LOOPBACK, ip)
        with self.namespace.entered():
            FORWARD.write_text("1")
        nat.masquerade(self.namespace, at.cluster.pod_cidr, [each.pod_cidr for each in flat])

    def plug(self, pod: Namespace, ip: IPv4Address) -> None:
        """Connect a pod's namespace, and give it its address and its way out."""
        mac = mac_of(ip)
        name = _port_name(ip)
        index = self._links.veth(name, PORT, pod, mac)
        self._links.attach(index, self._bridge)
        _settle(pod, ip, self._prefix, self.at.pod_gateway)

    def unplug(self, ip: IPv4Address) -> None:
        """Take a pod's link away; harmless when it is gone."""
        self._links.remove(_port_name(ip))

    def own(self, ip: IPv4Address) -> None:
        """Answer to one more address: of the network, or of the cluster's Services."""
        self._links.address(self._link_of(ip), ip)

    def disown(self, ip: IPv4Address) -> None:
        """Answer to it no more."""
        self._links.forget(self._link_of(ip), ip)

    def _link_of(self, ip: IPv4Address) -> int:
        outside = ip in self.at.network.cidr
        return self._links.index(UPLINK) if outside else links.LOOPBACK

    def close(self) -> None:
        """Let go; the namespace ends when nothing runs in it."""
        self._links.close()
        self.namespace.close()


class Fabric:
    """All of a lab's networks. Built in the namespace of the thread that builds it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.home = Namespace.current("lab")
        self._links = Links(self.home)
        self._bridges: dict[str, int] = {}
        self.routers: dict[str, Router] = {}
        self.hosts: dict[str, Namespace] = {}

    def build(self) -> None:
        """Everything but pods."""
        self._links.up(links.LOOPBACK)
        FORWARD.write_text("1")
        for number, network in enumerate(self._plan.topology.networks):
            self._bridges[network.name] = self._links.bridge(f"net{number}")
            index = self._bridges[network.name]
            self._links.address(index, network.cidr[1], network.cidr.prefixlen)
        for cluster in self._plan.clusters:
            namespace = Namespace.make(cluster.name)
            self._connect(namespace, UPLINK, cluster.network, cluster.nodes[0].ip)
            router = Router(cluster, namespace)
            router.build(self._plan)
            self.routers[cluster.name] = router
        for host in self._plan.hosts:
            self.hosts[host.host.name] = self._host(host)

    def _host(self, at: HostAt) -> Namespace:
        namespace = Namespace.make(at.host.name)
        self._connect(namespace, PORT, at.network, at.ip)
        _settle(namespace, at.ip, at.network.cidr.prefixlen, at.gateway)
        return namespace

    def _connect(self, namespace: Namespace, port: str, network: Network, ip: IPv4Address) -> None:
        index = self._links.veth(_port_name(ip), port, namespace, mac_of(ip))
        self._links.attach(index, self._bridges[network.name])

    def close(self) -> None:
        """Let go of everything."""
        for router in self.routers.values():
            router.close()
        for namespace in self.hosts.values():
            namespace.close()
        self._links.close()
        self.home.close()


def _settle(namespace: Namespace, ip: IPv4Address, length: int, gateway: IPv4Address) -> None:
    inside = Links(namespace)
    try:
        inside.up(links.LOOPBACK)
        index = inside.index(PORT)
        inside.address(index, ip, length)
        inside.up(index)
        inside.default(gateway)
    finally:
        inside.close()


def _port_name(ip: IPv4Address) -> str:
    """A link's name on the bridge: at most 15 characters, the same for the same address."""
    return "v" + hashlib.sha256(ip.packed).hexdigest()[:10]
