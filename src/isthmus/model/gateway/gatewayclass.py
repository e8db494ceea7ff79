"""GatewayClass: which controller runs the Gateways of a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, WIDE, condition_column, value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import ensure, settle
from isthmus.model.gateway.parts import (
    API_GROUP,
    CATEGORIES,
    STATUS_CONDITIONS,
    gateway_ref,
)
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.metacheck import unchanged
from isthmus.model.references import SUBDOMAIN, reference
from isthmus.model.schema import Schema
from isthmus.model.shapes import STRING, about, listed, resource, structure, text


class GatewayClassSpec(View, frozen=True):
    """`controller_name` is `domain/path`."""

    controller_name: str = ""


class GatewayClass(View, frozen=True):
    """gateway.networking.k8s.io GatewayClass."""

    metadata: Meta = Meta()
    spec: GatewayClassSpec = GatewayClassSpec()


def pending(*types: str) -> list[dict[str, Any]]:
    """The conditions that an object is born with: nobody has looked at it yet."""
    return [
        {
            "type": each,
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for controller",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
        for each in types
    ]


_SPEC: Final = structure(
    {
        "controllerName": about(
            text(
                min_length=1,
                max_length=253,
                pattern=rf"^{SUBDOMAIN}\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$",
            ),
            "The controller that runs Gateways of this class; never changes.",
        ),
        "description": about(text(max_length=64), "Words about the class."),
        "parametersRef": reference(
            "Settings of the controller.", required=("group", "kind", "name")
        ),
    },
    required=("controllerName",),
)
_FEATURE: Final = structure({"name": STRING}, required=("name",))
_STATUS: Final = structure(
    {
        "conditions": about(STATUS_CONDITIONS, "Accepted.", default=pending("Accepted")),
        "supportedFeatures": about(
            listed(_FEATURE, keys=("name",), max_items=64), "What Gateways of this class can do."
        ),
    },
    default={"conditions": pending("Accepted")},
)


def _schema(version: str) -> Schema:
    whole = resource(
        about(_SPEC, "The controller and its settings."),
        status=about(_STATUS, "What the controller says."),
        ref=gateway_ref(version, "GatewayClass"),
    )
    return about(whole, "Names the controller that runs the Gateways of a class.")


_SCHEMAS: Final = {version: _schema(version) for version in ("v1", "v1beta1")}
_COLUMNS: Final = (
    value_column("Controller", "spec.controllerName"),
    condition_column("Accepted", "Accepted"),
    AGE,
    value_column("Description", "spec.description", priority=WIDE),
)


def _born(document: Document) -> None:
    """Waiting, until a controller has looked at it."""
    settle(ensure(document, "status"), "conditions", pending("Accepted"))


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    yield from unchanged(document, old, "spec.controllerName")


GATEWAY_CLASS: Final = Kind(
    group=API_GROUP,
    name="GatewayClass",
    plural="gatewayclasses",
    singular="gatewayclass",
    short_names=("gc",),
    categories=CATEGORIES,
    namespaced=False,
    versions=tuple(Version(name, each, columns=_COLUMNS) for name, each in _SCHEMAS.items()),
    stored="v1",
    view=GatewayClass,
    default=(_born,),
    check=(_check,),
    convert=by_schema(_SCHEMAS),
)
