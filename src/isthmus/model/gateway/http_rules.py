"""What HTTPRoutes must keep to: matches, filters and backends of their rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, text
from isthmus.model.duration import parse_duration
from isthmus.model.faults import invalid
from isthmus.model.gateway.filter_rules import filter_faults, prefix_faults
from isthmus.model.gateway.parts import all_rules
from isthmus.model.gateway.route_rules import (
    annotation_faults,
    backend_faults,
    parent_faults,
    regex_faults,
    route_warnings,
    value_match_faults,
)
from isthmus.model.kind import Document
from isthmus.model.rules import broken

MOST_MATCHES: Final = 128
"""Matches of all rules of a route together."""

_TYPES: Final = "when type one of ['Exact', 'PathPrefix']"
_FORBIDDEN: Final = ("//", "/./", "/../", "%2f", "%2F", "#")
_CHARACTERS: Final = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+")


def http_route_faults(document: Document, _old: Document | None) -> Iterator[Cause]:
    """Every fault of a Gateway API HTTPRoute that its schema does not tell."""
    yield from parent_faults(document)
    yield from annotation_faults(document, grpc=False)
    total = sum(len(items(rule, "matches")) for _, rule in all_rules(document))
    if total > MOST_MATCHES:
        yield broken("spec.rules", [], total_rule(total))
    for path, rule in all_rules(document):
        yield from _rule_faults(rule, path)


def total_rule(total: int) -> str:
    """The sentence about too many matches."""
    return (
        "While 16 rules and 64 matches per rule are allowed, the total number of matches across"
        f" all rules in a route must be no more than {MOST_MATCHES}; there are {total}"
    )


def http_route_warnings(document: Document, _old: Document | None) -> Iterator[str]:
    """What an HTTPRoute says to no effect."""
    yield from route_warnings(document, grpc=False)


def _rule_faults(rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from match_faults(rule, path)
    yield from backend_faults(rule, path)
    filters, backends = items(rule, "filters"), items(rule, "backendRefs")
    yield from filter_faults(filters, f"{path}.filters")
    if backends and any(text(each, "type") == "RequestRedirect" for each in filters):
        says = "RequestRedirect filter must not be used together with backendRefs"
        yield broken(path, rule, says)
    prefixed = _one_prefix(rule)
    yield from prefix_faults(filters, f"{path}.filters", prefixed=prefixed)
    for index, each in enumerate(backends):
        here = f"{path}.backendRefs[{index}].filters"
        own = items(each, "filters")
        yield from filter_faults(own, here)
        yield from prefix_faults(own, here, prefixed=prefixed, within="Within backendRefs, ")
    yield from _timeout_faults(mapping(rule, "timeouts"), f"{path}.timeouts")


def _one_prefix(rule: Mapping[str, Any]) -> bool:
    """Whether a rule has exactly one match, of a path prefix; none at all is the prefix `/`."""
    matches = items(rule, "matches") or [{}]
    return len(matches) == 1 and _path_type(matches[0]) == "PathPrefix"


def _path_type(match: Mapping[str, Any]) -> str:
    return text(match, "path.type") or "PathPrefix"


def match_faults(rule: Mapping[str, Any], path: str, *, strict: bool = True) -> Iterator[Cause]:
    """Faults of the matches of a rule. Not `strict`: paths need only be absolute (Linkerd)."""
    for index, match in enumerate(items(rule, "matches")):
        here = f"{path}.matches[{index}]"
        value = text(match, "path.value") if get(match, "path.value") is not None else "/"
        if _path_type(match) == "RegularExpression":
            yield from regex_faults(value, f"{here}.path.value")
        elif strict:
            yield from _path_faults(value, f"{here}.path")
        elif not value.startswith("/"):
            yield invalid(f"{here}.path.value", value, "must be an absolute path, such as /")
        for name in ("headers", "queryParams"):
            yield from value_match_faults(items(match, name), f"{here}.{name}")


def _path_faults(value: str, path: str) -> Iterator[Cause]:
    if not value.startswith("/"):
        says = f"value must be an absolute path and start with '/' {_TYPES}"
        yield invalid(f"{path}.value", value, says)
    for part in _FORBIDDEN:
        if part in value:
            yield invalid(f"{path}.value", value, f"must not contain '{part}' {_TYPES}")
    for end in ("/..", "/."):
        if value.endswith(end):
            yield invalid(f"{path}.value", value, f"must not end with '{end}' {_TYPES}")
    if not _CHARACTERS.fullmatch(value):
        says = "must only contain valid characters (letters, digits, -/._~!$&'()*+,;=:@ and %XX)"
        yield invalid(f"{path}.value", value, f"{says} {_TYPES}")


def _timeout_faults(timeouts: Mapping[str, Any], path: str) -> Iterator[Cause]:
    request, attempt = (
        parse_duration(text(timeouts, name)) for name in ("request", "backendRequest")
    )
    if request and attempt and attempt > request:
        says = "backendRequest timeout cannot be longer than request timeout"
        yield broken(path, timeouts, says)
