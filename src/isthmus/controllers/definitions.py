"""CustomResourceDefinitions: what their status says, and how one ends with all its objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from isthmus.controllers import garbage
from isthmus.controllers.merge import REMOVE
from isthmus.controllers.pods import condition
from isthmus.controllers.steps import JSON, Delete, Plan, Update, canonical, drop_empty
from isthmus.engine import Index, View, query
from isthmus.errors import MethodNotAllowed, NotFound
from isthmus.mesh.census import CENSUS, CensusKey, Facts, Place
from isthmus.mesh.definitions import DEFINITIONS, RESOURCE, Definition, Served, Verdict, verdict
from isthmus.model.apiextensions import CLEANUP
from isthmus.model.key import Key, ObjectKey
from isthmus.model.registry import BUILT_IN, split_api_version
from isthmus.store.contract import Compare, Store
from isthmus.store.objects import Proposed
from isthmus.store.objects import Verdict as Admitted


def _defined(key: CensusKey, _row: Facts) -> Iterable[Place]:
    """Objects of kinds that are not built in, by resource."""
    return (_of(key),) if BUILT_IN.by_key_resource(key.resource) is None else ()


def _of(key: CensusKey) -> Place:
    return Place(key.cluster, key.resource)


BY_DEFINITION: Index[CensusKey, Facts, Place] = Index("census_by_definition", CENSUS, _defined)
"""The objects of each defined resource. (A Place's second part is the resource here.)"""


def _owned(key: CensusKey, row: Facts) -> Iterable[tuple[str, str, str]]:
    """What has owners of kinds that are not built in, by cluster, group and kind."""
    for owner in row.metadata.owner_references:
        if BUILT_IN.by_api_version(owner.api_version, owner.kind) is None:
            yield key.cluster, split_api_version(owner.api_version)[0], owner.kind


BY_OWNING_KIND: Index[CensusKey, Facts, tuple[str, str, str]] = Index(
    "census_by_owning_kind", CENSUS, _owned
)


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every definition of a cluster."""
    return () if where.namespace else DEFINITIONS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Say what becomes of a definition; of one that is deleted, first delete its objects."""
    row = DEFINITIONS.get(db, key)
    if row is None:
        return ()
    if row.metadata.deletion_timestamp:
        return _end(db, key, row)
    found = verdict(db, key)
    served = found.served in (Served.YES, Served.BUILT_IN)
    wanted = [_names_accepted(found), _established(found)]
    status: dict[str, JSON] = {}
    if conditions := _news(row, wanted):
        status["conditions"] = conditions
    if served and row.status.accepted_names != row.names:
        status["acceptedNames"] = drop_empty(msgspec.to_builtins(row.names))
    if row.storage and row.storage not in row.status.stored_versions:
        status["storedVersions"] = [*row.status.stored_versions, row.storage]
    return _update(key, row, status)


def _names_accepted(found: Verdict) -> dict[str, Any]:
    match found.served:
        case Served.BUILT_IN | Served.CONFLICT:
            holds = found.served is Served.BUILT_IN
            return _condition("NamesAccepted", holds, found.served.value, found.message)
        case Served.YES | Served.UNUSABLE:
            return _condition("NamesAccepted", True, "NoConflicts", "no conflicts found")
        case _:
            assert_never(found.served)


def _established(found: Verdict) -> dict[str, Any]:
    match found.served:
        case Served.YES:
            says = "the initial names have been accepted"
            return _condition("Established", True, "InitialNamesAccepted", says)
        case Served.BUILT_IN | Served.UNUSABLE:
            holds = found.served is Served.BUILT_IN
            return _condition("Established", holds, found.served.value, found.message)
        case Served.CONFLICT:
            says = "not all names are accepted"
            return _condition("Established", False, "NotAccepted", says)
        case _:
            assert_never(found.served)


def _condition(kind: str, holds: bool, reason: str, message: str) -> dict[str, Any]:  # noqa: FBT001
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _news(row: Definition, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conditions that are not said yet."""
    news = []
    for each in wanted:
        now = condition(row.status.conditions, each["type"])
        said = now and (now.status, now.reason, now.message)
        if said != (each["status"], each["reason"], each["message"]):
            news.append(each)
    return news


def _update(key: ObjectKey, row: Definition, status: dict[str, JSON]) -> Plan:
    if not status or not row.readable:
        return ()
    merge = canonical({"status": status})
    return (Update(RESOURCE, "", key.name, row.metadata.uid, merge, "status"),)


def _end(db: View, key: ObjectKey, row: Definition) -> Plan:
    """Delete the objects; when none is left, the finalizer goes, and so does the definition."""
    if CLEANUP not in row.metadata.finalizers:
        return ()
    objects = BY_DEFINITION.get(db, Place(key.cluster, key.name))
    if not objects:
        dependents = BY_OWNING_KIND.get(db, (key.cluster, row.group, row.names.kind))
        if any(garbage.plan(db, dependent) for dependent in dependents):
            return ()  # first what they owned: owners of an unknown kind are never gone
        merge = canonical({"metadata": {f"{REMOVE}finalizers": [CLEANUP]}})
        return (Update(RESOURCE, "", key.name, row.metadata.uid, merge),)
    seen = verdict(db, key).served is Served.YES
    steps = [step for at in objects for step in _remove(db, at, seen=seen)]
    says = "CustomResource deletion is in progress"
    conditions = _news(row, [_condition("Terminating", True, "InstanceDeletionInProgress", says)])
    return (*_update(key, row, {"conditions": conditions} if conditions else {}), *steps)


def _remove(db: View, at: CensusKey, *, seen: bool) -> Iterator[Delete | Update]:
    """Delete an object. Where nobody can see it, nobody can finish what its finalizers wait for."""
    found = CENSUS.get(db, at)
    if found is None:
        return
    meta = found.metadata
    if not meta.deletion_timestamp:
        yield Delete(at.resource, at.namespace, at.name, meta.uid)
    if meta.finalizers and not seen:
        merge = canonical({"metadata": {f"{REMOVE}finalizers": list(meta.finalizers)}})
        yield Update(at.resource, at.namespace, at.name, meta.uid, merge)


class DefinitionLives:
    """Admission: objects of a defined kind are created while their definition is there and stays.

    The definition's record is compared in the transaction, so that no object can slip in behind the
    deletion of the others.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, proposed: Proposed) -> Admitted:
        """The document. NotFound without the definition, MethodNotAllowed while it ends."""
        kind = proposed.kind
        if not kind.definition or proposed.old is not None or proposed.new is None:
            return Admitted(proposed.new)
        key = Key(RESOURCE, "", kind.resource)
        record = await self._store.get(key)
        metadata = msgspec.json.decode(record.value)["metadata"] if record is not None else {}
        if record is None or metadata.get("uid") != kind.definition:
            raise NotFound("the server could not find the requested resource")
        if metadata.get("deletionTimestamp"):
            says = "create not allowed while custom resource definition is terminating"
            raise MethodNotAllowed(says)
        return Admitted(proposed.new, (Compare(key, record.revision),))
