"""Inbound: what a server's proxy does with connections to a port of its workload.

One cell per workload and port. Port 0 stands for every port that nobody spoke of. Who may in is
what the covering Server and the policies for it say, else the workload's default policy (Linkerd's
six modes). As soon as a Server covers a port, the default policy has no say there.
"""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.inbound import (
    ANYWHERE,
    Anybody,
    Authentication,
    Authorization,
    Inbound,
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
    Network,
    Peers,
    RateLimit,
    Speech,
)
from isthmus.ir.names import AnyIdentity, Default, Exact, Host, Ref, Suffix
from isthmus.ir.names import Dns as DnsIdentity
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch
from isthmus.mesh.authorization import server_grants
from isthmus.mesh.inbound_routes import grpc_routes_on, http_routes_on
from isthmus.mesh.rate_limits import rate_limit
from isthmus.mesh.servers import covering_server, server_origin, server_words
from isthmus.mesh.settings import settings
from isthmus.mesh.targets import trust_domain
from isthmus.mesh.workloads import is_opaque, note, probes, workload_identity
from isthmus.model.annotations import (
    Problem,
    default_inbound_policy,
    inbound_tls,
    port_list,
)
from isthmus.model.annotations.inbound import ACCESS_POLICIES
from isthmus.model.annotations.keys import (
    DEFAULT_INBOUND_POLICY,
    INBOUND_TLS,
    REQUIRE_IDENTITY_PORTS,
)
from isthmus.model.key import ObjectKey

DETECT_TIMEOUT: Final = 10_000
"""Milliseconds that a client may take to show what it speaks (Linkerd's)."""

ELSEWHERE: Final = 0
"""The port that stands for all of which nothing is known."""

_BYTES: Final = frozenset({Speech.OPAQUE, Speech.TLS})
_AUTHENTICATED: Final = {
    "all-unauthenticated": "all-authenticated",
    "cluster-unauthenticated": "cluster-authenticated",
}


@query
def inbound(db: View, name: InboundName) -> Inbound:
    """What a workload's proxy does with connections to a port."""
    server = covering_server(db, name.workload, name.port)
    if server is None:
        return _undescribed(db, name)
    return _described(db, name, server)


def _undescribed(db: View, name: InboundName) -> Inbound:
    """A port that no Server covers: the workload's default policy, the default routes."""
    workload, port = name.workload, name.port
    mode = _mode(db, workload, port)
    opaque = port != ELSEWHERE and is_opaque(db, workload, port)
    return Inbound(
        workload=workload,
        port=port,
        speech=Speech.OPAQUE if opaque else Speech.DETECT,
        source=Default(mode),
        accepted_snis=accepted_snis(db, workload),
        authorizations=default_authorizations(db, mode),
        http_routes=default_routes(db, workload, port),
        detect_timeout=DETECT_TIMEOUT,
        strict=strict(db, workload),
    )


def _described(db: View, name: InboundName, server: ObjectKey) -> Inbound:
    """A port that a Server covers: what policies grant, then its own access policy."""
    workload, port = name.workload, name.port
    said = server_words(db, server)
    http, grpc = _routes(db, name, server, said.speech)
    return Inbound(
        workload=workload,
        port=port,
        speech=said.speech,
        source=server_origin(server),
        accepted_snis=accepted_snis(db, workload),
        authorizations=(*server_grants(db, server), *default_authorizations(db, said.access)),
        http_routes=http,
        grpc_routes=grpc,
        rate_limit=_limit(db, server, said.speech),
        detect_timeout=DETECT_TIMEOUT,
        strict=strict(db, workload),
    )


# -------------------------------------------------------------------------------- routes


