"""Refusals as Kubernetes says them: an error of ours becomes a `Status` and an HTTP code.

The *reason* drives what kubectl prints, `details` says of what, `causes` says which fields. An
exception outside our tree is told as an id and nothing more; the log has the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from isthmus.errors import (
    NOBODY,
    AlreadyExists,
    Cause,
    Conflict,
    Forbidden,
    Invalid,
    IsthmusError,
    NotFound,
    Subject,
    TooManyRequests,
    Unavailable,
)
from isthmus.model.kind import Document, Kind

MAX_CAUSES = 1000
"""Most causes in one Status; a hostile object can break more rules than a reader wants to see."""


class Refusal(NamedTuple):
    """What goes back to the asker. `retry_after` (seconds) is 0 where trying again is of no use."""

    code: int
    status: Document
    retry_after: int = 0


def refusal(error: BaseException, incident: str) -> Refusal:
    """The answer for any exception; `incident` is the id under which the log tells more."""
    if not isinstance(error, IsthmusError):
        return _internal(incident)
    retry_after = error.retry_after if isinstance(error, TooManyRequests | Unavailable) else 0
    status = _failure(error.reason, error.http, _message(error), _details(error, retry_after))
    return Refusal(error.http, status, retry_after)


def _internal(incident: str) -> Refusal:
    message = f"Internal error occurred: {incident}"
    details: Document = {"causes": [{"message": incident}]}
    return Refusal(500, _failure("InternalError", 500, message, details))


def _failure(reason: str, code: int, message: str, details: Document) -> Document:
    status: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        status["details"] = details
    status["code"] = code
    return status


def success(about: Subject = NOBODY) -> Document:
    """What a DELETE answers when the object is gone at once."""
    status: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if about != NOBODY:
        status["details"] = _subject(about, about.resource or about.kind)
    return status


def subject(kind: Kind, name: str = "", uid: str = "") -> Subject:
    """What an error about an object of this kind is about."""
    return Subject(group=kind.group, resource=kind.plural, kind=kind.name, name=name, uid=uid)


# ------------------------------------------------------------------------------------------ wording


def _message(error: IsthmusError) -> str:
    """The sentence that Kubernetes has for this reason, around what the error itself says."""
    about = error.about
    match error:
        case NotFound() if about.resource and about.name:
            return f'{about.qualified} "{about.name}" not found'
        case AlreadyExists() if about.resource and about.name:
            return f'{about.qualified} "{about.name}" already exists'
        case Conflict() if about.resource:
            lead = f'Operation cannot be fulfilled on {about.qualified} "{about.name}": '
            return _led(lead, error.message)
        case Forbidden() if about.resource:
            named = f' "{about.name}"' if about.name else ""
            return _led(f"{about.qualified}{named} is forbidden: ", error.message)
        case Invalid() if about.kind:
            kind = f"{about.kind}.{about.group}" if about.group else about.kind
            lead = f'{kind} "{about.name}" is invalid: '
            return _led(lead, _aggregate(error.causes) or error.message)
        case _:
            return error.message or _aggregate(error.causes) or error.reason


def _led(lead: str, message: str) -> str:
    """The message behind its lead, once: some errors already carry it."""
    return message if message.startswith(lead) else lead + message


def _aggregate(causes: Iterable[Cause]) -> str:
    """One fault as it is, several as a list in brackets, each once."""
    lines = list(dict.fromkeys(_line(cause) for cause in list(causes)[:MAX_CAUSES]))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]" if lines else ""


def _line(cause: Cause) -> str:
    body = cause_message(cause)
    return f"{cause.path}: {body}" if cause.path else body


_LEADS: Mapping[str, str] = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotFound": "Not found",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
}
"""How the sentence about a field begins, by cause type (Kubernetes: field.ErrorType)."""


def cause_message(cause: Cause) -> str:
    """The cause's sentence, begun as Kubernetes begins it."""
    lead = _LEADS.get(cause.reason, "")
    if not lead or cause.message.startswith(lead):
        return cause.message
    return f"{lead}: {cause.message}" if cause.message else lead


# ------------------------------------------------------------------------------------------ details


def _details(error: IsthmusError, retry_after: int) -> Document:
    # Kubernetes names the kind of an invalid object and the resource of everything else.
    about = error.about
    named = about.kind if isinstance(error, Invalid) else about.resource
    details = _subject(about, named or about.kind or about.resource)
    if error.causes:
        details["causes"] = [_cause(cause) for cause in error.causes[:MAX_CAUSES]]
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return details


def _subject(about: Subject, kind: str) -> Document:
    named = {"name": about.name, "group": about.group, "kind": kind, "uid": about.uid}
    return {key: value for key, value in named.items() if value}


def _cause(cause: Cause) -> dict[str, Any]:
    said = {"reason": cause.reason, "message": cause_message(cause), "field": cause.path}
    return {key: value for key, value in said.items() if value}
