"""Links: the clusters that this one takes services from, and how each connection fares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from isthmus.engine import Index, Table
from isthmus.mesh.tables import Source, place
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import Link, ReportedLink

LINKS: Table[ObjectKey, Link] = Table("links", scope=place)
LISTED: Final = frozenset({"links"})
"""The tables here whose names may be listed: a controller attends them object by object."""


class Reached(StrEnum):
    """How far the connection to a linked cluster came.

    REFUSED: credentials that are missing, junk, expired or not allowed. CONNECTING: not synced
    yet. SYNCED: its objects are in the tables and up to date. STALE: they are there, and its API
    is silent. DEAD: silent, and nobody answers behind it either (decision 18).
    """

    REFUSED = "refused"
    CONNECTING = "connecting"
    SYNCED = "synced"
    STALE = "stale"
    DEAD = "dead"

    __hash__ = str.__hash__  # members of keys: an enum's own is a Python function


class LinkHealth(msgspec.Struct, frozen=True):
    """What is known of the connection of one Link.

    `since` is when this state began (RFC 3339), `reason` a CamelCase word, `message` for people.
    `gateway_alive` is what the gateway's probes say, None where the link has no gateway or nothing
    was probed yet.
    """

    state: Reached
    since: str = ""
    reason: str = ""
    message: str = ""
    gateway_alive: bool | None = None


LINK_HEALTH: Table[ObjectKey, LinkHealth] = Table("link_health")
"""By Link; no store holds it: the watchers of links commit it."""


def _target(key: ObjectKey, row: Link) -> Iterable[tuple[str, str]]:
    name = row.spec.target_cluster_name
    return ((key.cluster, name),) if name else ()


LINKS_BY_CLUSTER: Index[ObjectKey, Link, tuple[str, str]] = Index(
    "links_by_cluster", LINKS, _target
)
"""By (our cluster, the name of the linked one): several may claim one name."""

LINK_STATUS: Table[ObjectKey, ReportedLink] = Table("link_status")
"""What Links say of themselves: apart, since every report would touch all that reads a Link."""

LINK_SOURCES: Final[Mapping[str, Source]] = {
    "links.multicluster.linkerd.io": Source(LINKS, msgspec.json.Decoder(Link).decode)
}
"""By the resource part of store keys."""

LINK_STATUS_SOURCES: Final[Mapping[str, Source]] = {
    "links.multicluster.linkerd.io": Source(LINK_STATUS, msgspec.json.Decoder(ReportedLink).decode)
}
