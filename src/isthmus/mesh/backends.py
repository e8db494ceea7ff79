"""Backends: what requests for a Service's port are spread over.

A plain Service is one target. A federated one is the union of its members' endpoints, unless it
says what share each member has.
"""

from __future__ import annotations

from isthmus.engine import View, query
from isthmus.ir.names import Origin, Ref
from isthmus.ir.target import To
from isthmus.mesh.targets import target, target_id
from isthmus.model.key import ObjectKey


@query
def service_backends(db: View, service: ObjectKey, port: int) -> tuple[To, ...]:
    """Where requests for a Service's port go; weights count among themselves only."""
    parent = Ref(service.cluster, "", "Service", service.namespace, service.name)
    return (To(target(db, target_id(service, port)), Origin(parent, port=port)),)
