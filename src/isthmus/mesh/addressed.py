"""Who is meant by an address, or by the host name of one endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.asked import AddressHost, Host, InstanceHost, Refused, ServiceHost, Why
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.pods import Life, PodState, pod_ips, pod_state
from isthmus.mesh.policy_tables import WORKLOADS_BY_SOCKET, Socket
from isthmus.mesh.services import service_refusal
from isthmus.mesh.tables import (
    PODS_BY_HOST_PORT,
    PODS_BY_IP,
    SERVICES_BY_IP,
    SLICES,
    SLICES_BY_SERVICE,
    Address,
    HostPort,
)
from isthmus.model.discovery import Endpoint as Row
from isthmus.model.key import ObjectKey


class TheService(msgspec.Struct, frozen=True, tag="service"):
    """A Service, which may have gone."""

    service: ObjectKey


class ThePod(msgspec.Struct, frozen=True, tag="pod"):
    """A running pod, dialled at `ip`: its own, or its host's."""

    pod: ObjectKey
    ip: str


class TheWorkload(msgspec.Struct, frozen=True, tag="workload"):
    """An ExternalWorkload."""

    workload: ObjectKey
    ip: str


class Nobody(msgspec.Struct, frozen=True, tag="nobody"):
    """An address that nothing is known of. `ip` is "" where not even that is known.

    `refused`: why a new question is refused, where it is.
    """

    ip: str
    refused: Refused | None = None


Subject = TheService | ThePod | TheWorkload | Nobody

_TCP: Final = "TCP"


@query
def subject(db: View, host: Host, port: int) -> Subject:
    """Who is meant by a host at a port now."""
    match host:
        case ServiceHost(service):
            return TheService(service)
        case InstanceHost(service, instance):
            return instance_of(db, service, instance)
        case AddressHost(cluster, ip):
            return holder(db, cluster, ip, port)


@query
def subject_refusal(db: View, host: Host, port: int) -> Refused | None:
    """Why a new question for the profile of a host is refused."""
    match subject(db, host, port):
        case TheService(service):
            return service_refusal(db, service)
        case Nobody(_, refused):
            return refused
        case ThePod() | TheWorkload():
            return None


# ------------------------------------------------------------------------------ addresses


@query
def holder(db: View, cluster: str, ip: str, port: int) -> Subject:
    """Who has an address: a Service, a pod, a pod by a port of its host, a workload; in order."""
    return (
        _service(db, cluster, ip)
        or _pod(db, cluster, ip)
        or _host_port(db, cluster, ip, port)
        or _workload(db, cluster, ip, port)
        or Nobody(ip)
    )


def _service(db: View, cluster: str, ip: str) -> Subject | None:
    found = SERVICES_BY_IP.get(db, Address(cluster, ip))
    if len(found) > 1:
        return _conflict(ip, f"found {len(found)} services with conflicting cluster IP {ip}")
    return TheService(found[0]) if found else None


def _pod(db: View, cluster: str, ip: str) -> Subject | None:
    """A pod by its own IP. Those on the host's network share it, so that nobody is meant."""
    states = _states(db, PODS_BY_IP.get(db, Address(cluster, ip)))
    own = {key: state for key, state in states.items() if not state.host_network}
    return _choose(own, ip, f"found {{}} pods with a conflicting pod network IP {ip}")


def _host_port(db: View, cluster: str, ip: str, port: int) -> Subject | None:
    states = _states(db, PODS_BY_HOST_PORT.get(db, HostPort(cluster, ip, port, _TCP)))
    where = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    return _choose(states, ip, f"found {{}} pods with a conflicting host network endpoint {where}")


def _workload(db: View, cluster: str, ip: str, port: int) -> Subject | None:
    found = WORKLOADS_BY_SOCKET.get(db, Socket(cluster, ip, port))
    where = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    if len(found) > 1:
        return _conflict(ip, f"found {len(found)} externalworkloads with a conflicting ip {where}")
    return TheWorkload(found[0], ip) if found else None


def _conflict(ip: str, text: str) -> Nobody:
    """Only the count is told: a list of objects would not fit a status (HTTP/2 trailers)."""
    return Nobody(ip, Refused(Why.CONFLICT, text))


def _states(db: View, pods: Sequence[ObjectKey]) -> dict[ObjectKey, PodState]:
    return {key: state for key in pods if (state := pod_state(db, key)) is not None}


def _choose(states: dict[ObjectKey, PodState], ip: str, conflict: str) -> Subject | None:
    """The one live pod; without any, the youngest of those that are leaving (decision 22).

    A pod that does not run yet, or any more, has the address, but nobody answers there.
    """
    live = [key for key, state in states.items() if state.life is Life.LIVE]
    if len(live) > 1:
        return _conflict(ip, conflict.format(len(live)))
    leaving = [key for key, state in states.items() if state.life is Life.LEAVING]
    held = live or sorted(leaving, key=lambda key: (states[key].born, key))[-1:]
    if not held:
        return None
    return ThePod(held[0], ip) if states[held[0]].running else Nobody(ip)


# ------------------------------------------------------------------------------ instances


@query
def instance_of(db: View, service: ObjectKey, instance: str) -> Subject:
    """The endpoint of a Service with this host name, ready or not."""
    for part in SLICES_BY_SERVICE.get(db, service):
        found = instance_in(db, part, instance)
        if found is not None:
            return _target(db, part, found)
    name = f"{service.namespace}/{service.name}"
    text = f"no pod found in EndpointSlices of Service {name} for hostname {instance}"
    return Nobody("", Refused(Why.MISSING, text))


@query
def instance_in(db: View, part: ObjectKey, instance: str) -> Row | None:
    """The first endpoint of a slice with this host name."""
    row = SLICES.get(db, part)
    named = (each for each in row.endpoints if each.hostname == instance) if row is not None else ()
    return next((each for each in named if each.addresses), None)


def _target(db: View, part: ObjectKey, row: Row) -> Subject:
    """A pod at its primary IP; whatever else it is, the endpoint's own address."""
    ip, ref = canonical_ip(row.addresses[0]) or "", row.target_ref
    if ref is None or ref.kind not in ("Pod", "ExternalWorkload"):
        return Nobody(ip)
    key = ObjectKey(part.cluster, ref.namespace or part.namespace, ref.name)
    if ref.kind == "ExternalWorkload":
        return TheWorkload(key, ip)
    state, own = pod_state(db, key), pod_ips(db, key)
    ip = (canonical_ip(own[0]) if own else None) or ip
    runs = state is not None and state.running
    return ThePod(key, ip) if runs else Nobody(ip)
