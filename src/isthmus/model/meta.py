"""The views that all kinds share: metadata without what only the store cares about."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class View(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """Base of typed views: frozen, lenient (unknown fields are left out), camelCase on the wire."""


class OwnerReference(View, frozen=True):
    """Who owns the object; garbage collection follows `uid`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Meta(View, frozen=True):
    """Object metadata as facts: no resourceVersion, managedFields or generation.

    Times are RFC 3339 text as stored. `deletion_timestamp` is empty while nobody asked to delete.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class CountedMeta(Meta, frozen=True):
    """Metadata of objects whose status says which generation it is about."""

    generation: int = 0


class Condition(View, frozen=True):
    """One condition of a status. Times are RFC 3339 text and change only with what they date."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: str = ""
    last_transition_time: str = ""


class CountedCondition(Condition, frozen=True):
    """A condition that says which generation it is about."""

    observed_generation: int = 0


class Reference(View, frozen=True):
    """core/v1 ObjectReference: what something is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Requirement(View, frozen=True):
    """One matchExpressions entry; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True):
    """meta/v1 LabelSelector: every pair and requirement must hold. Empty selects everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class Object(View, frozen=True):
    """What every view begins with."""

    metadata: Meta = Meta()
