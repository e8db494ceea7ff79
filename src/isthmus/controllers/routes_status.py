"""The status of routes: what each parent made of a route (Linkerd's statuses, decision 8).

Accepted          whether the parent takes it
ResolvedRefs      whether all that it sends to is there; not said at Servers
PartiallyInvalid  True names the parts that mean nothing or answer for themselves
RawPathMatching   True: proxies compare paths as they were sent
Supported         False names what proxies in scope will not do as it is written

The last three are there only while they have something to say. Entries of other controllers stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from isthmus.controllers.conditions import Says
from isthmus.controllers.merge import PARENTS, PARENTS_HELD
from isthmus.controllers.route_faults import faults_at, server_faults
from isthmus.controllers.saying import MOST, listed, supported
from isthmus.controllers.steps import JSON, Plan, Update, canonical
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Ref
from isthmus.mesh.attachment import ACCEPTED, NO_PARENT, acceptance
from isthmus.mesh.census import CensusKey, Place
from isthmus.mesh.inbound_routes import (
    inbound_route_faults,
    refused_by_server,
    route_age,
)
from isthmus.mesh.matches import Fault
from isthmus.mesh.references import resolution, route_faults
from isthmus.mesh.reported import ROUTE_STATUS
from isthmus.mesh.routes import (
    ALL,
    EGRESS_NETWORK,
    POLICY_API,
    ROUTE_SOURCES,
    SERVER,
    SERVICE,
    ParentPort,
    Routes,
    parents,
    service_key,
)
from isthmus.model.key import ObjectKey
from isthmus.model.meta import CountedCondition
from isthmus.model.reported import RouteParent

CONTROLLER: Final = "linkerd.io/policy-controller"
"""Whose entries are ours (decision 25: the facts' name where they have one)."""

REST: Final = 0.2
"""Seconds between two writes of one status."""

_KINDS: Final[Mapping[str, Routes]] = {
    resource: kind
    for resource, source in ROUTE_SOURCES.items()
    for kind in ALL
    if kind.table is source.table
}
_KNOWN: Final = {("", SERVICE), (POLICY_API, EGRESS_NETWORK), (POLICY_API, SERVER)}


class Entry(NamedTuple):
    """What is said of one parent."""

    ref: ParentPort
    says: tuple[Says, ...]


@query
def keys(db: View, where: Place) -> tuple[CensusKey, ...]:
    """Every route of a namespace."""
    return tuple(
        CensusKey(key.cluster, resource, key.namespace, key.name)
        for resource in sorted(_KINDS)
        for key in _KINDS[resource].table.names(db, where)
    )


@query
def plan(db: View, key: CensusKey) -> Plan:
    """Say what is not said yet, and take back what is not so any more."""
    kind, at = _KINDS[key.resource], ObjectKey(key.cluster, key.namespace, key.name)
    row, said = kind.table.get(db, at), ROUTE_STATUS[key.resource].get(db, at)
    if row is None or said is None or row.metadata.deletion_timestamp:
        return ()
    generation = said.metadata.generation
    ours = [one for one in said.status.parents if one.controller_name == CONTROLLER]
    room = max(0, PARENTS_HELD - (len(said.status.parents) - len(ours)))
    wanted = [_document(one, generation) for one in entries(db, kind.ref(at))[:room]]
    if sorted(map(canonical, map(_held, ours))) == sorted(map(canonical, wanted)):
        return ()
    merge = canonical({"status": {PARENTS: {CONTROLLER: wanted}}})
    return (Update(key.resource, key.namespace, key.name, row.metadata.uid, merge, "status"),)


# ---------------------------------------------------------------------------------- entries


@query
def entries(db: View, route: Ref) -> tuple[Entry, ...]:
    """One entry for each parent of a kind that is ours, in the route's order, each once."""
    known = [one for one in parents(db, route) if (one.group, one.kind) in _KNOWN]
    return tuple(Entry(ref, tuple(_says(db, route, ref))) for ref in dict.fromkeys(known))


def _says(db: View, route: Ref, ref: ParentPort) -> Iterator[Says]:
    if ref.kind == SERVER:
        why = server_refusal(db, route, ref)
        yield Says(ACCEPTED, not why, NO_PARENT if why else ACCEPTED, why)
        yield from _arriving(db, route, ref)
        return
    taken, found = acceptance(db, route, ref), resolution(db, route)
    yield Says(ACCEPTED, taken.accepted, taken.reason, taken.message)
    yield Says("ResolvedRefs", found.resolved, found.reason, found.message)
    yield from _partly(route_faults(db, route))
    if taken.accepted:
        yield from supported(faults_at(db, route, ref))


@query
def server_refusal(db: View, route: Ref, ref: ParentPort) -> str:
    """Why a Server does not take a route; "" if it does."""
    why = refused_by_server(db, route, ref)
    if not why and route_age(db, route) is None:
        return "another parentRef to a Server is wrong, which takes the route from all Servers"
    return why


def _arriving(db: View, route: Ref, ref: ParentPort) -> Iterator[Says]:
    faults = inbound_route_faults(db, route)
    yield from _partly([Fault(f"spec.{one.path}", one.message) for one in faults])
    yield from supported(_on_server(db, route, service_key(ref)))


@query
def _on_server(db: View, route: Ref, server: ObjectKey) -> tuple[Unsupported, ...]:
    return server_faults(db, server).get(route, ())


def _partly(faults: Iterable[Fault]) -> Iterator[Says]:
    told = [f"{each.path}: {each.message}" for each in faults]
    if told:
        yield Says("PartiallyInvalid", True, "UnsupportedValue", listed(told))


# -------------------------------------------------------------------------------- documents


def _document(entry: Entry, generation: int) -> dict[str, Any]:
    return {
        "parentRef": _parent(entry.ref),
        "controllerName": CONTROLLER,
        "conditions": [_condition(each, generation) for each in entry.says[:MOST]],
    }


def _parent(ref: ParentPort) -> dict[str, JSON]:
    """As the route names it, with its namespace (the group is the specification's, decision 8)."""
    found: dict[str, JSON] = {"group": ref.group, "kind": ref.kind}
    found |= {"namespace": ref.namespace, "name": ref.name}
    if ref.section:
        found["sectionName"] = ref.section
    if ref.port:
        found["port"] = ref.port
    return found


def _condition(each: Says, generation: int) -> dict[str, JSON]:
    found = {"type": each.type, "status": each.status}
    found |= {"reason": each.reason, "message": each.message}
    return found | ({"observedGeneration": generation} if generation else {})


def _held(one: RouteParent) -> dict[str, Any]:
    """An entry as it stands, without its times."""
    ref = one.parent_ref
    return {
        "parentRef": _parent(
            ParentPort("", ref.group, ref.kind, ref.namespace, ref.name, ref.port, ref.section_name)
        ),
        "controllerName": one.controller_name,
        "conditions": [_timeless(each) for each in one.conditions],
    }


def _timeless(one: CountedCondition) -> dict[str, JSON]:
    found: dict[str, JSON] = {"type": one.type, "status": one.status}
    found |= {"reason": one.reason, "message": one.message}
    counted = {"observedGeneration": one.observed_generation} if one.observed_generation else {}
    return found | counted
