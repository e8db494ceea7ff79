"""Egress networks: which one an address outside the cluster belongs to, as clients see it.

A namespace that has EgressNetworks of its own sees those alone; all others see the global ones, in
`linkerd-egress`. Of the networks that contain an address, the one with the smallest block counts,
then the older, then the smaller name (Linkerd). The size of a block is counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import Table, View, query
from isthmus.ir.names import Ref
from isthmus.mesh.census import Place
from isthmus.mesh.routes import EGRESS_NETWORK, POLICY_API
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import Source, place
from isthmus.model.annotations import Ports, Problem, port_list
from isthmus.model.annotations.keys import OPAQUE_PORTS
from isthmus.model.key import ObjectKey
from isthmus.model.policy.egress import EgressNetwork

EGRESS_NETWORKS: Table[ObjectKey, EgressNetwork] = Table("egressnetworks", scope=place)

LISTED: Final = frozenset({"egressnetworks"})
"""The tables here whose names may be listed: a controller attends them object by object."""

EGRESS_SOURCES: Final = {
    f"egressnetworks.{POLICY_API}": Source(
        EGRESS_NETWORKS, msgspec.json.Decoder(EgressNetwork).decode
    )
}
"""By the resource part of store keys."""

OVERLAPS: Final = "networks overlap with clusterNetworks"

Net = IPv4Network | IPv6Network


class Block(msgspec.Struct, frozen=True):
    """One network without its exceptions, as canonical CIDRs."""

    cidr: str
    excepts: tuple[str, ...] = ()


class Rank(NamedTuple):
    """Of two networks that contain an address the one that is less counts."""

    size: int
    created: str
    namespace: str
    name: str


class Claim(msgspec.Struct, frozen=True):
    """A block of an EgressNetwork, and its rank."""

    block: Block
    rank: Rank
    network: ObjectKey


def network_ref(key: ObjectKey) -> Ref:
    """An EgressNetwork as the parent of routes."""
    return Ref(key.cluster, POLICY_API, EGRESS_NETWORK, key.namespace, key.name)


# ------------------------------------------------------------------------------ who sees what


@query
def visible(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """The EgressNetworks that clients in a namespace see: its own, or else the global ones."""
    own = EGRESS_NETWORKS.names(db, where)
    if own:
        return own
    return EGRESS_NETWORKS.names(db, Place(where.cluster, settings(db).egress_namespace))


@query
def allows(db: View, network: ObjectKey) -> bool:
    """Whether traffic that no route speaks of may go; what is not there allows nothing."""
    row = EGRESS_NETWORKS.get(db, network)
    return row is not None and row.spec.traffic_policy == "Allow"


@query
def annotated_opaque_ports(db: View, network: ObjectKey) -> Ports | None:
    """The opaque ports that an EgressNetwork lists; a list that is not understood is empty."""
    row = EGRESS_NETWORKS.get(db, network)
    said = row.metadata.annotations.get(OPAQUE_PORTS) if row is not None else None
    if said is None:
        return None
    found = port_list(said)
    return Ports() if isinstance(found, Problem) else found


@query
def opaque_ports(db: View, network: ObjectKey) -> Ports:
    """The ports at which no protocol is looked for, unless a route says what is spoken."""
    listed = annotated_opaque_ports(db, network)
    return settings(db).default_opaque_ports if listed is None else listed


# ----------------------------------------------------------------------------------- blocks


@query
def blocks(db: View, network: ObjectKey) -> tuple[Block, ...]:
    """What an EgressNetwork covers. Without a list it is all that the cluster does not use."""
    row = EGRESS_NETWORKS.get(db, network)
    if row is None:
        return ()
    if row.spec.networks is None:
        return _outside(settings(db).cluster_networks)
    found = []
    for each in row.spec.networks:
        net = read_network(each.cidr)
        if net is not None:
            excepts = (out for text in each.excepts if (out := read_network(text)) is not None)
            found.append(Block(str(net), tuple(sorted(set(map(str, excepts))))))
    return tuple(found)


def _outside(inside: Iterable[str]) -> tuple[Block, ...]:
    taken = sorted({str(net) for text in inside if (net := read_network(text)) is not None})
    return (
        Block("0.0.0.0/0", tuple(each for each in taken if ":" not in each)),
        Block("::/0", tuple(each for each in taken if ":" in each)),
    )


def read_network(text: str) -> Net | None:
    """A CIDR or a single address, host bits dropped; None if it is neither."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


@query
def claims(db: View, network: ObjectKey) -> tuple[Claim, ...]:
    """The blocks of an EgressNetwork with their ranks."""
    row = EGRESS_NETWORKS.get(db, network)
    created = row.metadata.creation_timestamp if row is not None else ""
    return tuple(
        Claim(block, Rank(_size(block), created, network.namespace, network.name), network)
        for block in blocks(db, network)
    )


def _size(block: Block) -> int:
    """Host addresses of a block without those of its exceptions."""
    return _hosts(ip_network(block.cidr)) - sum(map(_hosts, map(ip_network, block.excepts)))


