"""A compiled discovery chain: Consul's answer for one service, before it is lowered to Outbound.

Nodes are named as Consul names them; a chain is a graph given as a table of nodes, its start first.
"""

from __future__ import annotations

from isthmus.ir.names import Source, TargetId, Value
from isthmus.ir.rules import HeaderChange, HttpMatch, Retry, Rewrite, Timeouts


class ChainRoute(Value, frozen=True):
    """One route of a router node and the node it leads to."""

    match: HttpMatch
    next: str
    source: Source
    rewrite: Rewrite | None = None
    headers: tuple[HeaderChange, ...] = ()
    timeouts: Timeouts = Timeouts()
    retry: Retry | None = None


class Router(Value, frozen=True, tag="router"):
    """Chooses by request."""

    name: str
    routes: tuple[ChainRoute, ...]


class Split(Value, frozen=True):
    """A leg of a splitter: `weight` in hundredths of a percent."""

    weight: int
    next: str
    source: Source
    headers: tuple[HeaderChange, ...] = ()


class Splitter(Value, frozen=True, tag="splitter"):
    """Chooses by chance."""

    name: str
    splits: tuple[Split, ...]


class Resolver(Value, frozen=True, tag="resolver"):
    """Ends the chain: a target and those it fails over to, in order."""

    name: str
    target: TargetId
    failover: tuple[TargetId, ...] = ()
    connect_timeout: int = 5_000
    request_timeout: int | None = None
    default: bool = False


Node = Router | Splitter | Resolver


class CompiledChain(Value, frozen=True):
    """The chain of one service as one asker sees it."""

    service: str
    namespace: str
    datacenter: str
    protocol: str
    start: str
    nodes: tuple[tuple[str, Node], ...] = ()
    targets: tuple[TargetId, ...] = ()
    variant: str = ""
    default: bool = False
