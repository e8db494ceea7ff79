"""What the statuses of routes and policies say now.

For the controllers that write them: no query of the mesh's meaning reads it (decision 14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.engine import Table
from isthmus.mesh.routes import ROUTE_SOURCES
from isthmus.mesh.tables import Source
from isthmus.model.key import ObjectKey
from isthmus.model.reported import Reported, ReportedLimit, ReportedRoute

_LIMITS: Final = "httplocalratelimitpolicies.policy.linkerd.io"

ROUTE_STATUS: Final[Mapping[str, Table[ObjectKey, ReportedRoute]]] = {
    resource: Table(f"{source.table.name}_status") for resource, source in ROUTE_SOURCES.items()
}
"""By the resource part of store keys."""

POLICY_STATUS: Final[Mapping[str, Table[ObjectKey, Reported]]] = {
    f"{name}.policy.linkerd.io": Table(f"{name}_status")
    for name in (
        "authorizationpolicies",
        "egressnetworks",
        "httplocalratelimitpolicies",
        "meshtlsauthentications",
        "networkauthentications",
        "serverauthorizations",
        "servers",
    )
}
"""By the resource part of store keys."""


def _source(table: Table[ObjectKey, Any], row: type[msgspec.Struct]) -> Source:
    return Source(table, msgspec.json.Decoder(row).decode)


STATUS_SOURCES: Final[Mapping[str, Source]] = {
    **{name: _source(table, ReportedRoute) for name, table in ROUTE_STATUS.items()},
    **{
        name: _source(table, ReportedLimit if name == _LIMITS else Reported)
        for name, table in POLICY_STATUS.items()
    },
}
"""The second tables of these resources."""
