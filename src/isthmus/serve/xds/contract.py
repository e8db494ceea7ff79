"""What the xDS surface asks of others: who may come, and what each is told.

The surface knows the protocol and no mesh. `isthmus.app` hands it `admit`, which turns the
authenticated channel and what the proxy says of itself into a `Proxy`: its name, and the `Dialect`
with the asker's class that say which cells of the board hold what it is told.

Everything here is structural: a dialect, which must not import this room, meets it by having the
attributes. Values are shared by all streams and never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from isthmus.calls.refusal import Refusal

TypeUrl = str
"""`type.googleapis.com/envoy.config.cluster.v3.Cluster`."""

Cell = tuple[Any, ...]
"""`(query, *key)`, as the engine names cells. Equal cells are shared by all streams."""


class Resource(Protocol):
    """One resource of one type, ready to be sent. Made once per distinct value."""

    @property
    def name(self) -> str:
        """The resource's name, as proxies subscribe to it."""

    @property
    def version(self) -> str:
        """A hash of the content, so that it outlives restarts. Equal content, equal version."""

    @property
    def chunk(self) -> bytes:
        """Field 2 of DeltaDiscoveryResponse, framed: Resource{1 version, 2 Any, 3 name}."""

    @property
    def any_chunk(self) -> bytes:
        """Field 2 of DiscoveryResponse, framed: an Any."""

    @property
    def clusters(self) -> tuple[str, ...] | None:
        """The clusters that a route configuration or listener sends to, an aggregate its members.

        It is held back until the proxy has them, and they stay while it may be in use. None says
        that they are not known: then it waits for every cluster. () for all other resources.
        """

    @property
    def origin(self) -> object:
        """The object that is to blame if a proxy rejects it (`isthmus.ir` Source), or None."""

    @property
    def parts(self) -> tuple[tuple[object, str], ...]:
        """Objects that parts of it come from, each with a mark of its part; () if it has but one.

        Where a version is rejected that differs from the last good one in one object's part, that
        object is to blame.
        """


class View(Protocol):
    """What one proxy is told, as names."""

    @property
    def types(self) -> Mapping[TypeUrl, tuple[str, ...] | None]:
        """The types that are served, and the names in sight, sorted. A wildcard means all of them.

        A name that is subscribed to and not in sight does not exist for this proxy. None instead
        of names: whatever `resource_query` knows can be had by name (proxyless gRPC).
        """

    @property
    def scope(self) -> tuple[str, ...]:
        """For people: which upstreams are in sight, e.g. `("*/*",)`."""


class Dialect(Protocol):
    """Which cells hold what a proxy is told. Cheap, pure, and called often.

    Names that belong together by convention: the assignment of a cluster has the cluster's name,
    the route configuration of a listener has the listener's. So a changed cluster is followed by
    its endpoints, a changed listener by its routes.
    """

    @property
    def name(self) -> str:
        """`envoy`, `grpc`."""

    def view_query(self, asker: Any, /) -> Cell:  # noqa: ANN401  # the dialect's own class of askers
        """The cell of a `View`, or of None while nothing is known of this proxy."""

    def resource_query(self, asker: Any, type_url: TypeUrl, name: str, /) -> Cell | None:  # noqa: ANN401
        """The cell of a `Resource`, or of None where there is none.

        None at once for a name that cannot be one. For ClusterLoadAssignment, a cluster that
        exists has an assignment, if an empty one.
        """


class Peer(NamedTuple):
    """Who is at the other end, as the channel says: the only source of identity."""

    address: str
    """`unix:`, `ipv4:10.0.0.1:4000`, as gRPC writes it."""
    identities: tuple[str, ...]
    """The subject alternative names of a certificate that was verified; none without mutual TLS."""


class Node(NamedTuple):
    """What a proxy says about itself. Nothing here is proof of anything."""

    id: str
    cluster: str
    zone: str
    agent: str
    """`envoy`, `gRPC C-core linux Python`."""
    agent_version: str
    features: frozenset[str]
    metadata: Mapping[str, Any]


class Proxy(NamedTuple):
    """A proxy that may be told things."""

    name: str
    """For people: `pod.namespace`. Two streams may bear one name, while a proxy comes back."""
    dialect: Dialect
    asker: Any
    """What the dialect's queries are keyed by: the asker's class."""


Admit = Callable[[Peer, Node], Proxy | Refusal]
"""Decides by the peer; the node only chooses among what the peer may be. Must not raise."""


class Nacked(NamedTuple):
    """A resource that a proxy rejected, and keeps in the version before, if it had one."""

    proxy: str
    type_url: TypeUrl
    name: str
    version: str
    message: str
    """The proxy's own words, cut to a length; may start with a token that is chance."""
    since: float
    """Seconds since 1970."""
    origin: object
    dialect: str = ""
    """Of the proxy."""
