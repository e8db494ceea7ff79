"""The census: one row for every stored object of any kind, also of kinds defined by users.

Garbage collection follows owners across kinds, and a namespace ends when nothing of any kind is
left in it. Neither should name kinds, nor fail for an object that its own table cannot read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from isthmus.engine import Index, Table
from isthmus.model.meta import Condition, OwnerReference, View

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The finalizers that garbage collection works off (Kubernetes API conventions)."""
PROXY_REJECTED = "isthmus.dev/ProxyRejected"
"""The condition of an object of which some proxy takes no more than an earlier version."""


class Identity(View, frozen=True):
    """What ties an object to its owners and to its end; see `model.meta.Meta`."""

    uid: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Facts(View, frozen=True):
    """What every object of any kind has: enough for garbage collection and namespace deletion."""

    metadata: Identity = Identity()
    rejected: Condition | None = None
    """What the object says of proxies that reject it."""


class _Head(View, frozen=True):
    metadata: Identity = Identity()


class _Conditions(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _Said(View, frozen=True):
    status: _Conditions = _Conditions()


class CensusKey(NamedTuple):
    """One object in one cluster; `resource` as in `model.Key`."""

    cluster: str
    resource: str
    namespace: str
    name: str


class Place(NamedTuple):
    """A namespace of a cluster; "" for what is cluster-scoped."""

    cluster: str
    namespace: str


def _uids(_key: CensusKey, row: Facts) -> Iterable[str]:
    return (row.metadata.uid,)


def _owners(_key: CensusKey, row: Facts) -> Iterable[str]:
    return (owner.uid for owner in row.metadata.owner_references)


def _place(key: CensusKey, _row: Facts) -> Iterable[Place]:
    return (Place(key.cluster, key.namespace),)


def _collected(key: CensusKey, row: Facts) -> Iterable[Place]:
    """Only what garbage collection may have to touch, so that nothing else costs a cell."""
    meta = row.metadata
    going = meta.deletion_timestamp and {ORPHAN, FOREGROUND}.intersection(meta.finalizers)
    return (Place(key.cluster, key.namespace),) if meta.owner_references or going else ()


def _rejected(key: CensusKey, row: Facts) -> Iterable[Place]:
    """Objects that say they are rejected: a word that must be taken back in time."""
    said = row.rejected is not None and row.rejected.status == "True"
    return (Place(key.cluster, key.namespace),) if said else ()


CENSUS: Table[CensusKey, Facts] = Table("census")
BY_UID: Index[CensusKey, Facts, str] = Index("census_by_uid", CENSUS, _uids)
BY_OWNER: Index[CensusKey, Facts, str] = Index("census_by_owner", CENSUS, _owners)
BY_NAMESPACE: Index[CensusKey, Facts, Place] = Index("census_by_namespace", CENSUS, _place)
COLLECTED: Index[CensusKey, Facts, Place] = Index("census_collected", CENSUS, _collected)
REJECTED: Index[CensusKey, Facts, Place] = Index("census_rejected", CENSUS, _rejected)

_MARK = PROXY_REJECTED.encode()
_DECODER = msgspec.json.Decoder(_Head)
_SAID = msgspec.json.Decoder(_Said)


def facts(value: bytes) -> Facts | None:
    """The census row of stored bytes; None for records that are no objects (they have no uid).

    Raises:
        msgspec.MsgspecError: the metadata cannot be read.
    """
    meta = _DECODER.decode(value).metadata
    if not meta.uid:
        return None
    return Facts(metadata=meta, rejected=_said(value) if _MARK in value else None)


def _said(value: bytes) -> Condition | None:
    """The condition, if the bytes hold it where conditions stand."""
    try:
        found = _SAID.decode(value).status.conditions
    except msgspec.MsgspecError:  # a kind of users' own, with a status of another shape
        return None
    return next((each for each in found if each.type == PROXY_REJECTED), None)
