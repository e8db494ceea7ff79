"""Profiles: the one consistent answer of GetProfile, always defined, a function of the objects.

Of a Service: the client namespace's ServiceProfile, else the service namespace's, else the default;
with the Service's opaque ports. Of a single workload: its endpoint.
"""

from __future__ import annotations

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint
from isthmus.ir.names import Ref
from isthmus.ir.profile import Override, Profile
from isthmus.mesh.addressed import (
    Nobody,
    ThePod,
    TheService,
    TheWorkload,
    subject,
)
from isthmus.mesh.asked import ProfileKey
from isthmus.mesh.clusters import cluster
from isthmus.mesh.external import workload_endpoint
from isthmus.mesh.opaque import OfNobody, OfPod, OfService, OfWorkload, opaque
from isthmus.mesh.pods import pod_endpoint
from isthmus.mesh.policy_tables import SERVICE_PROFILES
from isthmus.mesh.serviceprofile import Share, meaning, split_shares
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.settings import settings
from isthmus.model.key import ObjectKey


@query
def profile(db: View, key: ProfileKey) -> Profile:
    """What clients of a namespace are told about a host at a port.

    What a new question would be refused for is here the default: of a Service its name and what is
    true of any port, of an address the address itself.
    """
    found = subject(db, key.host, key.port)
    match found:
        case TheService(service):
            used = used_profile(db, service, key.namespace)
            return service_profile(db, service, key.port, used)
        case ThePod(pod, ip):
            return pod_profile(db, pod, ip, key.port)
        case TheWorkload(workload, ip):
            return workload_profile(db, workload, ip, key.port)
        case Nobody(ip):
            return address_profile(db, ip, key.port)


# ------------------------------------------------------------------------------- services


@query
def full_name(db: View, service: ObjectKey) -> str:
    """The name of a Service under its cluster's domain, without a dot at the end."""
    return f"{service.name}.{service.namespace}.svc.{_domain(db, service)}"


def _domain(db: View, service: ObjectKey) -> str:
    home = cluster(db, service.cluster)
    return home.cluster_domain if home is not None else settings(db).cluster_domain


@query
def used_profile(db: View, service: ObjectKey, namespace: str) -> ObjectKey | None:
    """The ServiceProfile that counts for clients of a namespace ("" = unknown), None if none."""
    name = full_name(db, service)
    for where in filter(None, (namespace, service.namespace)):
        key = ObjectKey(service.cluster, where, name)
        if SERVICE_PROFILES.get(db, key) is not None:
            return key
    return None


@query
def service_profile(db: View, service: ObjectKey, port: int, used: ObjectKey | None) -> Profile:
    """The profile of a Service's port under the ServiceProfile that is used."""
    state = port_state(db, service, port)
    if state is PortState.UNDECLARED:
        return Profile(refused=True)
    default = Profile(
        name=full_name(db, service),
        opaque=opaque(db, OfService(service, port)),
        parent=Ref(service.cluster, "", "Service", service.namespace, service.name),
        parent_port=port,
    )
    if state is PortState.ABSENT:
        return default
    said = meaning(db, used) if used is not None else None
    shares = (said and said.shares) or split_shares(db, service, _domain(db, service))
    overrides = tuple(_override(share, port) for share in shares)
    if said is None or used is None:
        return msgspec.structs.replace(default, overrides=overrides)
    return msgspec.structs.replace(
        default,
        routes=said.routes,
        budget=said.budget,
        overrides=overrides,
        profile=Ref(used.cluster, "linkerd.io", "ServiceProfile", used.namespace, used.name),
    )


def _override(share: Share, port: int) -> Override:
    """With a port: its own, or the one that was asked for."""
    authority = share.authority if ":" in share.authority else f"{share.authority}:{port}"
    return Override(authority, share.weight)


# ------------------------------------------------------------------------ single workloads


@query
def pod_profile(db: View, pod: ObjectKey, ip: str, port: int) -> Profile:
    """The profile of a running pod's port. An unreadable one is dialled as it is, plainly."""
    found = pod_endpoint(db, pod, ip, port)
    if found is None:
        return address_profile(db, ip, port)
    return Profile(opaque=opaque(db, OfPod(pod, port)), endpoint=_single(found, pod.namespace))


@query
def workload_profile(db: View, workload: ObjectKey, ip: str, port: int) -> Profile:
    """The profile of an ExternalWorkload's port."""
    found = workload_endpoint(db, workload, ip, port)
    if found is None:
        return address_profile(db, ip, port)
    where = OfWorkload(workload, port)
    return Profile(opaque=opaque(db, where), endpoint=_single(found, workload.namespace))


@query
def address_profile(db: View, ip: str, port: int) -> Profile:
    """The profile of an address that nothing is known of; "" if there is not even an address."""
    found = Endpoint(address=ip, port=port) if ip else None
    return Profile(opaque=opaque(db, OfNobody(port)), endpoint=found)


def _single(found: Endpoint, namespace: str) -> Endpoint:
    """A lone endpoint has no set, so its own labels tell the namespace; no zone is known of it."""
    labels = dict(found.labels) | {"namespace": namespace, "zone": ""}
    return msgspec.structs.replace(found, labels=tuple(sorted(labels.items())))