def _routes(
    db: View, name: InboundName, server: ObjectKey, speech: Speech
) -> tuple[tuple[InboundRoute, ...], tuple[InboundGrpcRoute, ...]]:
    """Attached routes take the place of the default ones, the probes' too."""
    if speech in _BYTES:
        return (), ()
    if speech is Speech.GRPC:
        return (), grpc_routes_on(db, server) or (_EVERY_CALL,)
    return http_routes_on(db, server) or default_routes(db, name.workload, name.port), ()


_EVERY_CALL: Final = InboundGrpcRoute(Default("default"), rules=(InboundGrpcRule((GrpcMatch(),)),))


@query
def default_routes(db: View, workload: Ref, port: int) -> tuple[InboundRoute, ...]:
    """The default pair: everything, and the kubelet's probes, which need no authorization."""
    everything = InboundRoute(Default("default"), rules=(InboundRule((_under("/"),)),))
    paths = [path for at, path in probes(db, workload) if at == port]
    networks = tuple(map(Network, settings(db).probe_networks))
    if not paths or not networks:
        return (everything,)
    rule = InboundRule(tuple(map(_probe, paths)))
    admitted = Authorization(Default("probe"), networks, Anybody())
    return everything, InboundRoute(Default("probe"), rules=(rule,), authorizations=(admitted,))


def _under(prefix: str) -> HttpMatch:
    return HttpMatch(path=PathMatch(Match.PREFIX, prefix))


def _probe(path: str) -> HttpMatch:
    return HttpMatch(path=PathMatch(Match.EXACT, path), method=("GET",))


def _limit(db: View, server: ObjectKey, speech: Speech) -> RateLimit | None:
    """Requests are counted where a port speaks HTTP and not gRPC (Linkerd's wire has no more)."""
    counted = speech in (Speech.DETECT, Speech.HTTP1, Speech.HTTP2)
    return rate_limit(db, server) if counted else None


# --------------------------------------------------------------------------- who may call


@query
def default_mode(db: View, workload: Ref) -> str:
    """Who may in where no Server says so: the annotation, else the mesh's setting."""
    said = note(db, workload, DEFAULT_INBOUND_POLICY)
    found = default_inbound_policy(said) if said is not None else None
    return found if isinstance(found, str) else settings(db).default_inbound_policy


def _mode(db: View, workload: Ref, port: int) -> str:
    mode = default_mode(db, workload)
    return _AUTHENTICATED.get(mode, mode) if _needs_identity(db, workload, port) else mode


def _needs_identity(db: View, workload: Ref, port: int) -> bool:
    said = note(db, workload, REQUIRE_IDENTITY_PORTS)
    found = port_list(said, key=REQUIRE_IDENTITY_PORTS) if said is not None else None
    return found is not None and not isinstance(found, Problem) and found.holds(port)


@query
def default_authorizations(db: View, mode: str) -> tuple[Authorization, ...]:
    """What one of the six modes admits; any other word admits nobody, like `deny`."""
    if mode == "deny" or mode not in ACCESS_POLICIES:
        return ()
    within = mode.startswith("cluster-")
    networks = tuple(map(Network, settings(db).cluster_networks)) if within else ANYWHERE
    asked: Authentication = Anybody()
    if mode.endswith("-authenticated"):
        asked = Peers((AnyIdentity(),))
    return (Authorization(Default(mode), networks, asked, audit=mode == "audit"),)


# ------------------------------------------------------------------------------- mesh TLS


@query
def strict(db: View, workload: Ref) -> bool:
    """Whether only mesh TLS is let in; by annotation, permissive where nothing is understood."""
    said = note(db, workload, INBOUND_TLS)
    return said is not None and inbound_tls(said) == "strict"


@query
def accepted_snis(db: View, workload: Ref) -> tuple[Host, ...]:
    """The server names that mean mesh TLS: the own identity, and every target of the mesh."""
    mesh = Suffix(("internal", *trust_domain(db, workload.cluster).split(".")))
    identity = workload_identity(db, workload)
    return (Exact(identity.name), mesh) if isinstance(identity, DnsIdentity) else (mesh,)
