"""Inbound: what a server's proxy does with connections to a port of its workload.

One cell per workload and port. Port 0 stands for every port that nobody spoke of. Who may in is
the covering Server's word, else the workload's default policy (Linkerd's six modes).
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
    InboundRoute,
    InboundRule,
    Network,
    Peers,
    Speech,
)
from isthmus.ir.names import AnyIdentity, Default, Exact, Host, Origin, Ref, Source, Suffix
from isthmus.ir.names import Dns as DnsIdentity
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import HttpMatch, Match, PathMatch
from isthmus.mesh.policy_tables import SERVERS
from isthmus.mesh.settings import settings
from isthmus.mesh.targets import trust_domain
from isthmus.mesh.workloads import (
    is_opaque,
    note,
    port_names,
    probes,
    servers_on,
    workload_identity,
)
from isthmus.model.annotations import (
    Problem,
    default_inbound_policy,
    inbound_tls,
    port_list,
)
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

_SPEECH: Final = {
    "HTTP/1": Speech.HTTP1,
    "HTTP/2": Speech.HTTP2,
    "gRPC": Speech.GRPC,
    "opaque": Speech.OPAQUE,
    "TLS": Speech.TLS,
}

_AUTHENTICATED: Final = {
    "all-unauthenticated": "all-authenticated",
    "cluster-unauthenticated": "cluster-authenticated",
}


@query
def inbound(db: View, name: InboundName) -> Inbound:
    """What a workload's proxy does with connections to a port."""
    workload, port = name.workload, name.port
    server = covering_server(db, workload, port)
    mode = _mode(db, workload, port, server)
    return Inbound(
        workload=workload,
        port=port,
        speech=_speech(db, workload, port, server),
        source=_source(server, mode),
        accepted_snis=accepted_snis(db, workload),
        authorizations=default_authorizations(db, mode),
        http_routes=_routes(db, workload, port),
        detect_timeout=DETECT_TIMEOUT,
        strict=strict(db, workload),
    )


def _source(server: ObjectKey | None, mode: str) -> Source:
    if server is None:
        return Default(mode)
    return Origin(Ref(server.cluster, "policy.linkerd.io", "Server", server.namespace, server.name))


# ------------------------------------------------------------------------------- Servers


@query
def covering_server(db: View, workload: Ref, port: int) -> ObjectKey | None:
    """The Server that a port is covered by: the oldest one, then the first by name."""
    names = port_names(db, workload, port)
    found = [
        (order, server)
        for server in servers_on(db, workload)
        if (order := server_order(db, server, port, names)) is not None
    ]
    return min(found)[1] if found else None


@query
def server_order(db: View, server: ObjectKey, port: int, names: tuple[str, ...]) -> str | None:
    """When a Server that is about this port was created; None if it is not about it."""
    row = SERVERS.get(db, server)
    if row is None or (row.spec.port != port and row.spec.port not in names):
        return None
    return row.metadata.creation_timestamp


@query
def server_words(db: View, server: ObjectKey) -> tuple[str, str]:
    """What a Server says the port speaks, and its access policy."""
    row = SERVERS.get(db, server)
    return (row.spec.proxy_protocol, row.spec.access_policy) if row is not None else ("", "deny")


def _speech(db: View, workload: Ref, port: int, server: ObjectKey | None) -> Speech:
    if server is not None:
        return _SPEECH.get(server_words(db, server)[0], Speech.DETECT)
    if port != ELSEWHERE and is_opaque(db, workload, port):
        return Speech.OPAQUE
    return Speech.DETECT


# --------------------------------------------------------------------------- who may call


@query
def default_mode(db: View, workload: Ref) -> str:
    """Who may in where no Server says so: the annotation, else the mesh's setting."""
    said = note(db, workload, DEFAULT_INBOUND_POLICY)
    found = default_inbound_policy(said) if said is not None else None
    return found if isinstance(found, str) else settings(db).default_inbound_policy


def _mode(db: View, workload: Ref, port: int, server: ObjectKey | None) -> str:
    if server is not None:
        return server_words(db, server)[1]
    mode = default_mode(db, workload)
    return _AUTHENTICATED.get(mode, mode) if _needs_identity(db, workload, port) else mode


def _needs_identity(db: View, workload: Ref, port: int) -> bool:
    said = note(db, workload, REQUIRE_IDENTITY_PORTS)
    found = port_list(said, key=REQUIRE_IDENTITY_PORTS) if said is not None else None
    return found is not None and not isinstance(found, Problem) and found.holds(port)


@query
def default_authorizations(db: View, mode: str) -> tuple[Authorization, ...]:
    """What one of the six modes admits."""
    if mode == "deny":
        return ()
    within = mode.startswith("cluster-")
    networks = tuple(map(Network, settings(db).cluster_networks)) if within else ANYWHERE
    asked: Authentication = Anybody()
    if mode.endswith("-authenticated"):
        asked = Peers((AnyIdentity(),))
    return (Authorization(Default(mode), networks, asked, audit=mode == "audit"),)


def _routes(db: View, workload: Ref, port: int) -> tuple[InboundRoute, ...]:
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
