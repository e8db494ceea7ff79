"""The Destination service: which calls it has, and what the operator's flags mean for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from isthmus.app.http2 import read_params
from isthmus.calls import Refusal
from isthmus.config import ServerConfig
from isthmus.config.server import TransportMode
from isthmus.dialects import linkerd
from isthmus.engine import Put
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.model.annotations import Ports
from isthmus.serve.linkerd import Method, Read, Service

NAME: Final = "io.linkerd.proxy.destination.Destination"

FAULTS: Final = (linkerd.faults,)
"""What proxies will not do as a profile says it, by dialect: for conditions."""

Question = Callable[[Read, bytes], Any]


def mesh_settings(config: ServerConfig) -> Put[str, MeshSettings]:
    """The row of settings, to be committed before anything else.

    Raises:
        UserFault: a file that a flag names cannot be used.
    """
    opaque = tuple((ports.first, ports.last) for ports in config.default_opaque_ports)
    settings = MeshSettings(
        cluster=config.cluster,
        cluster_domain=config.cluster_domain,
        trust_domain=config.trust_domain,
        control_plane_namespace=config.control_plane_namespace,
        default_opaque_ports=Ports(opaque),
        h2_upgrade=config.h2_upgrade,
        ipv6=config.ipv6,
        transport_header=config.transport_mode is TransportMode.TRANSPORT_HEADER,
        zone_weights=config.zone_weights,
        meshed_http2=read_params(config.meshed_http2_params),
        default_inbound_policy=config.default_inbound_policy.value,
        cluster_networks=tuple(map(str, config.cluster_networks)),
        service_networks=(str(config.service_cidr),),
    )
    return Put(SETTINGS, WHOLE, settings)


def service() -> Service:
    """The calls of the Destination service, in linkerd's dialect."""
    return {
        "Get": Method(asking(linkerd.get_question), linkerd.addresses, linkerd.delta),
        "GetProfile": Method(asking(linkerd.profile_question), linkerd.profile_bytes, whole),
    }


def whole(held: bytes | None, now: bytes) -> Sequence[bytes]:
    """A profile replaces the one before it; an equal one is not told again."""
    return () if held == now else (now,)


def asking(question: Question) -> Question:
    """The dialect's fault as the server's refusal: neither room knows the other."""

    def ask(read: Read, request: bytes) -> Any:  # noqa: ANN401  # any key
        found = question(read, request)
        return Refusal(*found) if isinstance(found, linkerd.Fault) else found

    return ask
