"""Who owns which fields: `metadata.managedFields` as a value (Kubernetes: managed fields).

A *manager* is who wrote, how (Apply or Update), through which subresource and, when it was an
Update, in which version. What it *holds* is a set of fields, in the words of one version, and when
that set was last written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.kind import Document
from isthmus.model.times import parse_seconds
from isthmus.serve.kube.apply import fields
from isthmus.serve.kube.apply.fields import EMPTY, FieldSet

APPLY: Final = "Apply"
UPDATE: Final = "Update"
FIELDS_V1: Final = "FieldsV1"

MOST_UPDATERS: Final = 10
"""Most managers of operation Update; the oldest beyond that become one (as in Kubernetes)."""

ANCIENT: Final = "ancient-changes"
"""The name of the managers that old Updates are gathered under."""

BEFORE_APPLY: Final = "before-first-apply"
"""Who owns the fields of an object that nobody kept accounts of, once somebody applies."""

LONGEST_NAME: Final = 128
LONGEST_SUBRESOURCE: Final = 256


class Manager(NamedTuple):
    """Who owns fields. `version` is empty for Apply: appliers stay themselves in any version."""

    name: str
    operation: str
    version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """As messages about conflicts name it: `"other" using v1`."""
        text = _quoted(self.name)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == UPDATE else text


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class Held(NamedTuple):
    """What a manager owns. `time` is RFC 3339 text, empty if unknown."""

    fields: FieldSet
    version: str
    time: str = ""


Managed = Mapping[Manager, Held]


def read(listed: object) -> dict[Manager, Held]:
    """The managers of a managedFields value; BadRequest if it cannot be read. Absent: nobody."""
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise BadRequest("metadata.managedFields is not a list")
    found: dict[Manager, Held] = {}
    for entry in listed:
        manager, held = _entry(entry)
        before = found.get(manager)
        if before is not None:
            held = held._replace(fields=before.fields.union(held.fields))
        found[manager] = held
    return found


def _entry(entry: object) -> tuple[Manager, Held]:
    if not isinstance(entry, dict):
        raise BadRequest("metadata.managedFields: an entry is not an object")
    name, operation, version, time, subresource = (
        _text(entry, each) for each in ("manager", "operation", "apiVersion", "time", "subresource")
    )
    if operation not in (APPLY, UPDATE):
        raise BadRequest("metadata.managedFields: operation must be `Apply` or `Update`")
    if entry.get("fieldsType") != FIELDS_V1:
        raise BadRequest(f"metadata.managedFields: fieldsType must be {FIELDS_V1}")
    if len(name.encode()) > LONGEST_NAME or not name.isprintable():
        raise BadRequest(
            f"metadata.managedFields: no manager can be called {name[:LONGEST_NAME]!r}"
        )
    if len(subresource.encode()) > LONGEST_SUBRESOURCE:
        raise BadRequest("metadata.managedFields: a subresource's name is too long")
    written = entry.get("fieldsV1")
    held = EMPTY if written is None else fields.parse(written)
    manager = Manager(name, operation, version if operation == UPDATE else "", subresource)
    return manager, Held(held, version, time)


def _text(entry: Document, name: str) -> str:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"metadata.managedFields: {name} is not a string")
    return value or ""


def write(managed: Managed) -> list[dict[str, Any]]:
    """The managedFields value, in Kubernetes' order; managers that hold nothing are left out."""
    ordered = sorted((each for each in managed.items() if each[1].fields), key=_place)
    return [_written(manager, held) for manager, held in ordered]


def _place(entry: tuple[Manager, Held]) -> tuple[str, float, str, str, str]:
    manager, held = entry
    return manager.operation, _seconds(held), manager.name, held.version, manager.subresource


def _seconds(held: Held) -> float:
    return parse_seconds(held.time) or 0.0


def _written(manager: Manager, held: Held) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": held.version,
        "fieldsType": FIELDS_V1,
        "fieldsV1": fields.write(held.fields),
    }
    if held.time:
        entry["time"] = held.time
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def bounded(managed: dict[Manager, Held]) -> dict[Manager, Held]:
    """The same with at most MOST_UPDATERS Updates: the oldest are gathered, by version."""
    updaters = [manager for manager in managed if manager.operation == UPDATE]
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return managed
    left = dict(managed)
    first: dict[str, Manager] = {}
    for manager in sorted(updaters, key=lambda each: (_seconds(managed[each]), each)):
        if surplus <= 0:
            break
        version = managed[manager].version
        if version not in first:
            first[version] = manager
            continue
        bucket, held = Manager(ANCIENT, UPDATE, version), left.pop(manager)
        before = left.pop(bucket, None) or left.pop(first[version])
        left[bucket] = held._replace(fields=before.fields.union(held.fields))
        surplus -= 1
    return left
