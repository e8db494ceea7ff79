"""ExternalWorkloads as endpoints: machines outside every cluster that run a mesh proxy."""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Mesh, Plain, Reach, Speaks
from isthmus.ir.names import Dns, Identity, Ref, Spiffe
from isthmus.mesh.opaque import OfWorkload, opaque
from isthmus.mesh.pods import SIDECAR, owner_label, sole_owner
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS
from isthmus.mesh.settings import settings
from isthmus.model.key import ObjectKey
from isthmus.model.workload import ExternalWorkload

_GROUP: Final = "workload.linkerd.io"
_INBOUND: Final = 4143
"""Where a workload's proxy listens if none of its ports is named `linkerd-proxy`."""

_SPIFFE: Final = "spiffe://"


@query
def workload_known(db: View, workload: ObjectKey) -> bool:
    """Whether there is such a workload."""
    return EXTERNAL_WORKLOADS.get(db, workload) is not None


@query
def workload_endpoint(db: View, workload: ObjectKey, ip: str, port: int) -> Endpoint | None:
    """A port of a workload, dialled at `ip`; without zone. None if there is no such workload."""
    row = EXTERNAL_WORKLOADS.get(db, workload)
    if row is None:
        return None
    session = opaque(db, OfWorkload(workload, port))
    tls = row.spec.mesh_tls
    return Endpoint(
        address=ip,
        port=port,
        identity=parse_identity(tls.identity),
        server_name=tls.server_name,
        reach=_reach(db, row, session=session),
        speaks=Speaks.OPAQUE if session else Speaks.HTTP2,
        labels=_labels(workload, row),
        meshed=True,
        origin=Ref(workload.cluster, _GROUP, "ExternalWorkload", workload.namespace, workload.name),
    )


def _labels(workload: ObjectKey, row: ExternalWorkload) -> tuple[tuple[str, str], ...]:
    above = sole_owner(row.metadata)
    found = dict([owner_label(above)]) if above is not None else {}
    return tuple(sorted((found | {"external_workload": workload.name}).items()))


def _reach(db: View, row: ExternalWorkload, *, session: bool) -> Reach:
    if session or settings(db).transport_header:
        named = (port.port for port in row.spec.ports if port.name == SIDECAR)
        return LinkerdOpaque(next(named, _INBOUND))
    return Mesh(row.spec.mesh_tls.server_name) if row.spec.mesh_tls.identity else Plain()


def parse_identity(text: str) -> Identity | None:
    """A SPIFFE id or a DNS name; None for no text."""
    if not text.startswith(_SPIFFE):
        return Dns(text) if text else None
    domain, *path = text.removeprefix(_SPIFFE).split("/")
    return Spiffe(domain, tuple(path))
