"""Gateways between clusters: what the one of this cluster lets in, and what those of others speak.

A gateway is an injected pod that says so. It forwards mesh TLS by server name and terminates none,
so that who calls is proved to who is called. What is not exported has no name here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from isthmus.engine import Index, View, query
from isthmus.ir.gateway import SniGateway, SniRoute, ToTarget
from isthmus.ir.names import Exact, Ref
from isthmus.mesh.candidates import Behind, listing
from isthmus.mesh.endpoints import endpoint, groups
from isthmus.mesh.pods import pod_facts
from isthmus.mesh.scope import ports_of
from isthmus.mesh.sets import all_sets
from isthmus.mesh.tables import PODS, SERVICES, SLICES_BY_SERVICE
from isthmus.mesh.targets import (
    FORWARDED,
    by_native,
    headless,
    service_ref,
    target_id,
    trust_domain,
)
from isthmus.model.annotations.grammar import Unfit, parse_truth
from isthmus.model.annotations.keys import ENABLE_GATEWAY
from isthmus.model.core import Pod, Service
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Meta

PORT: Final = 4143
"""Where a gateway listens (Linkerd's `mc-gateway`)."""

EXPORTED: Final = "mirror.linkerd.io/exported"


def _exported(key: ObjectKey, row: Service) -> Iterable[str]:
    wanted = row.metadata.labels.get(EXPORTED) == "true"
    return (key.cluster,) if wanted and row.spec.type != "ExternalName" else ()


def _gateway(key: ObjectKey, row: Pod) -> Iterable[str]:
    return (key.cluster,) if says_gateway(row.metadata) else ()


def says_gateway(meta: Meta) -> bool:
    """Whether a pod says that it is a gateway."""
    try:
        return parse_truth(meta.annotations.get(ENABLE_GATEWAY, "false"))
    except Unfit:
        return False


SERVICES_EXPORTED: Index[ObjectKey, Service, str] = Index("services_exported", SERVICES, _exported)
"""Services that other clusters reach through the gateway, by cluster."""
GATEWAY_PODS: Index[ObjectKey, Pod, str] = Index("gateway_pods", PODS, _gateway)
"""Pods that are gateways, by cluster."""


# ------------------------------------------------------------------------- of this cluster


@query
def is_gateway(db: View, pod: ObjectKey) -> bool:
    """Whether a pod's proxy is a gateway."""
    row = PODS.get(db, pod)
    return row is not None and says_gateway(row.metadata)


@query
def sni_gateway(db: View, workload: Ref) -> SniGateway:
    """What a gateway of this cluster forwards: one server name for each port that is exported."""
    return SniGateway(workload, PORT, exported_routes(db, workload.cluster))


@query
def exported_routes(db: View, cluster: str) -> tuple[SniRoute, ...]:
    """The names of all ports that a cluster exports through gateways, sorted."""
    return tuple(
        route for service in SERVICES_EXPORTED.get(db, cluster) for route in routes_to(db, service)
    )


@query
def routes_to(db: View, service: ObjectKey) -> tuple[SniRoute, ...]:
    """The names of the ports of one Service; of a headless one, each of its hosts has some too."""
    return tuple(
        _route(db, service, name.port, host)
        for name in ports_of(db, service)
        for host in ("", *hosts(db, service, name.port))
    )


def _route(db: View, service: ObjectKey, port: int, host: str) -> SniRoute:
    name = target_id(service, port, subset=host).sni(trust_domain(db, service.cluster))
    forwarded = target_id(service, port, FORWARDED, host)
    return SniRoute(Exact(name), ToTarget(forwarded), service_ref(service))


@query
def hosts(db: View, service: ObjectKey, port: int) -> tuple[str, ...]:
    """The host names of a headless Service's endpoints, ready or not, sorted."""
    if not headless(db, service):
        return ()
    said = [listing(db, part, service, port) for part in SLICES_BY_SERVICE.get(db, service)]
    found = {one.hostname for each in said for one in (*each.candidates, *each.resting)}
    return tuple(sorted(found - {""}))


# ----------------------------------------------------------------------- of other clusters


GATEWAY_PROTOCOL: Final = "GatewayProtocol"
"""The feature that is missing where client, gateway and server do not understand each other."""


class Protocol(StrEnum):
    """How gateways are told which Service is meant: by SNI, or in linkerd's transport header."""

    SNI = "sni"
    LINKERD = "linkerd"

    __hash__ = str.__hash__  # members of keys: an enum's own is a Python function


@query
def gateway_protocol(db: View, cluster: str) -> Protocol:
    """What the gateways of a cluster understand; our own way where none of them is known."""
    found = [facts for pod in GATEWAY_PODS.get(db, cluster) if (facts := pod_facts(db, pod))]
    proxies = [one.proxy for one in found if one.proxy is not None]
    linkerd = bool(proxies) and not any(one.envoy for one in proxies)
    return Protocol.LINKERD if linkerd else Protocol.SNI


@query
def has_no_name(db: View, service: ObjectKey) -> bool:
    """Whether the gateways of a Service's cluster are ours and let nobody in to it.

    A Link may select what it likes; what passes is for the cluster that lends it to say.
    """
    row = SERVICES.get(db, service)
    if row is None or row.metadata.labels.get(EXPORTED) == "true":
        return False
    ours = gateway_protocol(db, service.cluster) is Protocol.SNI
    return ours and bool(GATEWAY_PODS.get(db, service.cluster))


@query
def forwards_to(db: View, service: ObjectKey, port: int, host: str) -> bool:
    """Whether a gateway finds somebody ready for a Service's port: behind one of our own sidecars.

    What the Service behind a gateway has counts, not the gateway (decision 6).
    """
    return any(
        member.behind is not Behind.BARE
        and (one := endpoint(db, member)) is not None
        and by_native(one)
        for part in all_sets(db, service, port, host)
        for group in groups(db, part)
        for member in group.members
    )
