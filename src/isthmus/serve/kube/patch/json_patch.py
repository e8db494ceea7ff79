"""JSON patch (RFC 6902) over the library `jsonpatch`, with bounds and with our faults.

What Kubernetes adds to the RFC: a failed operation, `test` included, is 422; more than 10,000
operations are 413; `test` for null also holds where nothing is.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
from jsonpointer import JsonPointer, JsonPointerException

from isthmus.errors import Cause, Invalid, TooLarge
from isthmus.model.kind import Document
from isthmus.serve.kube.patch.values import (
    MAX_SHOWN,
    check_depth,
    clone,
    malformed,
    opened,
    same,
    weight,
)

MAX_OPERATIONS = 10_000
"""Most operations in one patch (as in Kubernetes)."""

MAX_COPIED = 3 * 1024 * 1024
"""Most bytes that all `copy` operations of a patch may make; or n of them could make 2^n bytes."""

_NEEDS = {
    "add": ("path", "value"),
    "replace": ("path", "value"),
    "test": ("path", "value"),
    "remove": ("path",),
    "move": ("path", "from"),
    "copy": ("path", "from"),
}


def json_patch(document: Document, operations: object) -> Document:
    """The document after all operations. Invalid names the operation that failed and its path."""
    if not isinstance(operations, list):
        raise malformed("", "a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise TooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    check_depth(operations)
    for index, operation in enumerate(operations):
        _check_shape(index, operation)
    return _run(opened(document), clone(operations))


def _check_shape(index: int, operation: object) -> None:
    if not isinstance(operation, dict):
        raise malformed(f"[{index}]", "an operation must be an object")
    name = operation.get("op")
    if not isinstance(name, str) or name not in _NEEDS:
        known = ", ".join(_NEEDS)
        raise malformed(f"[{index}].op", f"must be one of {known}")
    for member in _NEEDS[name]:
        if member not in operation:
            raise malformed(f"[{index}].{member}", f"is required for {name!r}")
        if member != "value" and not _is_pointer(operation[member]):
            raise malformed(f"[{index}].{member}", "must be a JSON pointer: empty, or /a/b")


def _is_pointer(value: object) -> bool:
    return isinstance(value, str) and (not value or value.startswith("/"))


def _run(value: Any, operations: list[dict[str, Any]]) -> Document:  # noqa: ANN401 - any JSON value
    copied = 0
    for index, operation in enumerate(operations):
        try:
            if operation["op"] == "copy":
                copied += weight(JsonPointer(operation["from"]).resolve(value), MAX_COPIED)
            if copied > MAX_COPIED:
                raise _failed(index, operation, f"copies of more than {MAX_COPIED} bytes")
            value = _step(value, index, operation)
        except (
            jsonpatch.JsonPatchException,
            JsonPointerException,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
        ):
            raise _failed(index, operation, _why(value, operation)) from None
    if not isinstance(value, dict):
        raise Invalid("a JSON patch must leave an object", causes=(Cause("", "must be an object"),))
    check_depth(value)
    return value


def _step(value: Any, index: int, operation: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON values
    if operation["op"] != "test":
        return jsonpatch.JsonPatch([operation]).apply(value, in_place=True)
    wanted = operation["value"]
    try:
        held = JsonPointer(operation["path"]).resolve(value)
    except JsonPointerException:
        if wanted is not None:
            raise
        held = None
    if not same(held, wanted):
        raise _failed(index, operation, "test failed: the value is another")
    return value


def _why(value: Any, operation: dict[str, Any]) -> str:  # noqa: ANN401 - any JSON value
    """Why it cannot be done, in words of JSON: the library's tell of Python's values."""
    name, path = operation["op"], operation["path"]
    try:
        parts = JsonPointer(path).parts
        gone = _first_missing(value, parts[:-1] if name in ("add", "move", "copy") else parts)
        # The source comes last: a move that failed has already taken it away.
        if not gone and name in ("move", "copy"):
            gone = _first_missing(value, JsonPointer(operation["from"]).parts)
    except JsonPointerException:
        return "a path is no JSON pointer"
    return f"nothing is at {gone}" if gone else "it does not fit what is there"


def _first_missing(value: Any, parts: list[str]) -> str:  # noqa: ANN401 - any JSON value
    """The shortest beginning of a pointer at which nothing is, or ""."""
    for end in range(1, len(parts) + 1):
        beginning = JsonPointer.from_parts(parts[:end])
        try:
            value = beginning.walk(value, parts[end - 1])
        except (JsonPointerException, TypeError):
            return str(beginning.path)
    return ""


def _failed(index: int, operation: dict[str, Any], why: str) -> Invalid:
    name, path = operation["op"], operation["path"]
    if operation["op"] in ("move", "copy"):
        path = f"{operation['from'][:MAX_SHOWN]} -> {path}"
    where, said = path[:MAX_SHOWN], why[:MAX_SHOWN]
    return Invalid(
        f"the server rejected our request due to an error in our request: "
        f"operation {index} ({name} {where}): {said}",
        causes=(Cause(where, f"operation {index} ({name}): {said}", "UnexpectedServerResponse"),),
    )
