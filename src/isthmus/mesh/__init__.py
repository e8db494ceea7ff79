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
    asked     keys of answers: what is asked for, and the class of who asks
    subject   who is meant by a host: a Service, a pod, a workload, nobody
    candidate an address of a slice; a member is a candidate that a class of askers sees
    meaning   what an object says once its invalid parts are left out as faults

`queries` is the one module that dialects read.
"""

from collections.abc import Mapping
from typing import Final

from isthmus.mesh.accounts import ACCOUNT_SOURCES
from isthmus.mesh.census import CENSUS, CensusKey, facts
from isthmus.mesh.credentials import CREDENTIAL_SOURCES
from isthmus.mesh.egress import EGRESS_SOURCES
from isthmus.mesh.links import LINK_SOURCES, LINK_STATUS_SOURCES
from isthmus.mesh.policy_tables import POLICY_SOURCES
from isthmus.mesh.rbac import RBAC_SOURCES
from isthmus.mesh.reported import STATUS_SOURCES
from isthmus.mesh.routes import ROUTE_SOURCES
from isthmus.mesh.tables import SOURCES as _CORE_SOURCES
from isthmus.mesh.tables import Source

SOURCES: Final[Mapping[str, Source]] = {
    **_CORE_SOURCES,
    **POLICY_SOURCES,
    **ROUTE_SOURCES,
    **EGRESS_SOURCES,
    **RBAC_SOURCES,
    **ACCOUNT_SOURCES,
    **LINK_SOURCES,
}
"""Which table the objects of a resource go to, by the resource part of store keys."""

ALSO: Final[Mapping[str, Source]] = {
    **CREDENTIAL_SOURCES,
    **LINK_STATUS_SOURCES,
    **STATUS_SOURCES,
}
"""A second table for some resources."""

__all__ = ["ALSO", "CENSUS", "SOURCES", "CensusKey", "Source", "facts"]
