"""What of a Service's annotations means nothing, or is not done by proxies: in its conditions.

isthmus.dev/Annotations  False names annotations that are not understood
isthmus.dev/AppProtocol  False names ports whose protocol nobody knows: they are opaque (decision 2)
isthmus.dev/Supported    False names what proxies in scope will not do as it is written

All are there only while they have something to say. Shares of federated Services are told by
their own controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.controllers.conditions import Says, update
from isthmus.controllers.route_faults import parent_faults
from isthmus.controllers.saying import listed, supported
from isthmus.controllers.steps import Plan
from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.census import Place
from isthmus.mesh.mirrors import mirrored
from isthmus.mesh.opaque import DECLARED
from isthmus.mesh.tables import SERVICES
from isthmus.model.annotations import parent_warnings
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey

ANNOTATIONS: Final = "isthmus.dev/Annotations"
SUPPORTED: Final = "isthmus.dev/Supported"
APP_PROTOCOL: Final = "isthmus.dev/AppProtocol"
OURS: Final = (ANNOTATIONS, APP_PROTOCOL, SUPPORTED)

OPAQUE: Final = ("linkerd.io/tcp", "linkerd.io/opaque")
"""Protocols that ask for what an unknown one gets."""

_ASKING: Final = (
    "balancer.linkerd.io/",
    "balancer.alpha.linkerd.io/",
    "retry.linkerd.io/",
    "timeout.linkerd.io/",
    "config.linkerd.io/opaque-ports",
)
"""What the annotations begin with by which a Service asks proxies for something."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Service of a namespace."""
    return SERVICES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Say what is not said yet, and take back what is not so any more."""
    row = SERVICES.get(db, key)
    if row is None or row.metadata.deletion_timestamp:
        return ()
    wanted = tuple(_says(db, key, row))
    return update("services", key, row, row.status.conditions, wanted, OURS)


def _known(said: str) -> bool:
    return not said or said.lower() in DECLARED or said.lower() in OPAQUE


def _says(db: View, key: ObjectKey, row: Service) -> Iterator[Says]:
    asks = any(name.startswith(_ASKING) for name in row.metadata.annotations)
    wrong = list(parent_warnings(row.metadata.annotations)) if asks else []
    if wrong:
        yield Says(ANNOTATIONS, False, "Invalid", listed(wrong))
    if strange := [each for each in row.spec.ports if not _known(each.app_protocol)]:
        told = [f"port {each.port}: {each.app_protocol!r} is taken as opaque" for each in strange]
        yield Says(APP_PROTOCOL, False, "UnknownProtocol", listed(told))
    if asks or mirrored(db, key) is not None:
        mine = Ref(key.cluster, "", "Service", key.namespace, key.name)
        for one in supported(parent_faults(db, mine)):
            yield one._replace(type=SUPPORTED)
