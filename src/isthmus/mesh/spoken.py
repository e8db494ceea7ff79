"""Which dialects are spoken where: what a dialect cannot say matters only to those who speak it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from isthmus.engine import Index, View, query
from isthmus.ir.names import Ref
from isthmus.mesh.census import Place
from isthmus.mesh.pods import CONTROL_PLANE, ENVOY, PROXY, SIDECAR
from isthmus.mesh.tables import NAMESPACES, PODS
from isthmus.mesh.workloads import is_pod, workload_key
from isthmus.model.core import Pod
from isthmus.model.key import ObjectKey

PROXYLESS: Final = "config.isthmus.dev/proxyless"
"""The annotation of pods whose gRPC is told itself."""
LINKERD: Final = "linkerd"
GRPC: Final = "grpc"
DIALECTS: Final = (ENVOY, GRPC, LINKERD)


class Speakers(NamedTuple):
    """The pods of a namespace that are told in a dialect."""

    cluster: str
    namespace: str
    dialect: str


def _dialects(row: Pod) -> Iterable[str]:
    notes = row.metadata.annotations
    if PROXYLESS in notes:
        yield GRPC
    if CONTROL_PLANE not in row.metadata.labels:
        return
    if notes.get(PROXY) == ENVOY:
        yield ENVOY
    elif any(one.name == SIDECAR for one in (*row.spec.init_containers, *row.spec.containers)):
        yield LINKERD


def _speakers(key: ObjectKey, row: Pod) -> Iterable[Speakers]:
    return (Speakers(key.cluster, key.namespace, each) for each in _dialects(row))


_PODS_BY_DIALECT: Index[ObjectKey, Pod, Speakers] = Index("pods_by_dialect", PODS, _speakers)


@query
def spoken_in(db: View, where: Place) -> tuple[str, ...]:
    """The dialects of a namespace's pods, sorted."""
    return tuple(each for each in DIALECTS if _PODS_BY_DIALECT.get(db, Speakers(*where, each)))


@query
def spoken(db: View, cluster: str) -> tuple[str, ...]:
    """The dialects of a cluster's pods, sorted."""
    found: set[str] = set()
    for key in NAMESPACES.names(db, Place(cluster, "")):
        found.update(spoken_in(db, Place(cluster, key.name)))
        if len(found) == len(DIALECTS):
            break
    return tuple(sorted(found))


@query
def spoken_by(db: View, workload: Ref) -> tuple[str, ...]:
    """The dialects that a workload is told in. Of machines outside the cluster nobody knows."""
    row = PODS.get(db, workload_key(workload)) if is_pod(workload) else None
    return tuple(sorted(_dialects(row))) if row is not None else ()
