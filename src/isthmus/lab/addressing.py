"""Who gets which address: a pure function of the topology, so that nobody has to ask around.

A network's first address is the lab's own router between networks; nodes follow in the order of
the clusters, then hosts. The upper half is for LoadBalancer Services, dealt out to the clusters of
the network in turn, so that two of them never choose the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

import msgspec

from isthmus.errors import Cause, Invalid
from isthmus.lab.topology import Cluster, Host, Network, Topology

LOOPBACK = IPv4Network("127.55.0.0/16")
"""Where clusters listen on the host: the first address of the N-th /24 is cluster N's."""

KUBELET = 10250
API = 6443
PORTS: Mapping[str, int] = {
    "kube": API,
    "destination": 8086,
    "policy": 8090,
    "identity": 8080,
    "xds": 15010,
    "catalog": 8500,
    "dns": 8600,
    "admin": 9990,
}
"""The usual ports of a control plane."""


class NodeAt(msgspec.Struct, frozen=True):
    """A node and its address on the network."""

    name: str
    ip: IPv4Address
    labels: Mapping[str, str] = {}


class ClusterAt(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and all addresses that are settled beforehand."""

    cluster: Cluster
    number: int
    """From 1, in the order of the file."""
    loopback: str
    network: Network
    gateway: IPv4Address
    """The network's router."""
    nodes: tuple[NodeAt, ...]
    balancers: tuple[int, int]
    """Of the upper half of the network: the first place, and the step to the next."""

    @property
    def name(self) -> str:
        return self.cluster.name

    @property
    def pod_gateway(self) -> IPv4Address:
        """The address that pods see as their router."""
        return self.cluster.pod_cidr[1]

    @property
    def api_ip(self) -> IPv4Address:
        """ClusterIP of the API's own Service (Kubernetes: the first of the range)."""
        return self.cluster.service_cidr[1]

    @property
    def dns_ip(self) -> IPv4Address:
        """ClusterIP of the cluster's name server (kubeadm: the tenth of the range)."""
        return self.cluster.service_cidr[10]

    def pod_ips(self) -> Iterator[IPv4Address]:
        """Addresses that pods may have, in order."""
        network = self.cluster.pod_cidr
        return (network[at] for at in range(2, network.num_addresses - 1))

    def balancer_ips(self) -> Iterator[IPv4Address]:
        """Addresses that LoadBalancer Services may have, in order."""
        first, step = self.balancers
        cidr = self.network.cidr
        half = cidr.num_addresses // 2
        return (cidr[at] for at in range(half + first, cidr.num_addresses - 1, step))


class HostAt(msgspec.Struct, frozen=True, kw_only=True):
    """A host and its address."""

    host: Host
    ip: IPv4Address
    network: Network
    gateway: IPv4Address


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every address of a lab."""

    topology: Topology
    clusters: tuple[ClusterAt, ...]
    hosts: tuple[HostAt, ...]

    def cluster(self, name: str) -> ClusterAt:
        """The cluster of this name."""
        return next(each for each in self.clusters if each.name == name)

    def hosts_seen_by(self, cluster: Cluster) -> tuple[HostAt, ...]:
        """Hosts that what runs in `cluster` can reach."""
        reaches = self.topology.reaches
        return tuple(each for each in self.hosts if reaches(cluster, each.network))


def plan(topology: Topology, loopback: IPv4Network = LOOPBACK) -> Plan:
    """Deal out all addresses.

    Raises:
        Invalid: a network is too small for what is on it.
    """
    taken = _Places(topology)
    clusters = tuple(
        ClusterAt(
            cluster=cluster,
            number=number,
            loopback=str(loopback[number * 256 + 1]),
            network=(network := topology.network(cluster.network)),
            gateway=network.cidr[1],
            nodes=tuple(
                NodeAt(each.name, taken.next(network), each.labels) for each in cluster.nodes
            ),
            balancers=_share(topology, cluster),
        )
        for number, cluster in enumerate(topology.clusters, start=1)
    )
    hosts = tuple(
        HostAt(
            host=host,
            network=(network := topology.network(host.network)),
            ip=taken.next(network),
            gateway=network.cidr[1],
        )
        for host in topology.hosts
    )
    if taken.faults:
        raise Invalid("the topology does not fit into its networks", causes=taken.faults)
    return Plan(topology=topology, clusters=clusters, hosts=hosts)


class _Places:
    """The next free address of each network's lower half."""

    def __init__(self, topology: Topology) -> None:
        self._order = {each.name: at for at, each in enumerate(topology.networks)}
        self._next = dict.fromkeys(self._order, 2)
        self.faults: list[Cause] = []

    def next(self, network: Network) -> IPv4Address:
        at = self._next[network.name]
        self._next[network.name] = at + 1
        half = network.cidr.num_addresses // 2
        if at >= half:
            if at == half:
                path = f"networks[{self._order[network.name]}].cidr"
                says = f"{network.cidr} has no room for all nodes and hosts"
                self.faults.append(Cause(path, says))
            return network.cidr[1]
        return network.cidr[at]


def _share(topology: Topology, cluster: Cluster) -> tuple[int, int]:
    alike = [each.name for each in topology.clusters if each.network == cluster.network]
    return alike.index(cluster.name), len(alike)
