"""What a client's proxy asks about: an address it was dialled for, or a name, as a parent and port.

An address is a Service's if it is one of its ClusterIPs, whatever else claims it; else that of the
EgressNetwork that its client sees there; else it is unmanaged, or, inside the cluster, nobody's.
"""

from __future__ import annotations

import msgspec

from isthmus.engine import View, query
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.census import Place
from isthmus.mesh.egress import network_of, network_ref, read_network
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.outbound import INSIDE, UNMANAGED, outbound, parent_ref, unmanaged
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICES_BY_IP, Address
from isthmus.model.key import ObjectKey


class Dialled(msgspec.Struct, frozen=True):
    """An address and port that a client in a namespace connects to."""

    client: Place
    ip: str
    port: int


class Named(msgspec.Struct, frozen=True):
    """A Service by name, whether or not there is one, for a client in a namespace."""

    client: Place
    service: ObjectKey
    port: int


Asked = Dialled | Named


@query
def resolved(db: View, asked: Asked) -> OutboundName | None:
    """The port of a parent that is meant; None for an address that is unmanaged or nobody's."""
    if isinstance(asked, Named):
        return OutboundName(parent_ref(asked.service), asked.port, asked.client.namespace)
    ip = canonical_ip(asked.ip) or asked.ip
    services = SERVICES_BY_IP.get(db, Address(asked.client.cluster, ip))
    if services:
        return OutboundName(parent_ref(services[0]), asked.port, asked.client.namespace)
    network = network_of(db, asked.client, ip)
    if network is None:
        return None
    return OutboundName(network_ref(network), asked.port, asked.client.namespace)


@query
def is_known(db: View, asked: Asked) -> bool:
    """Whether there is an answer: not for addresses of the cluster that are nobody's."""
    if resolved(db, asked) is not None:
        return True
    return isinstance(asked, Dialled) and not _inside(db, asked.ip)


def _inside(db: View, ip: str) -> bool:
    address = read_network(ip)
    inside = (read_network(each) for each in settings(db).cluster_networks)
    return any(
        net is not None
        and address is not None
        and net.version == address.version
        and address.subnet_of(net)  # type: ignore[arg-type]  # of one version
        for net in inside
    )


@query
def outbound_for(db: View, asked: Asked) -> Outbound:
    """What the client is to do. An address inside that nobody has any more stays the cluster's."""
    name = resolved(db, asked)
    if name is not None:
        return outbound(db, name)
    return unmanaged(UNMANAGED if is_known(db, asked) else INSIDE, asked.port)


def service_named(host: str, cluster_domain: str) -> tuple[str, str] | None:
    """Namespace and name of `NAME.NAMESPACE.svc`, whatever follows; None for any other host."""
    trimmed = host.rstrip(".").removesuffix(f".{cluster_domain}")
    labels = trimmed.split(".")
    if len(labels) < 3 or labels[2] != "svc" or not all(labels[:2]):
        return None
    return labels[1], labels[0]
