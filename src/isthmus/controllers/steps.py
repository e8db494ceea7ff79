"""Intended writes as values, and the arithmetic on documents that they need.

A plan is a tuple of steps: the difference between what should be and what is. Steps are frozen and
comparable, so a plan that has not changed is the same value; documents are canonical JSON bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, assert_never

import msgspec

JSON = Any
"""Anything that JSON can say; documents are values here, they become types in the tables."""


class Propagation(StrEnum):
    """What happens to dependents of what is deleted (Kubernetes: propagationPolicy)."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Create(msgspec.Struct, frozen=True, gc=False):
    """Write a new object. `document` is whole, with apiVersion, kind and metadata.name."""

    resource: str
    namespace: str
    name: str
    document: bytes


class Update(msgspec.Struct, frozen=True, gc=False):
    """Merge the fields we own into the object with this uid (see `merge.merged`).

    `subresource` is "", "status" or "finalize".
    """

    resource: str
    namespace: str
    name: str
    uid: str
    merge: bytes
    subresource: str = ""


class Issue(msgspec.Struct, frozen=True, gc=False):
    """Put a new token for a ServiceAccount into its Secret with this uid, and merge the rest.

    Only the executor can sign: no key, and no chance, is in a plan.
    """

    resource: str
    namespace: str
    name: str
    uid: str
    account: str
    account_uid: str
    merge: bytes


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete the object with this uid."""

    resource: str
    namespace: str
    name: str
    uid: str
    propagation: Propagation = Propagation.BACKGROUND


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Nothing to write; the plan may differ once `until` has passed (seconds since the epoch)."""

    until: int


Write = Create | Update | Issue | Delete
Step = Write | Wait
Plan = tuple[Step, ...]


def writes(plan: Plan) -> tuple[Write, ...]:
    """The steps that change something; a plan without any is at rest."""
    return tuple(step for step in plan if not isinstance(step, Wait))


def describe(step: Write) -> str:
    """One step as a log line tells it."""
    where = f"{step.resource} {step.namespace}/{step.name}"
    match step:
        case Create():
            return f"create {where}"
        case Update():
            return f"update {where} {step.subresource}".rstrip()
        case Issue():
            return f"issue {where}"
        case Delete():
            return f"delete {where}"
        case _:
            assert_never(step)


def canonical(value: JSON) -> bytes:
    """JSON with sorted keys: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def drop_empty(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    """Without what Kubernetes omits: None, "", empty lists and mappings."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, ())}


def difference(now: Mapping[str, JSON], wanted: Mapping[str, JSON]) -> dict[str, JSON]:
    """The part of `wanted` that `now` does not say already."""
    return {name: value for name, value in wanted.items() if now.get(name) != value}


def without_zeros(counts: Mapping[str, JSON], *kept: str) -> dict[str, JSON]:
    """Status counts as Kubernetes writes them: 0 is absent, but for those in `kept`."""
    return {name: value if value or name in kept else None for name, value in counts.items()}


def mapping_patch(now: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """The merge patch that makes labels or annotations `now` exactly `wanted`."""
    gone: dict[str, str | None] = {name: None for name in now if name not in wanted}
    return gone | {name: value for name, value in wanted.items() if now.get(name) != value}
