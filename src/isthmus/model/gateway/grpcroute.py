"""GRPCRoute: routes gRPC calls by service, method and headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, text
from isthmus.model.faults import invalid
from isthmus.model.gateway.filter_rules import GRPC_ONCE, filter_faults
from isthmus.model.gateway.http_rules import MOST_MATCHES, total_rule
from isthmus.model.gateway.http_schema import HEADER_MATCHES, backend_refs, filters
from isthmus.model.gateway.parts import (
    API_GROUP,
    CATEGORIES,
    HOSTNAMES,
    ROUTE_COLUMNS,
    RULE_NAME,
    all_rules,
    gateway_ref,
    parent_refs,
    route_status,
)
from isthmus.model.gateway.route_rules import (
    annotation_faults,
    backend_faults,
    parent_faults,
    regex_faults,
    route_warnings,
    value_match_faults,
)
from isthmus.model.gateway.views import GrpcRoute
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.rules import broken
from isthmus.model.shapes import about, choice, listed, resource, structure
from isthmus.model.shapes import text as words

_SERVICE: Final = re.compile(r"\.?[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)*", re.IGNORECASE)
_METHOD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

_METHOD_MATCH: Final = structure(
    {
        "type": about(
            choice("Exact", "RegularExpression", default="Exact"), "How names are compared."
        ),
        "service": about(words(max_length=1024), "The service, package and all; any if left out."),
        "method": about(words(max_length=1024), "The method; any if left out."),
    }
)
_MATCH: Final = structure({"method": about(_METHOD_MATCH, "The call."), "headers": HEADER_MATCHES})
_FILTERS: Final = filters(
    "RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror", "ExtensionRef"
)
_RULE: Final = structure(
    {
        "name": RULE_NAME,
        "matches": about(
            listed(_MATCH, max_items=64), "One of these must match; every call does if left out."
        ),
        "filters": _FILTERS,
        "backendRefs": backend_refs(_FILTERS),
    }
)
_SPEC: Final = structure(
    {
        "parentRefs": parent_refs(),
        "hostnames": HOSTNAMES,
        "rules": about(listed(_RULE, max_items=16), "What happens to which calls."),
    }
)
_SCHEMA: Final = about(
    resource(
        about(_SPEC, "Parents, hosts and rules."),
        status=route_status(),
        ref=gateway_ref("v1", "GRPCRoute"),
    ),
    "Routes gRPC calls by host, service, method and headers.",
)


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from parent_faults(document)
    yield from annotation_faults(document, grpc=True)
    total = sum(len(items(rule, "matches")) for _, rule in all_rules(document))
    if total > MOST_MATCHES:
        yield broken("spec.rules", [], total_rule(total))
    for path, rule in all_rules(document):
        for index, match in enumerate(items(rule, "matches")):
            yield from _match_faults(match, f"{path}.matches[{index}]")
        yield from backend_faults(rule, path)
        yield from filter_faults(items(rule, "filters"), f"{path}.filters", once=GRPC_ONCE)
        for index, each in enumerate(items(rule, "backendRefs")):
            here = f"{path}.backendRefs[{index}].filters"
            yield from filter_faults(items(each, "filters"), here, once=GRPC_ONCE)


def _match_faults(match: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from value_match_faults(items(match, "headers"), f"{path}.headers")
    call, here = mapping(match, "method"), f"{path}.method"
    if get(match, "method") is None:
        return
    service, method = text(call, "service"), text(call, "method")
    if not service and not method:
        yield broken(here, call, "One or both of 'service' or 'method' must be specified")
    if text(call, "type") == "RegularExpression":
        # Linkerd's webhook refuses these; our own proxies can be told, the others say that not.
        yield from regex_faults(service, f"{here}.service")
        yield from regex_faults(method, f"{here}.method")
        return
    for name, value, grammar in (("service", service, _SERVICE), ("method", method, _METHOD)):
        if value and not grammar.fullmatch(value):
            says = f"{name} must only contain valid characters (matching ^{grammar.pattern}$)"
            yield invalid(f"{here}.{name}", value, says)


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    yield from route_warnings(document, grpc=True)


GRPC_ROUTE: Final = Kind(
    group=API_GROUP,
    name="GRPCRoute",
    plural="grpcroutes",
    singular="grpcroute",
    categories=CATEGORIES,
    versions=(Version("v1", _SCHEMA, columns=ROUTE_COLUMNS),),
    stored="v1",
    view=GrpcRoute,
    check=(_check,),
    warn=(_warn,),
)
