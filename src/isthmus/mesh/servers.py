"""Servers: which of them describes a port of a workload, and what it says.

Of several on one port the oldest counts, then the first by name (Linkerd, #13676). The others stay
without effect there, which is a value for their conditions.
"""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.inbound import Speech
from isthmus.ir.names import Origin, Ref, Value
from isthmus.ir.proxy import InboundName
from isthmus.mesh.policy_tables import (
    EXTERNAL_WORKLOADS,
    POLICY_GROUP,
    SERVER_PODS,
    SERVER_WORKLOADS,
    SERVERS,
)
from isthmus.mesh.tables import PODS
from isthmus.mesh.workloads import external_ref, is_pod, pod_ref, servers_on, workload_key
from isthmus.model.annotations.inbound import ACCESS_POLICIES
from isthmus.model.key import ObjectKey

_SPEECH: Final = {
    "HTTP/1": Speech.HTTP1,
    "HTTP/2": Speech.HTTP2,
    "gRPC": Speech.GRPC,
    "opaque": Speech.OPAQUE,
    "TLS": Speech.TLS,
}
DENY: Final = "deny"


class ServerWords(Value, frozen=True):
    """What a Server says the port speaks, and who may in when nobody else is let in."""

    speech: Speech
    access: str


class Overlap(Value, frozen=True):
    """A port of a workload that another Server has before this one."""

    workload: Ref
    port: int
    to: ObjectKey


def server_origin(server: ObjectKey) -> Origin:
    """A Server as the source of what is said of a port."""
    return Origin(Ref(server.cluster, POLICY_GROUP, "Server", server.namespace, server.name))


@query
def server_words(db: View, server: ObjectKey) -> ServerWords:
    """What a Server says. A word that nobody knows denies, or has the port looked at."""
    row = SERVERS.get(db, server)
    if row is None:
        return ServerWords(Speech.DETECT, DENY)
    access = row.spec.access_policy
    return ServerWords(
        _SPEECH.get(row.spec.proxy_protocol, Speech.DETECT),
        access if access in ACCESS_POLICIES else DENY,
    )


@query
def covering_server(db: View, workload: Ref, port: int) -> ObjectKey | None:
    """The Server that describes a port: the oldest that covers it, then the first by name."""
    found = servers_of_port(db, workload, port)
    return found[0] if found else None


@query
def servers_of_port(db: View, workload: Ref, port: int) -> tuple[ObjectKey, ...]:
    """All Servers that cover a port, the one that counts in front."""
    named = tcp_port_names(db, workload, port)
    found = [
        (age, server)
        for server in servers_on(db, workload)
        if (age := server_age(db, server, port, named)) is not None
    ]
    return tuple(server for _, server in sorted(found))


@query
def server_age(db: View, server: ObjectKey, port: int, named: tuple[str, ...]) -> str | None:
    """When a Server that covers a port of these names was created; None if it does not.

    A number covers the port whether or not a container declares it; 0 stands for no port.
    """
    row = SERVERS.get(db, server)
    if row is None or port == 0 or (row.spec.port != port and row.spec.port not in named):
        return None
    return row.metadata.creation_timestamp


# --------------------------------------------------------------------------------- ports


@query
def tcp_ports(db: View, workload: Ref) -> tuple[tuple[str, int], ...]:
    """(name, number) of all TCP ports of a workload: of init containers and the sidecar too."""
    key = workload_key(workload)
    if is_pod(workload):
        pod = PODS.get(db, key)
        containers = (*pod.spec.init_containers, *pod.spec.containers) if pod is not None else ()
        listed = [
            (one.name, one.container_port, one.protocol) for c in containers for one in c.ports
        ]
    else:
        row = EXTERNAL_WORKLOADS.get(db, key)
        listed = [(one.name, one.port, one.protocol) for one in row.spec.ports] if row else []
    return tuple(sorted({(name, port) for name, port, protocol in listed if protocol == "TCP"}))


@query
def tcp_port_names(db: View, workload: Ref, port: int) -> tuple[str, ...]:
    """What a workload calls a TCP port."""
    return tuple(name for name, at in tcp_ports(db, workload) if at == port and name)


# ---------------------------------------------------------------------------- conditions


@query
def covered_workloads(db: View, server: ObjectKey) -> tuple[Ref, ...]:
    """The workloads of its own cluster that a Server selects. None: it protects nothing there."""
    pods = map(pod_ref, SERVER_PODS.members(db, server))
    external = map(external_ref, SERVER_WORKLOADS.members(db, server))
    return (*pods, *external)


@query
def described_ports(db: View, server: ObjectKey) -> tuple[InboundName, ...]:
    """The ports of workloads that a Server describes: those where no older one does."""
    return tuple(
        InboundName(workload, port)
        for workload in covered_workloads(db, server)
        for port in ports_covered(db, server, workload)
        if covering_server(db, workload, port) == server
    )


@query
def overlaps(db: View, server: ObjectKey) -> tuple[Overlap, ...]:
    """Where a Server has no effect because of an older one."""
    found: list[Overlap] = []
    for workload in covered_workloads(db, server):
        found += lost_ports(db, server, workload)
    return tuple(found)


@query
def lost_ports(db: View, server: ObjectKey, workload: Ref) -> tuple[Overlap, ...]:
    """The ports of one workload that a Server covers and that another one has before it."""
    return tuple(
        Overlap(workload, port, winner)
        for port in ports_covered(db, server, workload)
        if (winner := covering_server(db, workload, port)) not in (None, server)
    )


@query
def ports_covered(db: View, server: ObjectKey, workload: Ref) -> tuple[int, ...]:
    """The ports of a workload that a Server it selects is about, whether or not it counts there."""
    row = SERVERS.get(db, server)
    if row is None:
        return ()
    if isinstance(row.spec.port, int):
        return (row.spec.port,) if row.spec.port else ()
    return tuple(at for name, at in tcp_ports(db, workload) if name == row.spec.port)
