"""The table of settings: the one place that names them, their defaults and their meanings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

from isthmus.config.server import InboundPolicy, LogFormat, TransportMode

ENVIRONMENT_PREFIX = "ISTHMUS_"

LISTENERS: Mapping[str, str] = MappingProxyType(
    {
        "kube": "127.0.0.1:6443",
        "destination": "127.0.0.1:8086",
        "policy": "127.0.0.1:8090",
        "identity": "127.0.0.1:8080",
        "xds": "127.0.0.1:15010",
        "catalog": "127.0.0.1:8500",
        "dns": "127.0.0.1:8600",
        "admin": "127.0.0.1:9990",
    }
)
"""The surfaces and where each listens unless told otherwise."""


class Shape(Enum):
    """How the value of a setting is written."""

    TEXT = "one text"
    LIST = "texts, separated by commas"
    PAIRS = "NAME=VALUE, repeatable; separated by commas in the environment; a table in the file"
    SWITCH = "true or false"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `name` is the field of `ServerConfig` and the key of the flags' mapping."""

    name: str
    metavar: str
    default: str | None
    """As somebody would write it; None when there is none, or it follows from other settings."""
    meaning: str
    shape: Shape = Shape.TEXT

    @property
    def key(self) -> str:
        """As it is written in the file: `cluster-domain`."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """As it is written on the command line: `--cluster-domain`."""
        return f"--{self.key}"

    @property
    def variable(self) -> str:
        """As it is called in the environment: `ISTHMUS_CLUSTER_DOMAIN`."""
        return ENVIRONMENT_PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="cluster",
        metavar="NAME",
        default="default",
        meaning="Name of this cluster (datacenter).",
    ),
    Setting(
        name="context_name",
        metavar="NAME",
        default=None,
        meaning="Name of the kubeconfig's context; the cluster's name if not given.",
    ),
    Setting(
        name="data_dir",
        metavar="DIR",
        default=None,
        meaning="Folder of the database, the CA, kubeconfig and endpoints.json; "
        "~/.local/share/isthmus/CLUSTER if not given.",
    ),
    Setting(
        name="store",
        metavar="URL",
        default="sqlite:",
        meaning="Where the objects live: memory:, sqlite:[PATH], "
        "etcd://HOST:PORT[,HOST:PORT][/PREFIX] or kubernetes:[CONTEXT].",
    ),
    Setting(
        name="listen",
        metavar="NAME=HOST:PORT",
        default=",".join(f"{name}={at}" for name, at in LISTENERS.items()),
        meaning="Where a surface listens; repeatable; port 0 takes any free port, "
        "NAME=off leaves the surface out.",
        shape=Shape.PAIRS,
    ),
    Setting(
        name="cluster_domain",
        metavar="DOMAIN",
        default="cluster.local",
        meaning="Suffix of the names of Services.",
    ),
    Setting(
        name="dns_hosts",
        metavar="NAME=ADDRESS,...",
        default=None,
        meaning="Machines outside the mesh that cluster DNS knows by name; repeatable.",
        shape=Shape.PAIRS,
    ),
    Setting(
        name="trust_domain",
        metavar="DOMAIN",
        default="cluster.local",
        meaning="Suffix of the identities of workloads.",
    ),
    Setting(
        name="control_plane_namespace",
        metavar="NAMESPACE",
        default="linkerd",
        meaning="Namespace of the control plane; a part of identities.",
    ),
    Setting(
        name="cluster_networks",
        metavar="CIDR,...",
        default="10.0.0.0/8,100.64.0.0/10,172.16.0.0/12,192.168.0.0/16,fd00::/8",
        meaning="Networks inside the cluster: what is not egress.",
        shape=Shape.LIST,
    ),
    Setting(
        name="service_cidr",
        metavar="CIDR",
        default="10.96.0.0/16",
        meaning="Network that ClusterIPs are allotted from.",
    ),
    Setting(
        name="default_opaque_ports",
        metavar="PORT,...",
        default="25,443,587,3306,4444,5432,6379,9300,11211",
        meaning="Ports (or ranges FIRST-LAST) taken as opaque TCP unless something says more.",
        shape=Shape.LIST,
    ),
    Setting(
        name="default_inbound_policy",
        metavar="|".join(InboundPolicy),
        default=InboundPolicy.ALL_UNAUTHENTICATED.value,
        meaning="Who may reach a port that no Server describes.",
    ),
    Setting(
        name="trust_anchors",
        metavar="FILE",
        default=None,
        meaning="PEM file of the roots that the mesh trusts.",
    ),
    Setting(
        name="issuer_cert",
        metavar="FILE",
        default=None,
        meaning="PEM file of the certificate that signs workloads' certificates.",
    ),
    Setting(
        name="issuer_key",
        metavar="FILE",
        default=None,
        meaning="PEM file of that certificate's key.",
    ),
    Setting(
        name="ipv6",
        metavar="",
        default="off",
        meaning="Tell proxies IPv6 addresses, and prefer them.",
        shape=Shape.SWITCH,
    ),
    Setting(
        name="h2_upgrade",
        metavar="",
        default="on",
        meaning="Let meshed proxies carry HTTP/1 to each other in HTTP/2.",
        shape=Shape.SWITCH,
    ),
    Setting(
        name="transport_mode",
        metavar="|".join(TransportMode),
        default=TransportMode.TRANSPORT_HEADER.value,
        meaning="How linkerd2-proxies reach each other.",
    ),
    Setting(
        name="zone_weights",
        metavar="",
        default="off",
        meaning="Weigh endpoints by their zone.",
        shape=Shape.SWITCH,
    ),
    Setting(
        name="meshed_http2_params",
        metavar="FILE",
        default=None,
        meaning="JSON file of the HTTP/2 client settings told to meshed proxies.",
    ),
    Setting(
        name="log_format",
        metavar="|".join(LogFormat),
        default=LogFormat.CONSOLE.value,
        meaning="How the log is written.",
    ),
)
