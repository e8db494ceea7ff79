"""Kinds that users define: which definitions have their names, and the registry with their kinds.

A definition is taken when nobody older has one of its names in the group, no built-in kind is
called so, and its schemas can be served. Older means created earlier; within one second the name
decides. So the answer follows from the objects alone, whatever came first.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from isthmus.engine import Table, View, query
from isthmus.mesh.census import Place
from isthmus.model.apiextensions import DefinitionStatus, Names, built_in
from isthmus.model.crd import Unusable, kind_of
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Kind, Version
from isthmus.model.meta import CountedMeta, Object
from isthmus.model.meta import View as Facts
from isthmus.model.registry import BUILT_IN, Registry
from isthmus.model.schema import Schema, Type

RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"


class Definition(msgspec.Struct, frozen=True, gc=False):
    """A CustomResourceDefinition: its spec as JSON bytes, and what is said of it.

    `storage` is the version that objects are stored in.
    """

    metadata: CountedMeta
    group: str
    names: Names
    storage: str
    spec: bytes
    status: DefinitionStatus
    readable: bool = True


class _Version(Facts, frozen=True):
    name: str = ""
    storage: bool = False


class _Spec(Facts, frozen=True):
    group: str = ""
    names: Names = Names()
    versions: tuple[_Version, ...] = ()


class _Whole(Facts, frozen=True):
    metadata: CountedMeta = CountedMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: DefinitionStatus = DefinitionStatus()


class _Named(CountedMeta, frozen=True):
    name: str = ""


class _Head(Facts, frozen=True):
    metadata: _Named = _Named()


_HEAD = msgspec.json.Decoder(_Head)
_WHOLE = msgspec.json.Decoder(_Whole)
_SPEC = msgspec.json.Decoder(_Spec)


def row(value: bytes) -> Definition:
    """The row of stored bytes; msgspec.MsgspecError for bytes without readable metadata.

    Of a definition that cannot be read further its name is left, so that it can be deleted.
    """
    try:
        whole = _WHOLE.decode(value)
        raw = bytes(whole.spec)
        spec = _SPEC.decode(raw)
    except msgspec.MsgspecError:
        meta = _HEAD.decode(value).metadata
        plural, _, group = meta.name.partition(".")
        names = Names(plural=plural)
        return Definition(meta, group, names, "", b"{}", DefinitionStatus(), readable=False)
    storage = next((each.name for each in spec.versions if each.storage), "")
    return Definition(whole.metadata, spec.group, spec.names, storage, raw, whole.status)


def _place(key: ObjectKey) -> Place:
    return Place(key.cluster, "")


DEFINITIONS: Table[ObjectKey, Definition] = Table("definitions", scope=_place)


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What a definition asks for: the facts that decide, without what is said of it."""

    uid: str
    created: str
    ending: bool
    group: str
    names: Names
    spec: bytes


@query
def claim(db: View, key: ObjectKey) -> Claim | None:
    """A definition without its status, so that reports about it change no kind."""
    found = DEFINITIONS.get(db, key)
    if found is None:
        return None
    meta = found.metadata
    ending = bool(meta.deletion_timestamp)
    return Claim(meta.uid, meta.creation_timestamp, ending, found.group, found.names, found.spec)


class Served(StrEnum):
    """What becomes of a definition; the value is the reason in its conditions."""

    YES = "NoConflicts"
    BUILT_IN = "BuiltIn"
    CONFLICT = "NameConflict"
    UNUSABLE = "SchemaNotServed"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a definition is served, and why not."""

    served: Served
    message: str = ""


class Made(msgspec.Struct, frozen=True):
    """The kind of a definition, or why there is none."""

    kind: Kind | None
    why: str = ""


@query
def made(db: View, key: ObjectKey) -> Made:
    """The kind that a definition describes, whether or not it has its names."""
    found = claim(db, key)
    if found is None:
        return Made(None)
    try:
        spec: dict[str, Any] = msgspec.json.decode(found.spec)
        return Made(kind_of(spec, found.uid, ending=found.ending))
    except Unusable as fault:
        return Made(None, str(fault))
    except Exception as fault:  # noqa: BLE001  # one bad definition never stops the others
        return Made(None, f"{type(fault).__name__}: {fault}")


@query
def names_taken(db: View, cluster: str) -> tuple[tuple[ObjectKey, str], ...]:
    """For each definition that must go without its names: which name, and who has it."""
    keys = DEFINITIONS.names(db, Place(cluster, ""))
    claims = {key: found for key in keys if (found := claim(db, key)) is not None}
    owners: dict[tuple[str, str, str], ObjectKey] = {}
    refused: dict[ObjectKey, str] = {}
    for key in sorted(claims, key=lambda key: (claims[key].created, key.name)):
        wanted = list(_wanted(claims[key]))
        rival = next((each for each in wanted if owners.get(each, key) != key), None)
        if rival is None:
            owners |= dict.fromkeys(wanted, key)
        else:
            refused[key] = f'"{rival[2]}" is already in use by {owners[rival].name}'
    return tuple(sorted(refused.items()))


def _wanted(found: Claim) -> Iterator[tuple[str, str, str]]:
    """The names that a definition takes within its group: resources, and kinds."""
    names = found.names
    for word in (names.plural, names.singular, *names.short_names):
        yield found.group, "resource", word
    for word in (names.kind, names.list_kind):
        yield found.group, "kind", word


@query
def verdict(db: View, key: ObjectKey) -> Verdict:
    """What becomes of a definition."""
    found = claim(db, key)
    if found is None:
        return Verdict(Served.UNUSABLE, "the definition is gone")
    ours = built_in(found.group, found.names.plural)
    if ours is not None:
        says = f"{ours.resource} are built into Isthmus, which serves them by its own schema"
        return Verdict(Served.BUILT_IN, says)
    by_kind = BUILT_IN.by_kind(found.group, found.names.kind)
    if by_kind is not None:
        return Verdict(Served.CONFLICT, f'"{by_kind.name}" is a built-in kind of the group')
    conflict = dict(names_taken(db, key.cluster)).get(key)
    if conflict:
        return Verdict(Served.CONFLICT, conflict)
    of = made(db, key)
    return (
        Verdict(Served.YES, "no conflicts found") if of.kind else Verdict(Served.UNUSABLE, of.why)
    )


@query
def remains(db: View, key: ObjectKey) -> Kind | None:
    """The kind of a definition by its names alone, without schema or rules.

    For objects that are left of a definition that is not served any more: they can be deleted.
    """
    found = DEFINITIONS.get(db, key)
    if found is None:
        return None
    version = Version(found.storage or "v1", Schema(type=Type.ANY))
    return Kind(
        group=found.group,
        name=found.names.kind or found.names.plural,
        plural=found.names.plural,
        singular=found.names.singular or found.names.plural,
        versions=(version,),
        stored=version.name,
        view=Object,
        status=False,
        definition=found.metadata.uid,
        verbs=("delete",),
    )


@query
def registry(db: View, cluster: str) -> Registry:
    """Every kind that the cluster serves: the built-in ones, then those that users defined."""
    found = []
    for key in DEFINITIONS.names(db, Place(cluster, "")):
        kind = made(db, key).kind if verdict(db, key).served is Served.YES else None
        if kind is not None:
            found.append(kind)
    return BUILT_IN.extended(found) if found else BUILT_IN
