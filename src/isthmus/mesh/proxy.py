"""Proxy views: the names of everything that one proxy is told. Contents are shared cells."""

from __future__ import annotations

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.proxy import InboundName, ProxyKind, ProxyView
from isthmus.mesh.census import Place
from isthmus.mesh.gateways import is_gateway
from isthmus.mesh.inbound import ELSEWHERE
from isthmus.mesh.outside import egress_parents
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS
from isthmus.mesh.scope import scope, upstreams_of
from isthmus.mesh.tables import PODS
from isthmus.mesh.workloads import is_pod, known_ports, workload_identity, workload_key


@query
def proxy_view(db: View, workload: Ref) -> ProxyView | None:
    """What the proxy of a workload is told; None if there is no such workload.

    The value is small: its upstreams are the one tuple of all proxies with the same scope. A
    gateway is told of nothing but what it forwards (`mesh.gateways`).
    """
    if not exists(db, workload):
        return None
    if is_pod(workload) and is_gateway(db, workload_key(workload)):
        identity = workload_identity(db, workload)
        return ProxyView(workload, ProxyKind.GATEWAY, identity, dns=False, scope=())
    wanted, where = scope(db, workload), Place(workload.cluster, workload.namespace)
    return ProxyView(
        workload=workload,
        kind=ProxyKind.SIDECAR,
        identity=workload_identity(db, workload),
        upstreams=upstreams_of(db, where, wanted),
        inbounds=inbounds(db, workload),
        egress=egress_parents(db, where),
        scope=tuple(f"{each.namespace}/{each.name}" for each in wanted),
    )


@query
def exists(db: View, workload: Ref) -> bool:
    """Whether there is such a workload."""
    table = PODS if is_pod(workload) else EXTERNAL_WORKLOADS
    return table.get(db, workload_key(workload)) is not None


@query
def inbounds(db: View, workload: Ref) -> tuple[InboundName, ...]:
    """The ports that somebody spoke of, and the one that stands for all others (0) before them."""
    ports = (ELSEWHERE, *known_ports(db, workload))
    return tuple(InboundName(workload, port) for port in ports)
