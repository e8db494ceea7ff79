"""The merge that updates do: RFC 7396, but lists that several writers share merge item by item.

As in Kubernetes' strategic merge patch: `conditions` merge by type, `ownerReferences` by uid, and
`$deleteFromPrimitiveList/finalizers` takes single finalizers out. So what others wrote in the same
list at the same moment stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isthmus.controllers.steps import JSON, canonical
from isthmus.errors import Conflict
from isthmus.model.kind import Document

TOUCH = "touch"
"""As `lastUpdateTime` of a planned condition: the moment of writing. Without it, the time stays."""

REMOVE = "$deleteFromPrimitiveList/"

GONE = "delete"
"""As `$patch` of an item of a list: the item is to go."""

PARENTS = "parents"
"""The status of a route: planned as entries by controller, which replace that controller's own."""

PARENTS_HELD = 32
"""Entries of one route (Gateway API): those of others first."""

REPORTS: Mapping[str, str] = {"federatedServices": "remoteRef", "mirrorServices": "remoteRef"}
"""Lists of reports, each with conditions of its own, by the field that says what each is about.

They are replaced as a whole; a condition that says the same as before keeps its time.
"""


def merged(document: Document, patch: Mapping[str, JSON], now: str) -> Document:
    """The document after the merge; `now` (RFC 3339) dates conditions that move.

    Raises:
        Conflict: a controller reference is added where another controller already owns.
    """
    result = dict(document)
    for name, value in patch.items():
        if name.startswith(REMOVE):
            listed = name.removeprefix(REMOVE)
            _put(result, listed, [item for item in result.get(listed) or [] if item not in value])
        elif value is None:
            result.pop(name, None)
        elif name == "conditions" and isinstance(value, list):
            result[name] = _conditions(result.get(name) or [], value, now)
        elif name == PARENTS and isinstance(value, dict):
            result[name] = _parents(result.get(name) or [], value, now)
        elif name in REPORTS and isinstance(value, list):
            result[name] = _reports(result.get(name) or [], value, REPORTS[name], now)
        elif name == "ownerReferences" and isinstance(value, list):
            _put(result, name, _owners(result.get(name) or [], value))
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = merged(inner if isinstance(inner, dict) else {}, value, now)
        else:
            result[name] = value
    return result


def _put(document: Document, name: str, items: list[JSON]) -> None:
    """A list of metadata, which Kubernetes leaves out when it is empty."""
    document.pop(name, None)
    if items:
        document[name] = items


def _conditions(present: Sequence[Document], wanted: Sequence[Document], now: str) -> list[JSON]:
    held = {condition.get("type"): condition for condition in present}
    for condition in wanted:
        if condition.get("$patch") == GONE:
            held.pop(condition["type"], None)
        else:
            held[condition["type"]] = _dated(held.get(condition["type"]) or {}, condition, now)
    return list(held.values())


def _parents(
    present: Sequence[Document], wanted: Mapping[str, Sequence[Document]], now: str
) -> list[JSON]:
    """Entries of other controllers stay where they are; ours follow, dated by what they said."""
    kept = [one for one in present if one.get("controllerName") not in wanted]
    ours = [one for one in present if one.get("controllerName") in wanted]
    held = {_entry(one): one for one in ours}
    new = [
        _report(held.get(_entry(one)) or {}, one, now) for each in wanted.values() for one in each
    ]
    return [*kept, *new[: max(0, PARENTS_HELD - len(kept))]]


def _entry(one: Document) -> bytes:
    return canonical([one.get("controllerName"), one.get("parentRef")])


def _reports(
    present: Sequence[Document], wanted: Sequence[Document], about: str, now: str
) -> list[JSON]:
    held = {canonical(report.get(about)): report for report in present}
    return [_report(held.get(canonical(report.get(about))) or {}, report, now) for report in wanted]


def _report(old: Document, new: Document, now: str) -> Document:
    said = {one.get("type"): one for one in old.get("conditions") or []}
    conditions = [_dated(said.get(one["type"]) or {}, one, now) for one in new["conditions"]]
    return {**new, "conditions": conditions}


def _dated(old: Document, new: Document, now: str) -> Document:
    """Times say when the status changed, and when the condition was last touched."""
    result = dict(new)
    same = old.get("status") == new.get("status")
    result["lastTransitionTime"] = (same and old.get("lastTransitionTime")) or now
    if new.get("lastUpdateTime") == TOUCH:
        result["lastUpdateTime"] = now
    elif old.get("lastUpdateTime"):
        result["lastUpdateTime"] = old["lastUpdateTime"]
    return result


def _owners(present: Sequence[Document], wanted: Sequence[Document]) -> list[JSON]:
    held = {owner.get("uid"): owner for owner in present}
    for owner in wanted:
        if owner.get("$patch") == GONE:
            held.pop(owner["uid"], None)
            continue
        manager = next((other for other in held.values() if other.get("controller")), None)
        if owner.get("controller") and manager and manager.get("uid") != owner["uid"]:
            raise Conflict(
                f"{manager.get('kind')} {manager.get('name')} controls the object already"
            )
        held[owner["uid"]] = owner
    return list(held.values())
