"""JSON merge patch (RFC 7386): objects merge, null removes, everything else replaces."""

from __future__ import annotations

from typing import Any

from isthmus.model.kind import Document
from isthmus.serve.kube.patch.values import check_depth, clone, malformed, opened


def merge_patch(document: Document, patch: object) -> Document:
    """The document with the patch merged in. BadRequest unless the patch is an object."""
    if not isinstance(patch, dict):
        raise malformed("", "a merge patch of an object must be an object")
    check_depth(patch)
    merged: Document = opened(document)
    _merge(merged, patch)
    return merged


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            held = target.get(name)
            if not isinstance(held, dict):
                held = target[name] = {}
            _merge(held, value)
        else:
            target[name] = clone(value)
