"""What a client's proxy does with connections towards one parent: routes by protocol.

Routes, rules and matches arrive in the specification's order of precedence; dialects never sort.
"""

from __future__ import annotations

from enum import StrEnum

from isthmus.ir.names import Host, Ref, Source, Value
from isthmus.ir.rules import Budget, GrpcMatch, HttpMatch, Retry, RuleFilter, Timeouts
from isthmus.ir.target import Backend


class Spread(StrEnum):
    """Which backend of several.

    FIRST: the first that is ready. WEIGHTED: at random by weight, ready or not. NONE: none at all.
    """

    FIRST = "first"
    WEIGHTED = "weighted"
    NONE = "none"


class HttpRule(Value, frozen=True):
    """One rule: any of `matches` (none = every request), then filters, then one backend."""

    source: Source
    matches: tuple[HttpMatch, ...] = ()
    filters: tuple[RuleFilter, ...] = ()
    backends: tuple[Backend, ...] = ()
    spread: Spread = Spread.WEIGHTED
    timeouts: Timeouts = Timeouts()
    retry: Retry | None = None


class HttpRoute(Value, frozen=True):
    """An HTTP route: hosts it is for (none = all), rules in order."""

    source: Source
    hosts: tuple[Host, ...] = ()
    rules: tuple[HttpRule, ...] = ()


class GrpcRule(Value, frozen=True):
    """One gRPC rule."""

    source: Source
    matches: tuple[GrpcMatch, ...] = ()
    filters: tuple[RuleFilter, ...] = ()
    backends: tuple[Backend, ...] = ()
    spread: Spread = Spread.WEIGHTED
    timeouts: Timeouts = Timeouts()
    retry: Retry | None = None


class GrpcRoute(Value, frozen=True):
    """A gRPC route."""

    source: Source
    hosts: tuple[Host, ...] = ()
    rules: tuple[GrpcRule, ...] = ()


class TlsRoute(Value, frozen=True):
    """Chosen by SNI, bytes passed through."""

    source: Source
    snis: tuple[Host, ...] = ()
    filters: tuple[RuleFilter, ...] = ()
    backends: tuple[Backend, ...] = ()
    spread: Spread = Spread.WEIGHTED


class TcpRoute(Value, frozen=True):
    """For a whole connection."""

    source: Source
    filters: tuple[RuleFilter, ...] = ()
    backends: tuple[Backend, ...] = ()
    spread: Spread = Spread.WEIGHTED


class Http1(Value, frozen=True, tag="http1"):
    """HTTP/1 is declared."""

    routes: tuple[HttpRoute, ...] = ()


class Http2(Value, frozen=True, tag="http2"):
    """HTTP/2 with prior knowledge is declared."""

    routes: tuple[HttpRoute, ...] = ()


class Grpc(Value, frozen=True, tag="grpc"):
    """gRPC is declared, by the port or by a GRPCRoute."""

    routes: tuple[GrpcRoute, ...] = ()


class Tls(Value, frozen=True, tag="tls"):
    """Application TLS, routed by SNI."""

    routes: tuple[TlsRoute, ...] = ()


class Tcp(Value, frozen=True, tag="tcp"):
    """Opaque bytes; the first route rules."""

    routes: tuple[TcpRoute, ...] = ()


class Detect(Value, frozen=True, tag="detect"):
    """Look at the first bytes for at most `timeout` ms, then treat as HTTP, TLS or TCP."""

    timeout: int
    http: tuple[HttpRoute, ...] = ()
    tls: tuple[TlsRoute, ...] = ()
    tcp: tuple[TcpRoute, ...] = ()


Protocol = Http1 | Http2 | Grpc | Tls | Tcp | Detect


class Vip(Value, frozen=True, tag="vip"):
    """A ClusterIP and port."""

    address: str
    port: int


class Cidr(Value, frozen=True, tag="cidr"):
    """Addresses of a network minus `excepts`, any port if `port` is 0."""

    network: str
    excepts: tuple[str, ...] = ()
    port: int = 0


class HostName(Value, frozen=True, tag="host"):
    """Requests to a name, whatever the address."""

    name: str
    port: int


class LocalBind(Value, frozen=True, tag="bind"):
    """A local listener that applications dial (Consul's upstreams)."""

    address: str
    port: int


Front = Vip | Cidr | HostName | LocalBind


class EveryNamespace(Value, frozen=True, tag="any"):
    """Producer's view: all clients."""


class OneNamespace(Value, frozen=True, tag="namespace"):
    """Consumer's view: clients of this namespace."""

    namespace: str


Audience = EveryNamespace | OneNamespace


class Outbound(Value, frozen=True):
    """Connections of `audience` to `parent` at `port`, entering by any of `fronts`."""

    parent: Ref | None
    source: Source
    port: int
    protocol: Protocol
    audience: Audience = EveryNamespace()
    fronts: tuple[Front, ...] = ()
    budget: Budget | None = None
