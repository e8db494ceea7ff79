"""The census: one row for every stored object of any kind, also of kinds defined by users.

Garbage collection follows owners across kinds, and a namespace ends when nothing of any kind is
left in it. Neither should name kinds, nor fail for an object that its own table cannot read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from isthmus.engine import Index, Table
from isthmus.model.meta import OwnerReference, View

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The finalizers that garbage collection works off (Kubernetes API conventions)."""


class Identity(View, frozen=True):
    """What ties an object to its owners and to its end; see `model.meta.Meta`."""

    uid: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Facts(View, frozen=True):
    """What every object of any kind has: enough for garbage collection and namespace deletion."""

    metadata: Identity = Identity()


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


CENSUS: Table[CensusKey, Facts] = Table("census")
BY_UID: Index[CensusKey, Facts, str] = Index("census_by_uid", CENSUS, _uids)
BY_OWNER: Index[CensusKey, Facts, str] = Index("census_by_owner", CENSUS, _owners)
BY_NAMESPACE: Index[CensusKey, Facts, Place] = Index("census_by_namespace", CENSUS, _place)
COLLECTED: Index[CensusKey, Facts, Place] = Index("census_collected", CENSUS, _collected)

_DECODER = msgspec.json.Decoder(Facts)


def facts(value: bytes) -> Facts | None:
    """The census row of stored bytes; None for records that are no objects (they have no uid).

    Raises:
        msgspec.MsgspecError: the metadata cannot be read.
    """
    row = _DECODER.decode(value)
    return row if row.metadata.uid else None
