"""The apps API group, v1: workloads as pods from a template."""

from isthmus.model.apps.common import RollingUpdate, Strategy
from isthmus.model.apps.deployment import DEPLOYMENT, Deployment
from isthmus.model.apps.replicaset import (
    CONTROLLER_REVISION,
    REPLICA_SET,
    ControllerRevision,
    ReplicaSet,
)
from isthmus.model.apps.statefulset import STATEFUL_SET, StatefulSet
from isthmus.model.kind import Kind

KINDS: tuple[Kind, ...] = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, CONTROLLER_REVISION)

__all__ = [
    "CONTROLLER_REVISION",
    "DEPLOYMENT",
    "KINDS",
    "REPLICA_SET",
    "STATEFUL_SET",
    "ControllerRevision",
    "Deployment",
    "ReplicaSet",
    "RollingUpdate",
    "StatefulSet",
    "Strategy",
]
