"""GRPCRoute: routes gRPC calls by service, method and headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import items, mapping, text
from isthmus.model.gateway.filter_rules import filter_faults
from isthmus.model.gateway.http_schema import (
    FEW_MATCHES,
    GRPC_ONCE,
    HEADER_MATCHES,
    backend_refs,
    filters,
)
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
    parent_faults,
    regex_faults,
    route_warnings,
    value_match_faults,
)
from isthmus.model.gateway.views import GrpcRoute
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.shapes import about, choice, listed, resource, rule, ruled, structure
from isthmus.model.shapes import text as words

_WORD: Final = "[A-Za-z_][A-Za-z_0-9]*"
_GRAMMARS: Final = {"service": rf"\.?{_WORD}(\.{_WORD})*", "method": _WORD}


def _named(name: str, grammar: str) -> Mapping[str, str]:
    """A name that is compared as it is must be one."""
    unless = f"self.?type.orValue('') == 'RegularExpression' || self.?{name}.orValue('') == ''"
    return rule(
        f"{unless} || self.{name}.matches(r'^{grammar}$')",
        f"{name} must only contain valid characters (matching ^{grammar}$)",
        field=f".{name}",
    )


_METHOD_MATCH: Final = ruled(
    structure(
        {
            "type": about(
                choice("Exact", "RegularExpression", default="Exact"), "How names are compared."
            ),
            "service": about(
                words(max_length=1024), "The service, package and all; any if left out."
            ),
            "method": about(words(max_length=1024), "The method; any if left out."),
        }
    ),
    rule(
        "self.?service.orValue('') != '' || self.?method.orValue('') != ''",
        "One or both of 'service' or 'method' must be specified",
    ),
    *(_named(*each) for each in _GRAMMARS.items()),
)
_MATCH: Final = structure({"method": about(_METHOD_MATCH, "The call."), "headers": HEADER_MATCHES})
_FILTERS: Final = filters(
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestMirror",
    "ExtensionRef",
    once=GRPC_ONCE,
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
        "rules": about(
            ruled(listed(_RULE, max_items=16), FEW_MATCHES), "What happens to which calls."
        ),
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
    for path, each in all_rules(document):
        for index, match in enumerate(items(each, "matches")):
            yield from _match_faults(match, f"{path}.matches[{index}]")
        yield from filter_faults(items(each, "filters"), f"{path}.filters")
        for index, backend in enumerate(items(each, "backendRefs")):
            here = f"{path}.backendRefs[{index}].filters"
            yield from filter_faults(items(backend, "filters"), here)


def _match_faults(match: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from value_match_faults(items(match, "headers"), f"{path}.headers")
    call, here = mapping(match, "method"), f"{path}.method"
    if text(call, "type") == "RegularExpression":
        # Linkerd's webhook refuses these; our own proxies can be told, the others say that not.
        yield from regex_faults(text(call, "service"), f"{here}.service")
        yield from regex_faults(text(call, "method"), f"{here}.method")


def _warn(document: Document, old: Document | None) -> Iterator[str]:
    yield from route_warnings(document, old, grpc=True)


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
    ruled=True,
    warn=(_warn,),
)
