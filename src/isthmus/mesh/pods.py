"""Pods as endpoints: who they are, what stands before their ports, how they are reached."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Mesh, Plain, Reach, Speaks
from isthmus.ir.names import Dns, Ref
from isthmus.mesh.clusters import cluster
from isthmus.mesh.opaque import OfPod, Ranges, annotated, holds, opaque
from isthmus.mesh.policy_tables import JOBS
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import NODES, PODS, REPLICASETS
from isthmus.model.core import Container, Pod
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Meta, OwnerReference

CONTROL_PLANE: Final = "linkerd.io/control-plane-ns"
"""The label of meshed pods: whose mesh."""

SKIPPED: Final = "config.linkerd.io/skip-inbound-ports"
PROXY: Final = "config.isthmus.dev/proxy"
ENVOY: Final = "envoy"
SIDECAR: Final = "linkerd-proxy"
ZONE: Final = "topology.kubernetes.io/zone"

_INBOUND: Final = "LINKERD2_PROXY_INBOUND_LISTEN_ADDR"
_OWN: Final = ("LINKERD2_PROXY_ADMIN_LISTEN_ADDR", "LINKERD2_PROXY_CONTROL_LISTEN_ADDR")

Labels = tuple[tuple[str, str], ...]


class Proxy(msgspec.Struct, frozen=True):
    """The proxy beside a pod's containers. `inbound` is 0 where it takes no transport headers.

    `own` are its admin and control ports, which are not behind it.
    """

    envoy: bool
    inbound: int
    own: tuple[int, ...] = ()


class PodFacts(msgspec.Struct, frozen=True):
    """What of a pod counts for its endpoints. `proxy` is None where the pod is not meshed.

    `readable` is False for a meshed pod whose proxy does not say how it is reached.
    """

    labels: Labels
    identity: str
    node: str
    skipped: Ranges
    proxy: Proxy | None
    readable: bool


@query
def pod_facts(db: View, pod: ObjectKey) -> PodFacts | None:
    """The facts of a pod, None if there is none."""
    row = PODS.get(db, pod)
    if row is None:
        return None
    meshed = CONTROL_PLANE in row.metadata.labels
    proxy = _proxy(row) if meshed else None
    return PodFacts(
        labels=_labels(db, pod, row),
        identity=_identity(db, pod, row),
        node=row.spec.node_name,
        skipped=annotated(row.metadata.annotations, (), SKIPPED) or (),
        proxy=proxy,
        readable=proxy is not None or not meshed,
    )


def _labels(db: View, pod: ObjectKey, row: Pod) -> Labels:
    """Metric labels (Linkerd's), without those of the endpoint's zone."""
    said = row.metadata.labels
    found = dict(filter(None, (owner(db, pod),)))
    found |= {"pod": pod.name, "serviceaccount": row.spec.service_account_name or "default"}
    if CONTROL_PLANE in said:
        found["control_plane_ns"] = said[CONTROL_PLANE]
    if "pod-template-hash" in said:
        found["pod_template_hash"] = said["pod-template-hash"]
    return tuple(sorted(found.items()))


def _identity(db: View, pod: ObjectKey, row: Pod) -> str:
    """The name in the certificate of a pod of our mesh; "" for any other pod."""
    home = cluster(db, pod.cluster)
    if home is None or not home.trust_domain:
        return ""
    ours = home.control_plane_namespace or settings(db).control_plane_namespace
    if row.metadata.labels.get(CONTROL_PLANE) != ours:
        return ""
    account = row.spec.service_account_name or "default"
    return f"{account}.{pod.namespace}.serviceaccount.identity.{ours}.{home.trust_domain}"


def _proxy(row: Pod) -> Proxy | None:
    """What the sidecar's environment says of itself; None if that cannot be read."""
    if row.metadata.annotations.get(PROXY) == ENVOY:
        return Proxy(envoy=True, inbound=0)
    containers = (*row.spec.init_containers, *row.spec.containers)
    sidecar = next((one for one in containers if one.name == SIDECAR), None)
    if sidecar is None:
        return None
    inbound = _listens(sidecar, _INBOUND)
    own = sorted(port for name in _OWN if (port := _listens(sidecar, name)))
    return Proxy(envoy=False, inbound=inbound, own=tuple(own)) if inbound else None


def _listens(container: Container, name: str) -> int:
    """The port of a listen address in the environment, `0.0.0.0:4143` or `[::]:4143`; else 0."""
    said = next((each.value for each in container.env if each.name == name), "")
    host, _, port = said.rpartition(":")
    fits = host and port.isascii() and port.isdecimal() and len(port) <= 5
    return int(port) if fits and 0 < int(port) <= 65535 else 0


# -------------------------------------------------------------------------------- owners

_JOB: Final = "k8s_job"
"""The label for a Job: Prometheus has its own `job`."""

_PARENTS: Final = ("Deployment", "StatefulSet", "DaemonSet", "Job")


@query
def owner(db: View, pod: ObjectKey) -> tuple[str, str] | None:
    """The metric label of the workload a pod is part of: (kind, name). None if not exactly one."""
    row = PODS.get(db, pod)
    direct = sole_owner(row.metadata) if row is not None else None
    if direct is None:
        return None
    above = _above(db, pod._replace(name=direct.name), direct.kind)
    return owner_label(above or direct)


def _above(db: View, key: ObjectKey, kind: str) -> OwnerReference | None:
    """Who controls the pod's owner, where that is what people call the workload."""
    match kind:
        case "ReplicaSet":
            found = replicaset_owner(db, key)
            return found if found is not None and found.kind in _PARENTS else None
        case "Job":
            return job_owner(db, key)
        case _:
            return None


@query
def replicaset_owner(db: View, key: ObjectKey) -> OwnerReference | None:
    """The one owner of a ReplicaSet."""
    row = REPLICASETS.get(db, key)
    return sole_owner(row.metadata) if row is not None else None


@query
def job_owner(db: View, key: ObjectKey) -> OwnerReference | None:
    """The one owner of a Job."""
    row = JOBS.get(db, key)
    return sole_owner(row.metadata) if row is not None else None


def sole_owner(meta: Meta) -> OwnerReference | None:
    """The owner, if there is exactly one."""
    return meta.owner_references[0] if len(meta.owner_references) == 1 else None


def owner_label(ref: OwnerReference) -> tuple[str, str]:
    """An owner as a metric label."""
    kind = ref.kind.lower()
    return (_JOB if kind == "job" else kind, ref.name)


# ----------------------------------------------------------------------------- endpoints


@query
def pod_endpoint(db: View, pod: ObjectKey, ip: str, port: int) -> Endpoint | None:
    """A port of a pod, dialled at `ip`; without zone. None if unknown, or its proxy unreadable."""
    facts = pod_facts(db, pod)
    if facts is None or not facts.readable:
        return None
    proxy = None if holds(facts.skipped, port) else facts.proxy
    identity = facts.identity if proxy is not None else ""
    session = opaque(db, OfPod(pod, port)) if proxy is not None else False
    return Endpoint(
        address=ip,
        port=port,
        node=facts.node,
        identity=Dns(identity) if identity else None,
        server_name=identity,
        reach=_reach(db, proxy, identity, port, session=session),
        speaks=_speaks(db, proxy, session=session),
        labels=facts.labels,
        meshed=proxy is not None,
        origin=Ref(pod.cluster, "", "Pod", pod.namespace, pod.name),
    )


def _speaks(db: View, proxy: Proxy | None, *, session: bool) -> Speaks:
    """What the pod's proxy understands; an Envoy does not undo linkerd's upgrade to HTTP/2."""
    if proxy is None:
        return Speaks.UNKNOWN
    if session:
        return Speaks.OPAQUE
    upgrades = settings(db).h2_upgrade and not proxy.envoy
    return Speaks.HTTP2 if upgrades else Speaks.UNKNOWN


def _reach(db: View, proxy: Proxy | None, identity: str, port: int, *, session: bool) -> Reach:
    takes_header = proxy is not None and proxy.inbound and port not in proxy.own
    if proxy is not None and takes_header and (session or settings(db).transport_header):
        return LinkerdOpaque(proxy.inbound)
    native = proxy is not None and proxy.envoy
    return Mesh(identity, native=native) if identity else Plain()


# ----------------------------------------------------------------------- small questions


class Life(StrEnum):
    """LIVE: not asked to end. LEAVING: asked to, still there. ENDED: its processes have."""

    LIVE = "live"
    LEAVING = "leaving"
    ENDED = "ended"


class PodState(NamedTuple):
    """How a pod is. `born` is when it was created, as text."""

    life: Life
    running: bool
    host_network: bool
    born: str


@query
def pod_state(db: View, pod: ObjectKey) -> PodState | None:
    """How a pod is, None if there is none."""
    row = PODS.get(db, pod)
    if row is None:
        return None
    life = Life.LEAVING if row.metadata.deletion_timestamp else Life.LIVE
    life = Life.ENDED if row.status.phase in ("Succeeded", "Failed") else life
    running = row.status.phase == "Running"
    return PodState(life, running, row.spec.host_network, row.metadata.creation_timestamp)


@query
def pod_node(db: View, pod: ObjectKey) -> str | None:
    """The node of a pod, "" before it has one; None if there is no such pod."""
    row = PODS.get(db, pod)
    return row.spec.node_name if row is not None else None


@query
def pod_ips(db: View, pod: ObjectKey) -> tuple[str, ...]:
    """The addresses a pod says it has, the first one first."""
    row = PODS.get(db, pod)
    return row.status.ips if row is not None else ()


@query
def zone_of(db: View, node: ObjectKey) -> str:
    """The zone of a node, "" if unknown."""
    row = NODES.get(db, node)
    return row.metadata.labels.get(ZONE, "") if row is not None else ""
