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
HOST_OF: Final = "mirror.linkerd.io/headless-mirror-svc-name"
"""The label of the mirror of one host: whose."""


class Mirrored(msgspec.Struct, frozen=True):
    """What a mirror stands for: a Service of a linked cluster, behind that cluster's gateway.

    `host` is the one endpoint of a headless Service that is meant, "" for all of a Service.
    """

    service: ObjectKey
    host: str = ""


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
        case [host, name, namespace, "svc", _, *_] if host and name:
            own = namespace == service.namespace and HOST_OF in labels
            return Mirrored(ObjectKey(home, namespace, name), host) if own else None
    return None


def mirror_of(db: View, remote: ObjectKey, host: str) -> ObjectKey:
    """Where the mirror of a linked cluster's Service is, or of one host of it, if there is one."""
    name = f"{host or remote.name}-{remote.cluster}"
    return ObjectKey(settings(db).cluster, remote.namespace, name)


@query
def own_name(db: View, name: str) -> str:
    """What a linked cluster calls itself: its gateways know it by that name."""
    home = cluster(db, name)
    return (home.own_name if home is not None else "") or name
