"""Garbage collection: what depends on nothing that lives is deleted (Kubernetes: ownerReferences).

Owners are followed by uid through the census of all kinds. The census absorbs the store in order,
so an owner that is missing here is missing: no look-up by name, no second chance needed.
"""

from __future__ import annotations

from isthmus.controllers.merge import REMOVE
from isthmus.controllers.steps import Delete, Plan, Propagation, Step, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import (
    BY_OWNER,
    BY_UID,
    CENSUS,
    COLLECTED,
    FOREGROUND,
    ORPHAN,
    CensusKey,
    Facts,
    Place,
)
from isthmus.mesh.definitions import registry
from isthmus.model.meta import OwnerReference
from isthmus.model.registry import BUILT_IN


@query
def keys(db: View, where: Place) -> tuple[CensusKey, ...]:
    """Every object of a namespace that has owners, or that waits for its dependents."""
    return COLLECTED.get(db, where)


@query
def plan(db: View, key: CensusKey) -> Plan:
    """Delete an object whose owners are gone; work off the finalizers of one that is going."""
    row = CENSUS.get(db, key)
    if row is None:
        return ()
    steps: list[Step] = []
    if row.metadata.deletion_timestamp:
        if ORPHAN in row.metadata.finalizers:
            return _set_free(db, key, row)
        if FOREGROUND in row.metadata.finalizers:
            steps += _empty(db, key, row)
        return tuple(steps)
    return _collect(db, key, row)


def _collect(db: View, key: CensusKey, row: Facts) -> Plan:
    states = {owner.uid: _state(db, key, owner) for owner in row.metadata.owner_references}
    if not states or any(state == "solid" for state in states.values()):
        return _strip(key, row, [uid for uid, state in states.items() if state != "solid"])
    waits = any(state == "waiting" for state in states.values())
    propagation = Propagation.BACKGROUND
    if ORPHAN in row.metadata.finalizers:
        propagation = Propagation.ORPHAN
    elif waits and BY_OWNER.get(db, row.metadata.uid):
        propagation = Propagation.FOREGROUND  # its own dependents go before it
    return (Delete(key.resource, key.namespace, key.name, row.metadata.uid, propagation),)


def _state(db: View, key: CensusKey, reference: OwnerReference) -> str:
    """`solid`: keeps its dependents; `gone`; `waiting`: will go once its dependents are gone."""
    for found in BY_UID.get(db, reference.uid):
        if found.cluster != key.cluster:
            continue
        if not key.namespace and found.namespace:
            # Nothing says in which namespace to look once it is gone: never collected for it.
            return "solid"
        # An owner is in the dependent's namespace or in none; elsewhere it does not count.
        if found.namespace not in ("", key.namespace):
            continue
        owner = CENSUS.get(db, found)
        if owner is None:
            continue
        going = owner.metadata.deletion_timestamp and FOREGROUND in owner.metadata.finalizers
        return "waiting" if going else "solid"
    # Nobody can tell that an owner of a kind that is not served is gone (Kubernetes: unresolvable).
    return "gone" if _served(db, key.cluster, reference) else "solid"


def _served(db: View, cluster: str, owner: OwnerReference) -> bool:
    if BUILT_IN.by_api_version(owner.api_version, owner.kind) is not None:
        return True
    return registry(db, cluster).by_api_version(owner.api_version, owner.kind) is not None


def _strip(key: CensusKey, row: Facts, uids: list[str]) -> Plan:
    """Take out references that no longer hold anything."""
    if not uids:
        return ()
    references = [{"uid": uid, "$patch": "delete"} for uid in uids]
    merge = canonical({"metadata": {"ownerReferences": references}})
    return (Update(key.resource, key.namespace, key.name, row.metadata.uid, merge),)


def _set_free(db: View, key: CensusKey, row: Facts) -> Plan:
    """Orphan: dependents lose the reference first, then the finalizer goes."""
    steps: list[Step] = []
    for dependent in BY_OWNER.get(db, row.metadata.uid):
        found = CENSUS.get(db, dependent)
        if found is not None:
            steps += _strip(dependent, found, [row.metadata.uid])
    return tuple(steps) or _release(key, row, ORPHAN)


def _empty(db: View, key: CensusKey, row: Facts) -> Plan:
    """Foreground: wait for the dependents that block; they collect themselves meanwhile.

    Owners in a ring would wait for each other: who is owner and dependent at once does not block.
    """
    blocking = [found for found in BY_OWNER.get(db, row.metadata.uid) if _blocks(db, found, row)]
    if blocking and not all(_uid(db, found) in _owners(db, row) for found in blocking):
        return ()
    return _release(key, row, FOREGROUND)


def _blocks(db: View, key: CensusKey, owner: Facts) -> bool:
    found = CENSUS.get(db, key)
    references = found.metadata.owner_references if found is not None else ()
    return any(each.uid == owner.metadata.uid and each.block_owner_deletion for each in references)


def _uid(db: View, key: CensusKey) -> str:
    found = CENSUS.get(db, key)
    return found.metadata.uid if found is not None else ""


def _owners(db: View, row: Facts) -> set[str]:
    """The uids of all that own an object, of those that own them, and so on."""
    seen: set[str] = set()
    waiting = [row]
    while waiting:
        for reference in waiting.pop().metadata.owner_references:
            if reference.uid in seen:
                continue
            seen.add(reference.uid)
            rows = (CENSUS.get(db, each) for each in BY_UID.get(db, reference.uid))
            waiting += [found for found in rows if found is not None]
    return seen


def _release(key: CensusKey, row: Facts, finalizer: str) -> Plan:
    merge = canonical({"metadata": {f"{REMOVE}finalizers": [finalizer]}})
    return (Update(key.resource, key.namespace, key.name, row.metadata.uid, merge),)
