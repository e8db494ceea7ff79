"""The tables that the board itself fills: which clusters are members, what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from isthmus.engine import Table
from isthmus.mesh.census import CensusKey
from isthmus.model.key import Key, ObjectKey


class Intake(NamedTuple):
    """Where objects go.

    `make` turns stored bytes into a row: the facts, nothing that changes without meaning; None for
    what is no object and has no row. It may raise; the object is then unreadable and left out, it
    alone.
    """

    table: Table[Any, Any]
    make: Callable[[bytes], object]


class Intakes(NamedTuple):
    """Where all objects of a store go: by resource, and whatever their resource (the census).

    `also` is a second table for some resources: of a Secret, different rooms read different facts.
    """

    by_resource: Mapping[str, Intake]
    every: Intake | None = None
    also: Mapping[str, Intake] = {}

    def of(self, resource: str) -> tuple[Intake, ...]:
        """The tables of one resource's objects."""
        found = (self.by_resource.get(resource), self.also.get(resource))
        return tuple(each for each in found if each is not None)


class Member(msgspec.Struct, frozen=True):
    """A cluster whose first sync is done. No row means "not a member", which is not "empty"."""

    cluster: str


class Unreadable(msgspec.Struct, frozen=True):
    """Why an object's bytes make no row: for conditions and counts."""

    why: str


MEMBERS: Table[str, Member] = Table("members")
UNREADABLE: Table[CensusKey, Unreadable] = Table("unreadable")


def census_key(cluster: str, key: Key) -> CensusKey:
    """How tables of objects of any kind call a stored object."""
    return CensusKey(cluster, *key)


def object_key(cluster: str, key: Key) -> ObjectKey:
    """How the table of its kind calls a stored object."""
    return ObjectKey(cluster, key.namespace, key.name)
