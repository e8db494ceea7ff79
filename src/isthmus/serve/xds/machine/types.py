"""The types of resources, and what is different about each: a table, read by everything else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

_PREFIX: Final = "type.googleapis.com/envoy."

SECRET: Final = _PREFIX + "extensions.transport_sockets.tls.v3.Secret"
CLUSTER: Final = _PREFIX + "config.cluster.v3.Cluster"
ENDPOINTS: Final = _PREFIX + "config.endpoint.v3.ClusterLoadAssignment"
LISTENER: Final = _PREFIX + "config.listener.v3.Listener"
ROUTES: Final = _PREFIX + "config.route.v3.RouteConfiguration"


class Absent(Enum):
    """What a proxy is told of a name it asked for, or holds, that does not exist."""

    REMOVED = "removed"
    """`removed_resources`; in the state of the world, missing from a whole set."""
    EMPTY = "empty"
    """An assignment without endpoints: a removal would be ignored, and silence waited for."""
    SILENT = "silent"
    """Nothing: a removal would make a listener that waits for its routes wait for ever."""


class Kind(NamedTuple):
    """One type of resource."""

    rank: int
    """Order within one pass: what is referred to goes first."""
    absent: Absent
    whole: bool = False
    """A state-of-the-world response holds every resource; what is missing is gone."""
    wild: bool = False
    """A first request without names means all."""
    gated: bool = False
    """Sends to clusters, so it waits for them."""
    child: str = ""
    """A change makes the proxy forget the resource of the same name of this type."""


KINDS: Final[Mapping[str, Kind]] = {
    SECRET: Kind(0, Absent.REMOVED),
    CLUSTER: Kind(1, Absent.REMOVED, whole=True, wild=True, child=ENDPOINTS),
    ENDPOINTS: Kind(2, Absent.EMPTY),
    LISTENER: Kind(3, Absent.REMOVED, whole=True, wild=True, gated=True, child=ROUTES),
    ROUTES: Kind(4, Absent.SILENT, gated=True),
}
OTHER: Final = Kind(5, Absent.REMOVED)


def kind_of(type_url: str) -> Kind:
    """The line of the table; of a type we never heard of, the last."""
    return KINDS.get(type_url, OTHER)
