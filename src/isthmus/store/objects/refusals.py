"""Refusals about objects, in the sentences that users of Kubernetes know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from isthmus.errors import (
    AlreadyExists,
    Cause,
    Conflict,
    Invalid,
    NotFound,
    Subject,
    TooLarge,
    Unavailable,
)
from isthmus.model.kind import Kind

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def about(kind: Kind, name: str, uid: str = "") -> Subject:
    """What an error on this object is about."""
    return Subject(kind.group, kind.plural, kind.name, name, uid)


def quoted(text: str) -> str:
    """Text in double quotes, safe to print whatever is in it."""
    return json.dumps(text)


def not_found(kind: Kind, name: str) -> NotFound:
    """`services "x" not found`."""
    return NotFound(f"{kind.resource} {quoted(name)} not found", about=about(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    """`services "x" already exists`."""
    return AlreadyExists(f"{kind.resource} {quoted(name)} already exists", about=about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    """`Operation cannot be fulfilled on services "x": …`."""
    return Conflict(
        f"Operation cannot be fulfilled on {kind.resource} {quoted(name)}: {why}",
        about=about(kind, name),
    )


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> Invalid:
    """`Service "x" is invalid: spec.ports: Required value`; several causes stand in brackets."""
    lines = [f"{cause.path}: {cause.message}" if cause.path else cause.message for cause in causes]
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    what = f"{kind.name}.{kind.group}" if kind.group else kind.name
    return Invalid(
        f"{what} {quoted(name)} is invalid: {listed}", about=about(kind, name), causes=causes
    )


def too_large(kind: Kind, name: str, size: int, limit: int) -> TooLarge:
    """The object does not fit, however it came."""
    return TooLarge(
        f"{kind.resource} {quoted(name)} takes {size} bytes as stored; the limit is {limit}",
        about=about(kind, name),
    )


def restless(kind: Kind, name: str, attempts: int) -> Unavailable:
    """Others were faster each time. Not a Conflict: the writer named no version."""
    return Unavailable(
        f"{kind.resource} {quoted(name)} was changed by others during each of {attempts} attempts",
        about=about(kind, name),
    )
