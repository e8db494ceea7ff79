"""ReferenceGrant: lets Gateways and their routes refer to objects of another namespace.

Routes of a mesh need none (decision 19).
"""

from __future__ import annotations

from typing import Final

from msgspec import field

from isthmus.model.columns import AGE
from isthmus.model.conversion import by_schema
from isthmus.model.gateway.parts import API_GROUP, CATEGORIES, gateway_ref
from isthmus.model.kind import Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.references import GROUP, KIND_NAME, NAME, NAMESPACE
from isthmus.model.schema import Schema
from isthmus.model.shapes import about, listed, resource, structure


class GrantFrom(View, frozen=True):
    """Who may refer."""

    group: str = ""
    kind: str = ""
    namespace: str = ""


class GrantTo(View, frozen=True):
    """To what; `name` "" means all of the kind."""

    group: str = ""
    kind: str = ""
    name: str = ""


class ReferenceGrantSpec(View, frozen=True):
    """Any of `from_` may refer to any of `to`."""

    from_: tuple[GrantFrom, ...] = field(default=(), name="from")
    to: tuple[GrantTo, ...] = ()


class ReferenceGrant(View, frozen=True):
    """gateway.networking.k8s.io ReferenceGrant."""

    metadata: Meta = Meta()
    spec: ReferenceGrantSpec = ReferenceGrantSpec()


_FROM: Final = structure(
    {"group": GROUP, "kind": KIND_NAME, "namespace": NAMESPACE},
    required=("group", "kind", "namespace"),
)
_TO: Final = structure(
    {"group": GROUP, "kind": KIND_NAME, "name": NAME}, required=("group", "kind")
)
_SPEC: Final = structure(
    {
        "from": about(listed(_FROM, min_items=1, max_items=16), "Who may refer."),
        "to": about(listed(_TO, min_items=1, max_items=16), "To which objects of this namespace."),
    },
    required=("from", "to"),
)


def _schema(version: str) -> Schema:
    whole = resource(about(_SPEC, "From and to."), ref=gateway_ref(version, "ReferenceGrant"))
    return about(whole, "Lets objects of other namespaces refer to objects of this one.")


_SCHEMAS: Final = {version: _schema(version) for version in ("v1", "v1beta1")}

REFERENCE_GRANT: Final = Kind(
    group=API_GROUP,
    name="ReferenceGrant",
    plural="referencegrants",
    singular="referencegrant",
    short_names=("refgrant",),
    categories=CATEGORIES,
    versions=tuple(Version(name, each, columns=(AGE,)) for name, each in _SCHEMAS.items()),
    stored="v1beta1",
    view=ReferenceGrant,
    status=False,
    convert=by_schema(_SCHEMAS),
)
