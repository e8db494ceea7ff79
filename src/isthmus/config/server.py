"""The settings of one server as the rest of the program sees them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

from isthmus.config.stores import StoreConfig
from isthmus.config.values import HostAddress, HostPort, Network, PortRange


class InboundPolicy(StrEnum):
    """Who may reach a port that no Server describes (linkerd's six modes)."""

    ALL_UNAUTHENTICATED = "all-unauthenticated"
    ALL_AUTHENTICATED = "all-authenticated"
    CLUSTER_UNAUTHENTICATED = "cluster-unauthenticated"
    CLUSTER_AUTHENTICATED = "cluster-authenticated"
    DENY = "deny"
    AUDIT = "audit"


class TransportMode(StrEnum):
    """How linkerd2-proxies reach each other: at one port with a header, or at the port itself."""

    TRANSPORT_HEADER = "transport-header"
    TRANSPARENT = "transparent"


class LogFormat(StrEnum):
    """For people or for machines."""

    CONSOLE = "console"
    JSON = "json"


class Listener(msgspec.Struct, frozen=True):
    """A surface and where it listens; port 0 means any free one."""

    name: str
    at: HostPort


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting of `isthmus server`, checked. Fields are named as the flags are."""

    cluster: str
    """Name of this cluster or datacenter: a DNS label, `_` allowed."""
    context_name: str
    """Name of the context in the kubeconfig that the server writes."""
    data_dir: Path
    store: StoreConfig
    listeners: tuple[Listener, ...]
    """What listens, in the order of `LISTENERS`; a surface that is off is not here."""
    cluster_domain: str
    dns_hosts: tuple[HostAddress, ...]
    """Names outside the cluster that its DNS answers for."""
    trust_domain: str
    control_plane_namespace: str
    cluster_networks: tuple[Network, ...]
    """Addresses in these are not egress."""
    service_cidr: Network
    """ClusterIPs are allotted from it."""
    default_opaque_ports: tuple[PortRange, ...]
    default_inbound_policy: InboundPolicy
    trust_anchors: Path | None
    issuer_cert: Path | None
    issuer_key: Path | None
    """The issuer's certificate and key are given together and with the anchors, or not at all."""
    ipv6: bool
    h2_upgrade: bool
    transport_mode: TransportMode
    zone_weights: bool
    meshed_http2_params: Path | None
    log_format: LogFormat

    def listener(self, name: str) -> HostPort | None:
        """Where the surface of this name listens; None when it is off."""
        return next((one.at for one in self.listeners if one.name == name), None)
