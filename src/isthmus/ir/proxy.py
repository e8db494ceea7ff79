"""What one proxy is told, as names; the contents are cells shared by all proxies."""

from __future__ import annotations

from enum import StrEnum

from isthmus.ir.names import Identity, Ref, Value


class ProxyKind(StrEnum):
    """What runs: beside a workload, as a gateway, or inside the application (proxyless gRPC)."""

    SIDECAR = "sidecar"
    GATEWAY = "gateway"
    PROXYLESS = "proxyless"


class OutboundName(Value, frozen=True):
    """The key of an Outbound cell: parent, port and the asker's class."""

    parent: Ref
    port: int
    namespace: str


class InboundName(Value, frozen=True):
    """The key of an Inbound cell."""

    workload: Ref
    port: int


class ProxyView(Value, frozen=True):
    """Names of everything one proxy needs.

    `scope` is the upstreams annotation as parsed (decision 17).
    """

    workload: Ref
    kind: ProxyKind
    identity: Identity | None
    upstreams: tuple[OutboundName, ...] = ()
    inbounds: tuple[InboundName, ...] = ()
    egress: tuple[Ref, ...] = ()
    dns: bool = True
    scope: tuple[str, ...] = ("*/*",)
