"""What the operator decided for the whole mesh, as a row: a read like any other."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.engine import Table, View, query
from isthmus.model.annotations import NO_PORTS, Ports


class Http2Params(msgspec.Struct, frozen=True):
    """HTTP/2 settings of clients towards meshed endpoints; None and 0 where nothing is said.

    Times are milliseconds, windows bytes.
    """

    ping_interval: int | None = None
    ping_timeout: int | None = None
    ping_while_idle: bool = False
    connection_window: int = 0
    stream_window: int = 0
    adaptive_window: bool = False


class MeshSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `isthmus server` that change what is true in the mesh.

    `cluster` is the local cluster's name. `transport_header` dials every meshed port through the
    peer's inbound port. `ipv6` prefers the IPv6 address of a pod that has both; without it such
    addresses are left out. `zone_weights` prefers endpoints in the asker's zone tenfold.
    `cluster_networks` are inside the cluster, `service_networks` those that ClusterIPs come from;
    `probe_networks` are where probes may come from. All are CIDRs. `egress_namespace` is where
    EgressNetworks are everybody's.
    """

    cluster: str = "default"
    cluster_domain: str = "cluster.local"
    trust_domain: str = "cluster.local"
    control_plane_namespace: str = "linkerd"
    default_opaque_ports: Ports = NO_PORTS
    h2_upgrade: bool = True
    ipv6: bool = False
    transport_header: bool = True
    zone_weights: bool = False
    meshed_http2: Http2Params | None = None
    default_inbound_policy: str = "all-unauthenticated"
    cluster_networks: tuple[str, ...] = ()
    service_networks: tuple[str, ...] = ()
    egress_namespace: str = "linkerd-egress"
    probe_networks: tuple[str, ...] = ("0.0.0.0/0", "::/0")


WHOLE: Final = "mesh"
"""The key of the one row."""

SETTINGS: Table[str, MeshSettings] = Table("mesh_settings")

_DEFAULT: Final = MeshSettings()


@query
def settings(db: View) -> MeshSettings:
    """The mesh's settings; the defaults where the app committed none."""
    return SETTINGS.get(db, WHOLE) or _DEFAULT
