"""Conditions of a status: what is not said yet, and what is said no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from isthmus.controllers.merge import GONE
from isthmus.controllers.pods import condition
from isthmus.controllers.steps import JSON, Plan, Update, canonical
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Condition, CountedCondition, Meta


class Says(NamedTuple):
    """A condition, without its times. `holds` is None where nobody knows."""

    type: str
    holds: bool | None
    reason: str
    message: str

    @property
    def status(self) -> str:
        """As the wire says it."""
        return "Unknown" if self.holds is None else str(self.holds)


class Held(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> Meta: ...


def news(
    said: Sequence[Condition],
    wanted: Iterable[Says],
    ours: Iterable[str],
    generation: int = 0,
) -> list[JSON]:
    """The items of a merge that makes the conditions of the types that are `ours` as wanted."""
    found, kept = list[JSON](), set[str]()
    for each in wanted:
        kept.add(each.type)
        now = condition(tuple(said), each.type)
        if now is None or _content(now) != (each.status, each.reason, each.message, generation):
            found.append(_document(each, generation))
    held = {one.type for one in said}
    gone = [name for name in ours if name in held and name not in kept]
    return [*found, *({"type": name, "$patch": GONE} for name in gone)]


def _content(one: Condition) -> tuple[object, ...]:
    counted = one.observed_generation if isinstance(one, CountedCondition) else 0
    return one.status, one.reason, one.message, counted


def _document(each: Says, generation: int) -> JSON:
    document = {"type": each.type, "status": each.status}
    document |= {"reason": each.reason, "message": each.message}
    return document | ({"observedGeneration": generation} if generation else {})


def update(
    resource: str,
    key: ObjectKey,
    held: Held,
    said: Sequence[Condition],
    wanted: tuple[Says, ...],
    ours: tuple[str, ...],
) -> Plan:
    """The write of a status that says something else; () if it says all of it."""
    found = news(said, wanted, ours)
    if not found:
        return ()
    merge = canonical({"status": {"conditions": found}})
    return (Update(resource, key.namespace, key.name, held.metadata.uid, merge, "status"),)
