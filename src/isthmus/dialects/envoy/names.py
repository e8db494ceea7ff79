"""Names of resources. Each says which cells it stands for, so that a name leads back to its cell.

cluster, endpoints   p80.cart.shop.east.internal.td     a target: its SNI (decision 16)
                     tcp~p80.cart.shop...               the same for raw bytes, where needed
                     plain~p80.cart.shop...             the same without mesh TLS
                     gateway~p80.cart.shop...           the same through the gateway of its cluster
                     gateway-tcp~p80.cart.shop...       that for raw bytes, where needed
                     sni~p80.cart.shop...               the same as that gateway has it
                     member-east.p80.cart-federated...  a part of a federated Service
                     failover|NAME|NAME                 an aggregate of targets
                     direct|IDENTITY                    whoever was dialled, if it proves this
                     direct-linkerd|IDENTITY            the same behind a linkerd2-proxy
                     app, app-http1, passthrough, detect, refused
listener             inbound, outbound, detect, gateway
                     svc|shop/cart:80                   a port of a Service; its routes too
                     ip|10.1.0.1|5432                   an endpoint dialled by its own address
                     refuse|10.1.0.1|5432               one that is out of scope
routes               egress|shop/web:80                 a port of an EgressNetwork; 0 = all others
                     in|8080                            a port of the workload; 0 = all others
                     probe|8080                         only its probes
                     direct|IDENTITY, direct-linkerd|IDENTITY
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.dialects.xds.ports import read_port
from isthmus.ir.names import Dns, Identity
from isthmus.ir.proxy import OutboundName
from isthmus.mesh import queries

INBOUND: Final = "inbound"
OUTBOUND: Final = "outbound"
DETECT: Final = "detect"
APP: Final = "app"
APP_HTTP1: Final = "app-http1"
PASSTHROUGH: Final = "passthrough"
REFUSED: Final = "refused"

GATEWAY: Final = "gateway"

RAW: Final = "tcp"
PLAIN: Final = "plain"
THROUGH: Final = queries.THROUGH
THROUGH_RAW: Final = queries.THROUGH_RAW
FORWARDED: Final = queries.FORWARDED
VARIANTS: Final = ("", RAW, PLAIN, THROUGH, THROUGH_RAW, FORWARDED)
"""Variants of targets."""

DIRECT: Final = "direct"
DIRECT_LINKERD: Final = "direct-linkerd"
FAILOVER: Final = "failover"
IN: Final = "in"
PROBE: Final = "probe"
IP: Final = "ip"
REFUSE: Final = "refuse"
SERVICE: Final = "svc"
EGRESS: Final = "egress"


LONGEST: Final = 2048
"""Characters of a name that may mean something."""


class Port(NamedTuple):
    """A port of a Service or EgressNetwork of the proxy's own cluster."""

    namespace: str
    service: str
    port: int


class Address(NamedTuple):
    """An endpoint by its address."""

    ip: str
    port: int


def service(name: OutboundName) -> str:
    """The listener and routes of a Service's port."""
    return f"{SERVICE}|{name.parent.namespace}/{name.parent.name}:{name.port}"


def egress(name: OutboundName) -> str:
    """The routes of an EgressNetwork's port; 0 for all that no route speaks of."""
    return f"{EGRESS}|{name.parent.namespace}/{name.parent.name}:{name.port}"


def address(kind: str, ip: str, port: int) -> str:
    """The listener of an endpoint that is dialled by its address."""
    return f"{kind}|{ip}|{port}"


def direct(identity: Identity, *, linkerd: bool) -> str:
    """The cluster and routes of whoever was dialled and proves an identity."""
    proof = identity.name if isinstance(identity, Dns) else identity.uri
    return f"{DIRECT_LINKERD if linkerd else DIRECT}|{proof}"


def inbound_routes(port: int) -> str:
    """The routes of a port of the workload."""
    return f"{IN}|{port}"


def probe_routes(port: int) -> str:
    """The routes of a port for those that only may probe."""
    return f"{PROBE}|{port}"


def failover(members: tuple[str, ...]) -> str:
    """The aggregate of these clusters, the first with a healthy endpoint taken."""
    return "|".join((FAILOVER, *members))


# ------------------------------------------------------------------------------- reading


def split(name: str) -> tuple[str, str]:
    """The kind in front of the first bar, and the rest; no kind where there is no bar."""
    if len(name) > LONGEST:
        return "", ""
    kind, bar, rest = name.partition("|")
    return (kind, rest) if bar else ("", name)


def read_service(rest: str) -> Port | None:
    """`shop/cart:80`, of either kind."""
    path, _, port = rest.rpartition(":")
    namespace, _, name = path.partition("/")
    number = read_port(port)
    if number is None or not namespace or not name:
        return None
    return Port(namespace, name, number)


def read_address(rest: str) -> Address | None:
    """`10.1.0.1|5432`."""
    ip, _, port = rest.rpartition("|")
    number = read_port(port)
    return Address(ip, number) if number is not None and ip else None
