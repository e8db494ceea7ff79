"""What a lab consists of: clusters, machines outside them, networks, as somebody wrote it down.

Frozen values, read from YAML by `read`; every fault of a file is told at once, with its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from ipaddress import IPv4Network
from pathlib import Path

import msgspec

from isthmus.errors import Cause, Invalid, UserFault
from isthmus.lab.topology_reader import Reader

BUILT_IN = ("faces", "workshop")
"""Topologies that come with the program."""


class Trust(StrEnum):
    """Whether the clusters' issuers hang on one anchor, or each makes its own."""

    SHARED = "shared"
    SEPARATE = "separate"


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network that clusters and hosts are on."""

    name: str
    cidr: IPv4Network
    reachable_from: tuple[str, ...] | None = None
    """Names of the clusters that reach it; None: all do."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a cluster."""

    name: str
    labels: Mapping[str, str] = {}


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster: a control plane, nodes, pods."""

    name: str
    pod_cidr: IPv4Network
    service_cidr: IPv4Network
    network: str
    nodes: tuple[Node, ...]
    manifests: tuple[Path, ...] = ()
    """Files that are applied once the API is there; absolute."""
    server: Mapping[str, str | bool | tuple[str, ...]] = {}
    """Flags of `isthmus server`, by `config.Setting.name`."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a host runs: as a container, without a pod around it."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A machine outside every cluster."""

    name: str
    network: str
    run: Run | None = None


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """A whole lab."""

    clusters: tuple[Cluster, ...]
    hosts: tuple[Host, ...] = ()
    networks: tuple[Network, ...]
    trust: Trust = Trust.SHARED
    images: Mapping[str, tuple[str, ...]] = {}
    """Patterns of image names (`*` as in file names) to commands."""

    def network(self, name: str) -> Network:
        """The network of this name."""
        return next(each for each in self.networks if each.name == name)

    def flat_with(self, cluster: Cluster) -> tuple[Cluster, ...]:
        """The other clusters on the same network: their pods are reached as they are."""
        return tuple(
            each
            for each in self.clusters
            if each.network == cluster.network and each.name != cluster.name
        )

    def reaches(self, cluster: Cluster, network: Network) -> bool:
        """Whether what runs in `cluster` may reach the addresses of `network`."""
        allowed = network.reachable_from
        return network.name == cluster.network or allowed is None or cluster.name in allowed


def load(what: str) -> Topology:
    """A built-in topology by its name, or one from a file.

    Raises:
        Invalid: it has faults; `causes` holds all of them.
        UserFault: there is no such file, or it is no YAML.
    """
    if what in BUILT_IN:
        folder = files("isthmus.lab") / "topologies"
        with_name = Path(str(folder / f"{what}.yaml"))
        return read(with_name.read_bytes(), where=with_name)
    path = Path(what)
    try:
        return read(path.read_bytes(), where=path)
    except OSError as fault:
        known = ", ".join(BUILT_IN)
        raise UserFault(
            f"cannot read the topology {what}: {fault.strerror}; name a file, or one of {known}"
        ) from fault


def read(body: bytes, *, where: Path) -> Topology:
    """The topology in `body`; paths of manifests are relative to the file `where`."""
    reader = Reader(body, where)
    found = _topology(reader)
    faults = [*reader.faults, *(_overlaps(found) if not reader.faults else ())]
    if faults:
        some = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
        raise Invalid(f"the topology {where} has {some}", causes=faults)
    return found


def _topology(root: Reader) -> Topology:
    root.known("clusters", "hosts", "networks", "trust", "images")
    networks = tuple(_network(each) for each in root.objects("networks"))
    clusters = tuple(_cluster(each) for each in root.objects("clusters"))
    hosts = tuple(_host(each) for each in root.objects("hosts"))
    if not clusters and not hosts:
        root.fault("clusters", "a lab needs at least one cluster or host", "FieldValueRequired")
    trust = root.choice("trust", tuple(Trust), Trust.SHARED.value)
    found = Topology(
        clusters=clusters,
        hosts=hosts,
        networks=networks,
        trust=Trust(trust),
        images={name: root.words_at(f"images.{name}", v) for name, v in root.mapping("images")},
    )
    _check_names(root, found)
    return found


def _network(at: Reader) -> Network:
    at.known("name", "cidr", "reachableFrom")
    allowed = at.words("reachableFrom") if at.has("reachableFrom") else None
    return Network(name=at.label("name"), cidr=at.cidr("cidr", 8, 28), reachable_from=allowed)


def _cluster(at: Reader) -> Cluster:
    at.known("name", "podCIDR", "serviceCIDR", "network", "manifests", "server", "nodes")
    name = at.name("name")
    return Cluster(
        name=name,
        pod_cidr=at.cidr("podCIDR", 8, 28),
        service_cidr=at.cidr("serviceCIDR", 8, 27),
        network=at.label("network"),
        nodes=_nodes(at, name),
        manifests=at.paths("manifests"),
        server=at.server_flags("server"),
    )


def _nodes(at: Reader, cluster: str) -> tuple[Node, ...]:
    if not at.has("nodes"):
        return (Node(name=f"{cluster.replace('_', '-')}-node"),)
    found = []
    for each in at.objects("nodes"):
        each.known("name", "labels")
        found.append(Node(name=each.label("name"), labels=each.texts("labels")))
    if not found:
        at.fault("nodes", "a cluster needs at least one node", "FieldValueRequired")
    return tuple(found)


def _host(at: Reader) -> Host:
    at.known("name", "network", "run")
    run = None
    if at.has("run"):
        inner = at.inner("run")
        inner.known("image", "command", "args", "env")
        run = Run(
            image=inner.text("image"),
            command=inner.words("command"),
            args=inner.words("args"),
            env=inner.texts("env"),
        )
    return Host(name=at.label("name"), network=at.label("network"), run=run)


# ------------------------------------------------------------------------------- what must agree


def _check_names(root: Reader, found: Topology) -> None:
    networks = {each.name for each in found.networks}
    clusters = {each.name for each in found.clusters}
    _unique(root, "clusters", [each.name for each in found.clusters])
    _unique(root, "networks", [each.name for each in found.networks])
    _unique(root, "hosts", [each.name for each in found.hosts])
    for at, cluster in enumerate(found.clusters):
        _member(root, f"clusters[{at}].network", cluster.network, networks, "network")
        _unique(root, f"clusters[{at}].nodes", [each.name for each in cluster.nodes])
    for at, host in enumerate(found.hosts):
        _member(root, f"hosts[{at}].network", host.network, networks, "network")
    for at, network in enumerate(found.networks):
        for index, name in enumerate(network.reachable_from or ()):
            _member(root, f"networks[{at}].reachableFrom[{index}]", name, clusters, "cluster")


def _unique(root: Reader, path: str, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name and name in names[:at]:
            root.fault(f"{path}[{at}].name", f"{name!r} is there already", "FieldValueDuplicate")


def _member(root: Reader, path: str, name: str, known: Iterable[str], what: str) -> None:
    if name and name not in known:
        there = ", ".join(sorted(each for each in known if each)) or "none"
        root.fault(path, f"there is no {what} {name!r}; there are: {there}", "FieldValueNotFound")


class _Range:
    """An address range with the place where it is written."""

    def __init__(self, path: str, cidr: IPv4Network) -> None:
        self.path = path
        self.cidr = cidr

    def against(self, others: Iterable[_Range]) -> Iterable[Cause]:
        for other in others:
            if self.cidr.overlaps(other.cidr):
                says = f"{self.cidr} overlaps with {other.path} ({other.cidr})"
                yield Cause(self.path, says)


def _overlaps(found: Topology) -> Iterable[Cause]:
    """Ranges that one packet could mean both of.

    Services mean something in their own cluster only, and pods on their own network only, so those
    of clusters on different networks may be the same.
    """
    networks = [_Range(f"networks[{at}].cidr", n.cidr) for at, n in enumerate(found.networks)]
    for at, network in enumerate(networks):
        yield from network.against(networks[:at])
    for at, cluster in enumerate(found.clusters):
        pods = _Range(f"clusters[{at}].podCIDR", cluster.pod_cidr)
        services = _Range(f"clusters[{at}].serviceCIDR", cluster.service_cidr)
        yield from pods.against(networks)
        yield from services.against([*networks, pods])
        for before, other in enumerate(found.clusters):
            if before == at or other.network != cluster.network:
                continue
            theirs = _Range(f"clusters[{before}].podCIDR", other.pod_cidr)
            yield from services.against([theirs])
            if before < at:
                yield from pods.against([theirs])