def _hosts(net: Net) -> int:
    """An IPv4 network below /31 has two addresses that are no host's."""
    ends = 2 if net.version == 4 and net.prefixlen < 31 else 0
    return net.num_addresses - ends


@query
def all_claims(db: View, where: Place) -> tuple[Claim, ...]:
    """The claims that clients in a namespace see, the best first."""
    found = [claim for network in visible(db, where) for claim in claims(db, network)]
    return tuple(sorted(found, key=lambda claim: (claim.rank, claim.block.cidr)))


@query
def network_of(db: View, where: Place, ip: str) -> ObjectKey | None:
    """The EgressNetwork that an address belongs to for clients in a namespace, None if to none.

    Addresses of Services never do: ask for those first.
    """
    address = read_network(ip)
    if address is None:
        return None
    return next(
        (claim.network for claim in all_claims(db, where) if _contains(claim.block, address)), None
    )


def _contains(block: Block, address: Net) -> bool:
    return _within(address, ip_network(block.cidr)) and not any(
        _within(address, ip_network(each)) for each in block.excepts
    )


def _within(inner: Net, outer: Net) -> bool:
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- acceptance


@query
def overlaps(db: View, network: ObjectKey) -> bool:
    """Whether an EgressNetwork claims what the cluster uses, so that no route may attach to it.

    An exception that holds a cluster network whole takes it out.
    """
    row = EGRESS_NETWORKS.get(db, network)
    if row is None or row.spec.networks is None:
        return False
    inside = [net for each in settings(db).cluster_networks if (net := read_network(each))]
    return any(_touches(block, net) for block in blocks(db, network) for net in inside)


def _touches(block: Block, inside: Net) -> bool:
    own = ip_network(block.cidr)
    apart = not _within(own, inside) and not _within(inside, own)
    return not apart and not any(_within(inside, ip_network(each)) for each in block.excepts)


# ------------------------------------------------------------------------------------ a map


class Region(msgspec.Struct, frozen=True):
    """Addresses of `prefix` that no longer prefix of the same map holds, and what they are.

    `refused`: addresses of Services, whoever claims them. Without a network they are unmanaged;
    `inside` then tells the cluster's own from the rest of the world.
    """

    prefix: str
    network: ObjectKey | None = None
    refused: bool = False
    inside: bool = False

    @property
    def meaning(self) -> tuple[ObjectKey | None, bool, bool]:
        """All but the prefix."""
        return (self.network, self.refused, self.inside)


class _Node:
    """What begins at a prefix."""

    __slots__ = ("claims", "excepted", "inside", "refused")

    def __init__(self) -> None:
        self.claims: list[int] = []
        self.excepted: list[int] = []
        self.refused = self.inside = False


class _Held(NamedTuple):
    """What holds at a prefix, the outer prefixes included."""

    net: Net
    claims: frozenset[int]
    excepted: frozenset[int]
    refused: bool
    inside: bool
    meaning: tuple[ObjectKey | None, bool, bool] | None


def regions(
    claimed: Sequence[Claim], refused: Iterable[str], inside: Iterable[str]
) -> tuple[Region, ...]:
    """The whole address space by longest prefix: what every address is to a class of clients.

    Claims come best first. Prefixes that say what their surroundings say are left out.
    """
    nodes: dict[Net, _Node] = {IPv4Network("0.0.0.0/0"): _Node(), IPv6Network("::/0"): _Node()}
    for at, claim in enumerate(claimed):
        nodes.setdefault(ip_network(claim.block.cidr), _Node()).claims.append(at)
        for each in claim.block.excepts:
            nodes.setdefault(ip_network(each), _Node()).excepted.append(at)
    for text in refused:
        if net := read_network(text):
            nodes.setdefault(net, _Node()).refused = True
    for text in inside:
        if net := read_network(text):
            nodes.setdefault(net, _Node()).inside = True
    return tuple(_swept(nodes, claimed))


def _swept(nodes: dict[Net, _Node], claimed: Sequence[Claim]) -> Iterable[Region]:
    """Outer prefixes before inner ones; `around` holds those that the present one lies in."""
    around: list[_Held] = []
    order = lambda net: (net.version, int(net.network_address), net.prefixlen)  # noqa: E731
    for net in sorted(nodes, key=order):
        while around and not _within(net, around[-1].net):
            around.pop()
        outer = around[-1] if around else _Held(net, frozenset(), frozenset(), False, False, None)
        held = _held(net, nodes[net], outer, claimed)
        around.append(held)
        if held.meaning is not None and held.meaning != outer.meaning:
            yield Region(str(net), *held.meaning)


def _held(net: Net, node: _Node, outer: _Held, claimed: Sequence[Claim]) -> _Held:
    mine = outer.claims.union(node.claims)
    excepted = outer.excepted.union(node.excepted)
    refused, inside = outer.refused or node.refused, outer.inside or node.inside
    best = min(mine - excepted, default=None)
    network = claimed[best].network if best is not None and not refused else None
    unmanaged = network is None and not refused
    meaning = (network, refused, inside and unmanaged)
    return _Held(net, mine, excepted, refused, inside, meaning)
