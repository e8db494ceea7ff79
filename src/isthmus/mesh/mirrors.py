"""Mirrors through gateways: which Service of a linked cluster a local one stands for."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.candidates import MIRROR_CLUSTER, REMOTE_NAME
from isthmus.mesh.clusters import cluster
from isthmus.mesh.services import REMOTE_CLUSTER
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICES
from isthmus.model.key import ObjectKey

MIRRORED: Final = "mirror.linkerd.io/mirrored-service"


class Mirrored(msgspec.Struct, frozen=True):
    """What a mirror stands for: a Service of a linked cluster, behind that cluster's gateway."""

    service: ObjectKey


@query
def mirrored(db: View, service: ObjectKey) -> Mirrored | None:
    """What a Service stands for; None for all that is no mirror through a gateway.

    Labels and annotations say it, never the name: `a-b` of `c` and `a` of `b-c` look alike.
    """
    row = SERVICES.get(db, service)
    if row is None or service.cluster != settings(db).cluster:
        return None
    labels, said = row.metadata.labels, row.metadata.annotations.get(REMOTE_NAME, "")
    home = labels.get(MIRROR_CLUSTER, "")
    if labels.get(MIRRORED) != "true" or not home or REMOTE_CLUSTER in labels:
        return None
    match said.split("."):
        case [name, namespace, "svc", _, *_] if name and namespace == service.namespace:
            return Mirrored(ObjectKey(home, namespace, name))
    return None


def mirror_of(db: View, remote: ObjectKey) -> ObjectKey:
    """Where the mirror of a linked cluster's Service is, if there is one."""
    name = f"{remote.name}-{remote.cluster}"
    return ObjectKey(settings(db).cluster, remote.namespace, name)


@query
def own_name(db: View, name: str) -> str:
    """What a linked cluster calls itself: its gateways know it by that name."""
    home = cluster(db, name)
    return (home.own_name if home is not None else "") or name
