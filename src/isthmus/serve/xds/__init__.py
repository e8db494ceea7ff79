"""xDS: what Envoys and proxyless gRPC clients are told, by delta and state-of-the-world streams.

What it is: the aggregated discovery service. A machine without I/O per stream holds the protocol
and its order (see `machine`); a thin shell of grpc.aio pumps bytes; one hub watches the board for
all streams. What it is not: it knows no clusters, listeners or meshes. `isthmus.app` hands it
`admit`, which names each proxy's `Dialect` (see `contract`).

Its words:
    Admit      turns an authenticated peer and its node into a `Proxy`, or a `Refusal`
    Dialect    says which cells hold a proxy's view and its resources
    Resource   bytes and a version, made once and shared by all streams
    Nacked     a resource that a proxy does not accept: for a condition on its origin
    XdsServer  the listener; its `streams` count, and report on every proxy
"""

from isthmus.serve.xds.contract import (
    Admit,
    Cell,
    Dialect,
    Nacked,
    Node,
    Peer,
    Proxy,
    Resource,
    TypeUrl,
    View,
)
from isthmus.serve.xds.server import Leaf, XdsServer
from isthmus.serve.xds.status import Proxies, ProxyReport, RejectedResource, TypeReport
from isthmus.serve.xds.streams import Limits, Streams

__all__ = [
    "Admit",
    "Cell",
    "Dialect",
    "Leaf",
    "Limits",
    "Nacked",
    "Node",
    "Peer",
    "Proxies",
    "Proxy",
    "ProxyReport",
    "RejectedResource",
    "Resource",
    "Streams",
    "TypeReport",
    "TypeUrl",
    "View",
    "XdsServer",
]
