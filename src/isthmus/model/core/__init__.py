"""The core API group, v1: a module for each kind, larger ones with their rules beside them."""

from isthmus.model.core.config import (
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    ConfigMap,
    Secret,
    ServiceAccount,
)
from isthmus.model.core.endpoints import ENDPOINTS, Endpoints
from isthmus.model.core.event import EVENT, Event
from isthmus.model.core.namespace import NAMESPACE, Namespace
from isthmus.model.core.node import NODE, Node
from isthmus.model.core.pod import POD, Container, Pod
from isthmus.model.core.service import SERVICE, Service, ServicePort
from isthmus.model.kind import Kind

KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    SERVICE,
    ENDPOINTS,
    POD,
    SERVICE_ACCOUNT,
    CONFIG_MAP,
    SECRET,
    NODE,
    EVENT,
)

__all__ = [
    "CONFIG_MAP",
    "ENDPOINTS",
    "EVENT",
    "KINDS",
    "NAMESPACE",
    "NODE",
    "POD",
    "SECRET",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "ConfigMap",
    "Container",
    "Endpoints",
    "Event",
    "Namespace",
    "Node",
    "Pod",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServicePort",
]
