"""What is known of each cluster: the local one from the settings, linked ones from their links."""

from __future__ import annotations

import msgspec

from isthmus.engine import Table, View, query
from isthmus.mesh.settings import settings


class Cluster(msgspec.Struct, frozen=True):
    """A cluster whose objects are in the tables.

    `own_name` is what it calls itself, "" if that is how we call it. `usable` is False once it is
    known to be dead (decision 18): its endpoints are left out.
    """

    trust_domain: str
    cluster_domain: str
    control_plane_namespace: str = ""
    own_name: str = ""
    usable: bool = True


LINKED: Table[str, Cluster] = Table("linked_clusters")
"""Clusters that a link leads to and whose first sync is done; no row means unknown."""


@query
def cluster(db: View, name: str) -> Cluster | None:
    """The cluster of this name, None if nobody linked it."""
    ours = settings(db)
    if name == ours.cluster:
        return Cluster(ours.trust_domain, ours.cluster_domain)
    return LINKED.get(db, name)


@query
def is_local(db: View, name: str) -> bool:
    """Whether a cluster is the one that this server is part of."""
    return name == settings(db).cluster
