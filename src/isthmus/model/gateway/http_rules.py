"""What HTTPRoutes must keep to besides their rules in CEL: expressions, filters, annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.errors import Cause
from isthmus.model.document import get, items, text
from isthmus.model.faults import invalid
from isthmus.model.gateway.filter_rules import filter_faults
from isthmus.model.gateway.parts import all_rules
from isthmus.model.gateway.route_rules import (
    annotation_faults,
    parent_faults,
    path_warnings,
    regex_faults,
    route_warnings,
    value_match_faults,
)
from isthmus.model.kind import Document


def http_route_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    """Every fault of a Gateway API HTTPRoute that its schema does not tell."""
    yield from parent_faults(document)
    yield from annotation_faults(document, grpc=False)
    for path, rule in all_rules(document):
        yield from match_faults(rule, path)
        yield from filter_faults(items(rule, "filters"), f"{path}.filters")
        for index, each in enumerate(items(rule, "backendRefs")):
            here = f"{path}.backendRefs[{index}].filters"
            yield from filter_faults(items(each, "filters"), here)


def http_route_warnings(document: Document, old: Document | None) -> Iterator[str]:
    """What an HTTPRoute says to no effect, or with more effect than one may think."""
    yield from route_warnings(document, old, grpc=False)
    for path, rule in all_rules(document):
        yield from path_warnings(rule, path)


def match_faults(rule: Mapping[str, Any], path: str, *, strict: bool = True) -> Iterator[Cause]:
    """Faults of the matches of a rule. Not `strict`: paths need only be absolute (Linkerd)."""
    for index, match in enumerate(items(rule, "matches")):
        here = f"{path}.matches[{index}]"
        value = text(match, "path.value") if get(match, "path.value") is not None else "/"
        if text(match, "path.type") == "RegularExpression":
            yield from regex_faults(value, f"{here}.path.value")
        elif not strict and not value.startswith("/"):
            yield invalid(f"{here}.path.value", value, "must be an absolute path, such as /")
        for name in ("headers", "queryParams"):
            yield from value_match_faults(items(match, name), f"{here}.{name}")
