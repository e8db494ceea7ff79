"""How much of what any namespace may write its clients are told of.

Two things grow by products. A port with routes at one EgressNetwork is told of every network that
the same clients see; and a route for a wildcard host stands in every narrower host that others
name. Each has a budget. It is spent from the oldest route on, by each namespace apart, so that
nobody's routes take the place of another namespace's. What is beyond it is not accepted. Networks
never are beyond it: what they deny stays denied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from isthmus.engine import View, query
from isthmus.ir.names import AnyHost, Exact, Host, Ref, Suffix
from isthmus.mesh.census import Place
from isthmus.mesh.egress import EGRESS_NETWORKS, blocks, network_ref, overlaps
from isthmus.mesh.matches import hosts
from isthmus.mesh.routes import (
    BY_KIND,
    EGRESS_NETWORK,
    TCP,
    Age,
    age,
    key_of,
    means,
    names_port,
    naming,
    parents,
)
from isthmus.model.key import ObjectKey

PORTS: Final = 64
"""Ports of EgressNetworks, all together, that the routes of a namespace may speak of."""

PARTS: Final = 256
"""The most that ports times networks may be. One port is always within the budget."""

PREFIXES: Final = 32
"""So many address blocks and exceptions count as another network."""

MATCHES: Final = 10_000
"""What hosts times matches may be, at one port of a parent, of the routes of a namespace."""


class Payer(NamedTuple):
    """The routes of a namespace at the EgressNetworks of a namespace."""

    networks: Place
    namespace: str


class AtPort(NamedTuple):
    """The routes of a kind and a namespace at a port of a parent."""

    parent: Ref
    port: int
    kind: str
    namespace: str


class Size(NamedTuple):
    """The hosts that a route names, its rules' matches, and whether it is for all hosts besides."""

    hosts: tuple[Host, ...]
    matches: int
    anywhere: bool = False


# ------------------------------------------------------------------------ ports of networks


@query
def port_budget(db: View, networks: Place) -> int:
    """How many ports the routes of a namespace may speak of at the EgressNetworks of one."""
    parts = sum(_parts(db, each) for each in EGRESS_NETWORKS.names(db, networks))
    return max(1, min(PORTS, PARTS // max(1, parts)))


def _parts(db: View, network: ObjectKey) -> int:
    return 1 + sum(1 + len(each.excepts) for each in blocks(db, network)) // PREFIXES


@query
def told_ports(db: View, payer: Payer) -> tuple[int, ...]:
    """The ports within the budget, sorted: those that the oldest routes speak of."""
    asked = dict(_asked(db, payer.networks)).get(payer.namespace, ())
    return tuple(sorted(asked[: port_budget(db, payer.networks)]))


@query
def _asked(db: View, networks: Place) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """By the routes' namespaces: the ports that they name, those of the oldest routes first."""
    first: dict[str, dict[int, Age]] = {}
    for network in EGRESS_NETWORKS.names(db, networks):
        for route, port in _naming(db, network):
            mine, since = first.setdefault(route.namespace, {}), age(db, route)
            mine[port] = min(since, mine.get(port, since))
    return tuple((namespace, _by_age(mine)) for namespace, mine in sorted(first.items()))


def _by_age(since: Mapping[int, Age]) -> tuple[int, ...]:
    return tuple(sorted(since, key=lambda port: (since[port], port)))


@query
def _naming(db: View, network: ObjectKey) -> tuple[tuple[Ref, int], ...]:
    """The routes that an EgressNetwork may take, and the ports that they name."""
    if overlaps(db, network):
        return ()
    parent = network_ref(network)
    return tuple(
        (route, ref.port)
        for route in naming(db, parent)
        for ref in parents(db, route)
        if means(ref, parent) and ref.port and not ref.section
    )


# ------------------------------------------------------------------------------------ hosts


@query
def beyond(db: View, at: AtPort) -> frozenset[Ref]:
    """The routes that are beyond the budget of hosts and matches.

    At an EgressNetwork routes of other namespaces join the owner's: both stand in one account, of
    twice the size, which the owner's open.
    """
    tally = _Tally(MATCHES)
    joins = at.parent.kind == EGRESS_NETWORK and at.namespace != at.parent.namespace
    if joins:
        owners = at._replace(namespace=at.parent.namespace)
        over = beyond(db, owners)
        for route in _routes(db, owners):
            if route not in over:
                tally.add(size(db, route))
        tally.most += MATCHES
    return frozenset(route for route in _routes(db, at) if not tally.add(size(db, route)))


@query
def _routes(db: View, at: AtPort) -> tuple[Ref, ...]:
    found = [
        route
        for route in naming(db, at.parent)
        if (route.kind, route.namespace) == (at.kind, at.namespace)
        and names_port(db, route, at.parent, at.port) is not None
    ]
    return tuple(sorted(found, key=lambda route: age(db, route)))


@query
def size(db: View, route: Ref) -> Size:
    """What a route counts for. Of TCPRoutes one is told of at all: they count for nothing."""
    row = BY_KIND[route.group, route.kind].table.get(db, key_of(route))
    if row is None or route.kind == TCP.kind:
        return Size((), 0)
    found = sum(max(1, len(getattr(rule, "matches", ()))) for rule in row.spec.rules)
    named = hosts(row.spec.hostnames)
    apart = tuple(host for host in named if not isinstance(host, AnyHost))
    return Size(apart, max(1, found), anywhere=len(apart) < len(named) or not named)


class _Tally:
    """Pairs of a host and a match, as virtual hosts have them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.told = 0
        self.anywhere = 0
        self.named: Counter[Host] = Counter()
        self.below: Counter[Suffix] = Counter()

    def add(self, route: Size) -> bool:
        """Count a route; whether it is within what may be told. One that is not is left out."""
        more = self._more(route)
        if self.told + more > self.most:
            return False
        self.told += more
        self.anywhere += route.matches if route.anywhere else 0
        for host in route.hosts:
            if host not in self.named:
                self.below.update(_around(host))
            self.named[host] += route.matches
        return True

    def _more(self, route: Size) -> int:
        """What hosts that are new inherit, and where the route's own matches stand."""
        fresh = [host for host in route.hosts if host not in self.named]
        inherited = sum(self.anywhere + self._inherited(host) for host in fresh)
        if route.anywhere:
            return inherited + route.matches * (1 + len(self.named) + len(fresh))
        return inherited + route.matches * sum(1 + self._below(host) for host in route.hosts)

    def _inherited(self, host: Host) -> int:
        return sum(self.named.get(each, 0) for each in _around(host))

    def _below(self, host: Host) -> int:
        return self.below.get(host, 0) if isinstance(host, Suffix) else 0


def _around(host: Host) -> Iterator[Suffix]:
    """The wildcards that hold a host, without itself."""
    if isinstance(host, AnyHost):
        return
    labels = tuple(host.name.split(".")) if isinstance(host, Exact) else host.labels
    yield from (Suffix(labels[at:]) for at in range(1, len(labels)))
