"""Conversion between versions of a kind whose fields have the same names and meanings.

Kubernetes does this to custom resources without a conversion webhook (`strategy: None`): fields
that the wanted version does not know are left out, and its defaults are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

from isthmus.model.kind import Convert, Document
from isthmus.model.schema import Schema
from isthmus.model.walk import defaults, prune

Reshape = Callable[[Document, str, str], None]
"""(document, from version, to version): renames and rewrites what differs, in place."""


def _as_it_is(_document: Document, _present: str, _wanted: str) -> None:
    """The shapes agree."""


def by_schema(schemas: Mapping[str, Schema], reshape: Reshape = _as_it_is) -> Convert:
    """A conversion that reshapes a copy and then fits it to the wanted version's schema."""

    def convert(document: Document, present: str, wanted: str) -> Document:
        copy = deepcopy(document)
        reshape(copy, present, wanted)
        prune(schemas[wanted], copy)
        defaults(schemas[wanted], copy)
        return copy

    return convert
