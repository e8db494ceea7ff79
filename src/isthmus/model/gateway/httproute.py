"""HTTPRoute of gateway.networking.k8s.io."""

from __future__ import annotations

from typing import Final

from isthmus.model.conversion import by_schema
from isthmus.model.gateway.http_rules import http_route_faults, http_route_warnings
from isthmus.model.gateway.http_schema import http_route, standard_rule
from isthmus.model.gateway.parts import API_GROUP, CATEGORIES, ROUTE_COLUMNS, gateway_ref
from isthmus.model.gateway.views import HttpRoute
from isthmus.model.kind import Kind, Version

_SCHEMAS: Final = {
    version: http_route(standard_rule(), ref=gateway_ref(version, "HTTPRoute"), least=1)
    for version in ("v1", "v1beta1")
}

HTTP_ROUTE: Final = Kind(
    group=API_GROUP,
    name="HTTPRoute",
    plural="httproutes",
    singular="httproute",
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=ROUTE_COLUMNS) for name, each in _SCHEMAS.items()),
    stored="v1",
    view=HttpRoute,
    check=(http_route_faults,),
    ruled=True,
    warn=(http_route_warnings,),
    convert=by_schema(_SCHEMAS),
)
