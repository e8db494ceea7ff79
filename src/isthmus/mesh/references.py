"""Whether what a route refers to is there, and which of its parts are not understood.

For conditions only: a route whose references do not resolve is served, and the share of the traffic
that is theirs is refused (decision 15).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.attachment import parent_ref
from isthmus.mesh.destinations import reference_kind
from isthmus.mesh.egress import EGRESS_NETWORKS, network_ref
from isthmus.mesh.limits import is_status
from isthmus.mesh.matches import Fault, filter_faults, host_faults, match_faults
from isthmus.mesh.routes import BY_KIND, SERVICE, key_of, parents
from isthmus.mesh.routing import rule_path
from isthmus.mesh.tables import SERVICES
from isthmus.model.annotations import grpc_retry, http_retry, timeouts
from isthmus.model.annotations.grammar import Problem
from isthmus.model.gateway import BackendRef, GrpcRule, HttpRule
from isthmus.model.gateway.views import MirrorRef
from isthmus.model.key import ObjectKey

RESOLVED: Final = "ResolvedRefs"
NOT_FOUND: Final = "BackendNotFound"
INVALID_KIND: Final = "InvalidKind"

OUT_OF_PLACE: Final = (
    "EgressNetwork backend needs to be on a route that has an EgressNetwork parent"
)

Reference = BackendRef | MirrorRef


class Resolution(msgspec.Struct, frozen=True):
    """What the condition ResolvedRefs says: the first reference that leads nowhere decides."""

    resolved: bool
    reason: str = RESOLVED
    message: str = ""


@query
def resolution(db: View, route: Ref) -> Resolution:
    """Whether all that a route sends to is there. Ports and endpoints are not asked for."""
    row = _row(db, route)
    for ref in _references(row) if row is not None else ():
        found = _resolved(db, route, ref)
        if not found.resolved:
            return found
    return Resolution(resolved=True)


def _row(db: View, route: Ref) -> Any:  # noqa: ANN401  # a route of any kind
    return BY_KIND[route.group, route.kind].table.get(db, key_of(route))


def _references(row: Any) -> Iterator[Reference]:  # noqa: ANN401  # a route of any kind
    for rule in row.spec.rules:
        yield from rule.backend_refs
        for each in getattr(rule, "filters", ()):
            if each.request_mirror is not None:
                yield each.request_mirror.backend_ref


def _resolved(db: View, route: Ref, ref: Reference) -> Resolution:
    key = ObjectKey(route.cluster, ref.namespace or route.namespace, ref.name)
    match reference_kind(ref.group, ref.kind):
        case "Service":
            there = SERVICES.get(db, key) is not None
        case "EgressNetwork":
            there = EGRESS_NETWORKS.get(db, key) is not None
            own = {parent_ref(each) for each in parents(db, route)}
            if there and network_ref(key) not in own:
                return Resolution(resolved=False, reason=INVALID_KIND, message=OUT_OF_PLACE)
        case _:
            return Resolution(resolved=False, reason=INVALID_KIND)
    if there:
        return Resolution(resolved=True)
    said = f"{ref.kind or SERVICE} {key.namespace}/{key.name} was not found"
    return Resolution(resolved=False, reason=NOT_FOUND, message=said)


@query
def route_faults(db: View, route: Ref) -> tuple[Fault, ...]:
    """The parts of a route that are not understood or cannot be done, in its order."""
    row = _row(db, route)
    return tuple(_faults(route, row)) if row is not None else ()


def _faults(route: Ref, row: Any) -> Iterator[Fault]:  # noqa: ANN401  # a route of any kind
    notes = row.metadata.annotations
    retry = grpc_retry if route.kind == "GRPCRoute" else http_retry
    for found in (timeouts(notes), retry(notes)):
        if isinstance(found, Problem):
            yield Fault(f"metadata.annotations[{found.key}]", found.why)
    yield from host_faults(getattr(row.spec, "hostnames", ()), "spec.hostnames")
    for at, rule in enumerate(row.spec.rules):
        path = f"spec.{rule_path(at)}"
        if isinstance(rule, HttpRule | GrpcRule):
            yield from match_faults(rule, path)
            yield from filter_faults(rule.filters, f"{path}.filters")
            yield from _retry_faults(rule, path)
        elif at:
            yield Fault(path, "only the first rule counts")
        for number, ref in enumerate(rule.backend_refs):
            yield from filter_faults(ref.filters, f"{path}.backendRefs[{number}].filters")


def _retry_faults(rule: HttpRule | GrpcRule, path: str) -> Iterator[Fault]:
    retry = rule.retry if isinstance(rule, HttpRule) else None
    for at, code in enumerate(retry.codes if retry is not None else ()):
        if not is_status(code):
            yield Fault(f"{path}.retry.codes[{at}]", f"{code} is no status")
