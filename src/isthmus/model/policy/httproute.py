"""HTTPRoute of policy.linkerd.io: Gateway API's route of 2022, with fewer filters.

v1alpha1 and v1beta1 have no backends, v1beta3 has timeouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, mapping
from isthmus.model.duration import parse_duration
from isthmus.model.faults import forbidden, invalid
from isthmus.model.gateway.filter_rules import filter_faults
from isthmus.model.gateway.http_rules import http_route_warnings, match_faults
from isthmus.model.gateway.http_schema import backend_refs, filters, http_route, matches
from isthmus.model.gateway.parts import ROUTE_COLUMNS, all_rules
from isthmus.model.gateway.route_rules import annotation_faults, parent_faults
from isthmus.model.gateway.views import HttpRoute
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.policy.parts import CATEGORIES, GROUP, policy_ref
from isthmus.model.schema import Schema
from isthmus.model.shapes import STRING, about, structure

_CODES: Final = (301, 302)
_BASE: Final[Mapping[str, Schema]] = {
    "matches": matches(8, strict=False),
    "filters": filters("RequestHeaderModifier", "RequestRedirect", limited_redirect=True),
}
_BACKENDS: Final[Mapping[str, Schema]] = {
    "backendRefs": backend_refs(
        filters(
            "RequestHeaderModifier",
            "ResponseHeaderModifier",
            "RequestRedirect",
            limited_redirect=True,
        ),
        ported=False,
    )
}
_TIMEOUTS: Final[Mapping[str, Schema]] = {
    "timeouts": about(
        structure(
            {
                "request": about(STRING, "For the whole request, retries included."),
                "backendRequest": about(STRING, "For each attempt."),
            }
        ),
        "How long a request may take, as Go durations.",
    )
}


def _schema(version: str, rule: Mapping[str, Schema]) -> Schema:
    return http_route(
        structure(rule), ref=policy_ref(version, "HTTPRoute"), least=None, group=GROUP
    )


_SCHEMAS: Final = {
    "v1beta3": _schema("v1beta3", {**_BASE, **_BACKENDS, **_TIMEOUTS}),
    "v1beta2": _schema("v1beta2", {**_BASE, **_BACKENDS}),
    "v1beta1": _schema("v1beta1", _BASE),
    "v1alpha1": _schema("v1alpha1", _BASE),
}


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from parent_faults(document)
    yield from annotation_faults(document, grpc=False)
    for path, rule in all_rules(document):
        yield from match_faults(rule, path, strict=False)
        yield from filter_faults(items(rule, "filters"), f"{path}.filters", codes=_CODES)
        for index, each in enumerate(items(rule, "backendRefs")):
            here = f"{path}.backendRefs[{index}].filters"
            yield from filter_faults(items(each, "filters"), here, codes=_CODES)
        yield from _timeout_faults(mapping(rule, "timeouts"), f"{path}.timeouts")


def _timeout_faults(timeouts: Mapping[str, Any], path: str) -> Iterator[Cause]:
    spans: dict[str, int] = {}
    for name in ("request", "backendRequest"):
        said = get(timeouts, name)
        span = parse_duration(said) if isinstance(said, str) else 0
        if span is None:
            yield invalid(f"{path}.{name}", said, "must be a duration such as 1m30s")
        elif span < 0:
            yield invalid(f"{path}.{name}", said, "may not be negative")
        elif span:
            spans[name] = span
    if len(spans) == 2 and spans["backendRequest"] > spans["request"]:
        yield forbidden(f"{path}.backendRequest", "may not be longer than the request timeout")


HTTP_ROUTE: Final = Kind(
    group=GROUP,
    name="HTTPRoute",
    plural="httproutes",
    singular="httproute",
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=ROUTE_COLUMNS) for name, each in _SCHEMAS.items()),
    stored="v1beta3",
    view=HttpRoute,
    check=(_check,),
    ruled=True,
    warn=(http_route_warnings,),
    convert=by_schema(_SCHEMAS),
)
