"""Which cells hold what a gRPC process is told. It names what it wants: nothing is a wildcard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.dialects.grpc import clients, servers
from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.queries import Place, node_of, proxy_view
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES

Cell = tuple[Any, ...]

LONGEST: Final = 2048
"""Characters of a name that may mean something."""


class Asker(msgspec.Struct, frozen=True):
    """A gRPC process of a workload, and the node it is on ("" where there is none)."""

    workload: Ref
    node: str = ""


class GrpcView(msgspec.Struct, frozen=True):
    """What a gRPC process may ask for: whatever there is. `scope` is for people."""

    scope: tuple[str, ...]

    @property
    def types(self) -> Mapping[str, tuple[str, ...] | None]:
        """Every type, by name."""
        return dict.fromkeys((CLUSTER, ENDPOINTS, LISTENER, ROUTES))


@query
def asker(db: View, workload: Ref) -> Asker:
    """The class of the gRPC processes of a workload."""
    return Asker(workload, node_of(db, workload))


@query
def grpc_view(db: View, workload: Ref) -> GrpcView | None:
    """What a gRPC process of a workload may ask for; None while the workload is not known."""
    found = proxy_view(db, workload)
    return GrpcView(found.scope) if found is not None else None


class GrpcDialect:
    """What the xDS surface is handed for gRPC's own clients and servers."""

    name: Final = "grpc"

    def view_query(self, asker: Asker, /) -> Cell:
        """The cell of its view."""
        return (grpc_view, asker.workload)

    def resource_query(self, asker: Asker, type_url: str, name: str, /) -> Cell | None:
        """The cell of a resource; None for a name that cannot be one."""
        if len(name) > LONGEST:
            return None
        match type_url:
            case _ if type_url == LISTENER:
                return _listener(asker, name)
            case _ if type_url == ROUTES:
                return (clients.client_routes, _place(asker), name)
            case _ if type_url == CLUSTER:
                return (clients.client_cluster, name)
            case _ if type_url == ENDPOINTS:
                return (clients.client_assignment, name, asker.node)
        return None


def _listener(asker: Asker, name: str) -> Cell:
    where = servers.listens(name)
    if where is not None:
        return (servers.server_listener, asker.workload, name, *where)
    return (clients.client_listener, _place(asker), name)


def _place(asker: Asker) -> Place:
    return Place(asker.workload.cluster, asker.workload.namespace)
