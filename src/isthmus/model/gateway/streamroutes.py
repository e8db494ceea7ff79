"""TLSRoute (by server name) and TCPRoute (by port alone): routes of whole connections.

The alpha versions are served beside v1, because Linkerd's tools write them. TLSRoutes are stored as
v1alpha2, the only version in which server names may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE
from isthmus.model.conversion import by_schema
from isthmus.model.document import items
from isthmus.model.gateway.parts import (
    API_GROUP,
    CATEGORIES,
    HOSTNAME,
    ROUTE_COLUMNS,
    RULE_NAME,
    STREAM_BACKENDS,
    gateway_ref,
    parent_refs,
    route_status,
)
from isthmus.model.gateway.route_rules import parent_faults, weight_warnings
from isthmus.model.gateway.views import TcpRoute, TlsRoute
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.rules import broken
from isthmus.model.schema import Schema
from isthmus.model.shapes import about, listed, resource, rule, ruled, structure

_SERVER_NAME: Final = ruled(HOSTNAME, rule("!isIP(self)", "must be a name, not an IP address"))
_RULE: Final = structure(
    {"name": RULE_NAME, "backendRefs": STREAM_BACKENDS}, required=("backendRefs",)
)


def _schema(kind: str, version: str, *, most: int, names: bool, needs_names: bool) -> Schema:
    hostnames = about(
        listed(_SERVER_NAME, min_items=1 if needs_names else None, max_items=1024),
        "Server names that the route is for.",
    )
    spec = structure(
        {
            "parentRefs": parent_refs(),
            **({"hostnames": hostnames} if names else {}),
            "rules": about(
                listed(_RULE, min_items=1, max_items=most), "Where the connections go: one rule."
            ),
        },
        required=("hostnames", "rules") if needs_names else ("rules",),
    )
    whole = resource(
        about(spec, "Parents and the rule."),
        status=route_status(),
        ref=gateway_ref(version, kind),
    )
    by = "the server name of TLS, without looking inside" if names else "the port alone"
    return about(whole, f"Routes connections by {by}.")


_TLS: Final = {
    "v1": _schema("TLSRoute", "v1", most=1, names=True, needs_names=True),
    "v1alpha3": _schema("TLSRoute", "v1alpha3", most=1, names=True, needs_names=True),
    "v1alpha2": _schema("TLSRoute", "v1alpha2", most=16, names=True, needs_names=False),
}
_TCP: Final = {
    "v1": _schema("TCPRoute", "v1", most=1, names=False, needs_names=False),
    "v1alpha2": _schema("TCPRoute", "v1alpha2", most=16, names=False, needs_names=False),
}


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from parent_faults(document)
    rules = items(document, "spec.rules")
    if len(rules) != 1:
        yield broken("spec.rules", [], f"must have exactly one rule; there are {len(rules)}")


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    for index, each in enumerate(items(document, "spec.rules")):
        yield from weight_warnings(each, f"spec.rules[{index}]")


TLS_ROUTE: Final = Kind(
    group=API_GROUP,
    name="TLSRoute",
    plural="tlsroutes",
    singular="tlsroute",
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=ROUTE_COLUMNS) for name, each in _TLS.items()),
    stored="v1alpha2",
    view=TlsRoute,
    check=(_check,),
    ruled=True,
    warn=(_warn,),
    convert=by_schema(_TLS),
)

TCP_ROUTE: Final = Kind(
    group=API_GROUP,
    name="TCPRoute",
    plural="tcproutes",
    singular="tcproute",
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=(AGE,)) for name, each in _TCP.items()),
    stored="v1",
    view=TcpRoute,
    check=(_check,),
    ruled=True,
    warn=(_warn,),
    convert=by_schema(_TCP),
)
