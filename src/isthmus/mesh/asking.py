"""Workloads as their proxies name themselves when they ask for policies."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.pods import CONTROL_PLANE
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS
from isthmus.mesh.tables import PODS
from isthmus.mesh.workloads import external_ref, is_pod, pod_ref, workload_key
from isthmus.model.key import ObjectKey

LONGEST: Final = 1024
"""Characters of a name that may mean something."""


class _Written(msgspec.Struct, frozen=True):
    """The name as injectors write it; exactly one of the last two."""

    ns: str
    pod: str = ""
    external_workload: str = ""


def parse_workload(text: str, cluster: str) -> Ref | None:
    """`{"ns":"shop","pod":"cart-a"}`, the same with `external_workload`, or `shop:cart-a`."""
    if len(text) > LONGEST:
        return None
    if text.lstrip().startswith("{"):
        return _from_json(text, cluster)
    namespace, colon, pod = text.partition(":")
    if not colon or not namespace or not pod:
        return None
    return pod_ref(ObjectKey(cluster, namespace, pod))


def _from_json(text: str, cluster: str) -> Ref | None:
    try:
        written = msgspec.json.decode(text, type=_Written)
    except msgspec.MsgspecError:
        return None
    if not written.ns or bool(written.pod) == bool(written.external_workload):
        return None
    if written.pod:
        return pod_ref(ObjectKey(cluster, written.ns, written.pod))
    return external_ref(ObjectKey(cluster, written.ns, written.external_workload))


@query
def has_policy(db: View, workload: Ref) -> bool:
    """Whether a workload is there and meshed; of others nothing is said."""
    key = workload_key(workload)
    if not is_pod(workload):
        return EXTERNAL_WORKLOADS.get(db, key) is not None
    pod = PODS.get(db, key)
    return pod is not None and CONTROL_PLANE in pod.metadata.labels
