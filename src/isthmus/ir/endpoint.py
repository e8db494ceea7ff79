"""Endpoints: where a target's traffic can go, and how each address is reached."""

from __future__ import annotations

from enum import StrEnum

from isthmus.ir.names import Identity, Ref, Value


class Health(StrEnum):
    """What may be sent to an endpoint. DRAINING finishes what it has and takes nothing new."""

    HEALTHY = "healthy"
    DRAINING = "draining"
    UNHEALTHY = "unhealthy"


class Speaks(StrEnum):
    """What the endpoint's own proxy understands of the session inside: the protocol hint."""

    UNKNOWN = "unknown"
    HTTP2 = "h2"
    OPAQUE = "opaque"


class Plain(Value, frozen=True, tag="plain"):
    """No mesh TLS: the address is dialled as it is."""


class Mesh(Value, frozen=True, tag="mesh"):
    """Mesh TLS with this server name.

    `native`: the proxy there is our own sidecar, which is told in ALPN what the session is and
    gives HTTP/1 that came in HTTP/2 back to the application as it was.
    """

    sni: str
    native: bool = False


class LinkerdOpaque(Value, frozen=True, tag="linkerd-opaque"):
    """Mesh TLS to the proxy's inbound port, the real port told in linkerd's transport header."""

    port: int


Reach = Plain | Mesh | LinkerdOpaque


class Endpoint(Value, frozen=True):
    """One address.

    `address` is canonical IP text or a host name, `weight` relative within the set (1 =
    Kubernetes' default share; dialects scale). `hints` are the zones the endpoint is meant for.
    `identity` is who must answer, None if nobody can prove it. `authority` replaces the
    request's authority when the endpoint is a gateway. `labels` are metric labels, sorted by
    key. `meshed`: a mesh proxy stands before this port, whoever's mesh it is.
    """

    address: str
    port: int
    health: Health = Health.HEALTHY
    weight: int = 1
    zone: str = ""
    node: str = ""
    hostname: str = ""
    hints: tuple[str, ...] = ()
    identity: Identity | None = None
    server_name: str = ""
    reach: Reach = Plain()
    speaks: Speaks = Speaks.UNKNOWN
    authority: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    meshed: bool = False
    origin: Ref | None = None


class SetState(StrEnum):
    """ABSENT: no such service. EMPTY: the service is there, nobody behind it. ENDED: ask anew."""

    ABSENT = "absent"
    EMPTY = "empty"
    SOME = "some"
    ENDED = "ended"


class EndpointSet(Value, frozen=True):
    """All endpoints of a target, sorted by address and port.

    `labels` are the set's metric labels.
    """

    endpoints: tuple[Endpoint, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    state: SetState = SetState.ABSENT
