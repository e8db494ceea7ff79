"""Faults of objects in Kubernetes' words: what `field.Error` says, as values.

Each function makes one Cause; its message is what kubectl prints behind the path. Values are shown
as JSON, cut where they are long, so that a fault never answers with the whole body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from isthmus.errors import Cause

_SHOWN: Final = 200


def show(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A value as a message shows it: JSON, at most a line."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def required(path: str, detail: str = "") -> Cause:
    """Something that must be there is not."""
    return Cause(
        path, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired"
    )


def invalid(path: str, value: Any, detail: str) -> Cause:  # noqa: ANN401 - any JSON value
    """The value breaks a rule; `detail` says which."""
    return Cause(path, f"Invalid value: {show(value)}: {detail}", "FieldValueInvalid")


def wrong_type(path: str, value: Any, detail: str) -> Cause:  # noqa: ANN401 - any JSON value
    """The value is of another JSON type than it must be."""
    return Cause(path, f"Invalid value: {show(value)}: {detail}", "FieldValueTypeInvalid")


def not_supported(path: str, value: Any, supported: Iterable[str]) -> Cause:  # noqa: ANN401 - any JSON value
    """The value is not one of the words that mean something."""
    words = ", ".join(f'"{word}"' for word in supported)
    return Cause(
        path,
        f"Unsupported value: {show(value)}: supported values: {words}",
        "FieldValueNotSupported",
    )


def duplicate(path: str, value: Any) -> Cause:  # noqa: ANN401 - any JSON value
    """The value stands there twice, and may only once."""
    return Cause(path, f"Duplicate value: {show(value)}", "FieldValueDuplicate")


def forbidden(path: str, detail: str) -> Cause:
    """The field may not be set, or not be changed."""
    return Cause(path, f"Forbidden: {detail}", "FieldValueForbidden")


def immutable(path: str, value: Any) -> Cause:  # noqa: ANN401 - any JSON value
    """The field was changed and may never be."""
    return invalid(path, value, "field is immutable")


def too_long(path: str, limit: int) -> Cause:
    """The text, or the sum of texts, is over `limit` bytes."""
    return Cause(path, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(path: str, count: int, limit: int) -> Cause:
    """The list is longer than `limit`."""
    return Cause(path, f"Too many: {count}: must have at most {limit} items", "FieldValueTooMany")


def not_found(path: str, value: Any) -> Cause:  # noqa: ANN401 - any JSON value
    """The value names something that is not there."""
    return Cause(path, f"Not found: {show(value)}", "FieldValueNotFound")


def one_of(path: str, value: str, supported: Iterable[str]) -> Iterable[Cause]:
    """The fault of a word outside `supported`, if it is; empty text is left to defaults."""
    words = tuple(supported)
    return () if not value or value in words else (not_supported(path, value, words),)
