"""What proxies reject at present, by the object that it comes from: for conditions.

History, in a way: a resource that a proxy rejects keeps its last good version there, and only the
proxy can say so (decision 15). Nothing but conditions is made of it.
"""

from __future__ import annotations

import msgspec

from isthmus.engine import Table
from isthmus.mesh.census import CensusKey, Place


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """A resource that some proxies do not take, in one of their words. `proxies` are sorted."""

    type: str
    """The short name of the message: Cluster, Listener, ..."""
    name: str
    message: str
    proxies: tuple[str, ...]


def _place(key: CensusKey) -> Place:
    return Place(key.cluster, key.namespace)


REJECTIONS: Table[CensusKey, tuple[Rejection, ...]] = Table("rejections", scope=_place)
"""By the guilty object, sorted; no store holds it: the xDS surface's streams know."""

LISTED = frozenset({"rejections"})
"""The tables here whose names may be listed: a controller attends them object by object."""
