"""Meaning: from objects to what proxies, controllers and other clusters need to know.

What it is: tables of facts, indexes and joins over them, and pure queries. What it is not: it waits
for nothing, writes nothing, knows no wire and no store. Every value is a function of the tables.

Its words:
    row       the facts of one object; an object that only changed its heartbeat has an equal row
    table     rows of one kind in all clusters, keyed by (cluster, namespace, name)
    index     row keys filed under what the row says: Pods by IP, slices by Service
    join      selectors on one side, labelled objects on the other
    source    which resource of a store fills which table
    census    what every object of every kind has: owners, finalizers, whether it is going
"""

from collections.abc import Mapping
from typing import Final

from isthmus.mesh.accounts import ACCOUNT_SOURCES
from isthmus.mesh.census import CENSUS, CensusKey, facts
from isthmus.mesh.policy_tables import POLICY_SOURCES
from isthmus.mesh.rbac import RBAC_SOURCES
from isthmus.mesh.routes import ROUTE_SOURCES
from isthmus.mesh.tables import SOURCES as _CORE_SOURCES
from isthmus.mesh.tables import Source

SOURCES: Final[Mapping[str, Source]] = {
    **_CORE_SOURCES,
    **POLICY_SOURCES,
    **ROUTE_SOURCES,
    **RBAC_SOURCES,
    **ACCOUNT_SOURCES,
}
"""Which table the objects of a resource go to, by the resource part of store keys."""

__all__ = ["CENSUS", "SOURCES", "CensusKey", "Source", "facts"]
