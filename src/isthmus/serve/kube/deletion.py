"""What a DELETE asks for: its query and its DeleteOptions body (Kubernetes API conventions)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.kind import Document
from isthmus.serve.kube.query import Query, Reader, shown
from isthmus.store.objects import Preconditions


class Propagation(StrEnum):
    """propagationPolicy: what becomes of the objects that a deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class DeleteOptions(msgspec.Struct, frozen=True):
    """What a delete asks for; `propagation` None leaves it to the kind."""

    propagation: Propagation | None = None
    grace_seconds: int | None = None
    preconditions: Preconditions = Preconditions()
    dry_run: bool = False


def delete_options(query: Query, body: Document | None = None) -> DeleteOptions:
    """The options of a delete from its query and its decoded DeleteOptions body; the body wins."""
    reader = Reader(query, "DeleteOptions")
    given: dict[str, Any] = {**_from_query(reader), **_checked(body or {})}
    options = DeleteOptions(
        propagation=_propagation(reader, given),
        grace_seconds=_grace(reader, given.get("gracePeriodSeconds")),
        preconditions=_preconditions(reader, given.get("preconditions")),
        dry_run=reader.dry_run(_texts(reader, given.get("dryRun"))),
    )
    reader.done()
    return options


def _from_query(reader: Reader) -> dict[str, Any]:
    given = {
        "gracePeriodSeconds": reader.number("gracePeriodSeconds"),
        "orphanDependents": reader.flag("orphanDependents"),
        "propagationPolicy": reader.text("propagationPolicy") or None,
        "dryRun": list(reader.values("dryRun")),
    }
    return {name: value for name, value in given.items() if value is not None}


def _checked(body: Document) -> dict[str, Any]:
    """The body without its type, which must be DeleteOptions (every group has it)."""
    kind = body.get("kind", "DeleteOptions")
    if kind not in ("DeleteOptions", ""):
        raise BadRequest(f"a DELETE takes a body of kind DeleteOptions, not {shown(str(kind))}")
    return {name: value for name, value in body.items() if value is not None}


def _propagation(reader: Reader, given: Mapping[str, Any]) -> Propagation | None:
    orphan, text = given.get("orphanDependents"), given.get("propagationPolicy")
    if orphan is not None and not isinstance(orphan, bool):
        reader.unreadable("orphanDependents", "Invalid value: must be a boolean")
    if orphan is not None and text is not None:
        said = "orphanDependents and deletionPropagation cannot be both set"
        reader.invalid("propagationPolicy", f"Invalid value: {shown(str(text))}: {said}")
    if text is not None:
        known = reader.choice("propagationPolicy", Propagation, str(text))
        return Propagation(known) if known else None
    if orphan is None:
        return None
    return Propagation.ORPHAN if orphan else Propagation.BACKGROUND


def _grace(reader: Reader, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        reader.unreadable("gracePeriodSeconds", "Invalid value: must be an integer")
        return None
    # Kubernetes counts a negative period as the shortest there is, and 2^31 s is past any deadline.
    return max(1, min(value, 2**31)) if value else 0


def _texts(reader: Reader, value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    reader.unreadable("dryRun", "Invalid value: must be a list of strings")
    return []


def _preconditions(reader: Reader, value: object) -> Preconditions:
    if value is None:
        return Preconditions()
    if not isinstance(value, dict):
        reader.unreadable("preconditions", "Invalid value: must be an object")
        return Preconditions()
    uid, revision = value.get("uid") or "", value.get("resourceVersion") or ""
    if not isinstance(uid, str) or not isinstance(revision, str):
        reader.unreadable("preconditions", "Invalid value: uid and resourceVersion must be strings")
        return Preconditions()
    path = "preconditions.resourceVersion"
    number = reader.number_of(path, revision, 0) if revision else None
    # 0 means "no precondition" to the store; no object ever has that resourceVersion.
    if revision and number == 0:
        reader.unreadable(path, 'Invalid value: "0": no object has this resourceVersion')
    return Preconditions(uid, number or 0)
