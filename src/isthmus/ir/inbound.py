"""What a server's proxy does with connections to one port of one workload: who may, and how."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from isthmus.ir.names import AnyHost, Host, IdentityMatch, Origin, Ref, Source, Value
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, RuleFilter


class Speech(StrEnum):
    """What the port speaks; DETECT looks at the first bytes."""

    DETECT = "detect"
    HTTP1 = "http1"
    HTTP2 = "http2"
    GRPC = "grpc"
    TLS = "tls"
    OPAQUE = "opaque"


class Network(Value, frozen=True):
    """A CIDR (or single address) without its exceptions."""

    cidr: str
    excepts: tuple[str, ...] = ()


ANYWHERE: Final = (Network("0.0.0.0/0"), Network("::/0"))
"""All addresses; no networks at all admit nobody."""


class Anybody(Value, frozen=True, tag="anybody"):
    """No authentication asked for."""


class TlsOnly(Value, frozen=True, tag="tls"):
    """TLS, whoever it is (ServerAuthorization's unauthenticatedTLS)."""


class Peers(Value, frozen=True, tag="peers"):
    """Mesh TLS with one of these identities; an empty tuple admits nobody."""

    identities: tuple[IdentityMatch, ...]


Authentication = Anybody | TlsOnly | Peers


class Authorization(Value, frozen=True):
    """Admits whoever comes from one of `networks` AND proves `authentication`.

    `audit` admits and reports.
    """

    source: Source
    networks: tuple[Network, ...]
    authentication: Authentication
    audit: bool = False


class InboundRule(Value, frozen=True):
    """A rule of an inbound HTTP route; no matches = every request."""

    matches: tuple[HttpMatch, ...] = ()
    filters: tuple[RuleFilter, ...] = ()


class InboundRoute(Value, frozen=True):
    """An HTTP route on a port; `authorizations` are its own, the port's are added to them."""

    source: Source
    hosts: tuple[Host, ...] = ()
    rules: tuple[InboundRule, ...] = ()
    authorizations: tuple[Authorization, ...] = ()


class InboundGrpcRule(Value, frozen=True):
    """A rule of an inbound gRPC route; no matches = every call."""

    matches: tuple[GrpcMatch, ...] = ()
    filters: tuple[RuleFilter, ...] = ()


class InboundGrpcRoute(Value, frozen=True):
    """A gRPC route on a port; `authorizations` are its own, the port's are added to them."""

    source: Source
    hosts: tuple[Host, ...] = ()
    rules: tuple[InboundGrpcRule, ...] = ()
    authorizations: tuple[Authorization, ...] = ()


class RateOverride(Value, frozen=True):
    """A shared allowance of these clients."""

    identities: tuple[IdentityMatch, ...]
    per_second: int


class RateLimit(Value, frozen=True):
    """Requests per second of one proxy.

    `total` for the port; then the override that names the client, else `each` for its identity
    (clients without one share an allowance).
    """

    source: Source
    total: int | None = None
    each: int | None = None
    overrides: tuple[RateOverride, ...] = ()


class Inbound(Value, frozen=True):
    """One port of one workload.

    `app_address` is where the application listens ("" = the address dialled). `accepted_snis` are
    the server names that mean mesh TLS terminates here; anything else is the application's own.
    `grpc_routes` count where `speech` is GRPC, `http_routes` for all other HTTP; a port without
    routes lets pass whatever it admits. Loopback clients are always let in.
    `detect_timeout` is milliseconds.
    """

    workload: Ref
    port: int
    speech: Speech
    source: Source
    app_address: str = ""
    accepted_snis: tuple[Host, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    http_routes: tuple[InboundRoute, ...] = ()
    grpc_routes: tuple[InboundGrpcRoute, ...] = ()
    rate_limit: RateLimit | None = None
    detect_timeout: int = 10_000
    strict: bool = False
    """True: only mesh TLS is let in."""


def paths_decide(routes: Iterable[InboundRoute]) -> bool:
    """Whether a path decides which of these routes counts, and so who may in.

    Default routes do not count: what misses a probe's path asks for more, never for less.
    """
    return any(
        match.path is not None and (match.path.match, match.path.value) != (Match.PREFIX, "/")
        for route in routes
        if isinstance(route.source, Origin)
        for rule in route.rules
        for match in rule.matches
    )


def hosts_decide(routes: Iterable[InboundRoute | InboundGrpcRoute]) -> bool:
    """Whether a host decides which of these routes counts, and so who may in."""
    return any(not isinstance(host, AnyHost) for route in routes for host in route.hosts)
