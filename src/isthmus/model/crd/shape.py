"""From a structural schema to `model.Schema`: what pruning, defaults, patches and OpenAPI read.

The types and fields become the Schema's own; what is said of values goes along as `keywords`, so
that OpenAPI tells it, and is checked by `values` and `rules` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.model.crd.nodes import NOTHING, Node
from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.shapes import HEAD

_TOLD: Final = (
    "format", "pattern", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties", "allOf", "anyOf", "oneOf", "not", "nullable", "title", "example",
    "externalDocs", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string", "x-kubernetes-validations",
)  # fmt: skip
"""Keywords that OpenAPI repeats as they were written."""

_SCALARS: Final[Mapping[str, Type]] = {
    "string": Type.STRING,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}

_ANYTHING: Final = Schema(type=Type.ANY, keywords={"x-kubernetes-preserve-unknown-fields": True})


def shape(root: Node) -> Schema:
    """The schema of a whole object: with apiVersion, kind and metadata, whatever the node says."""
    return _shape(root, root=True)


def _shape(node: Node, *, root: bool = False) -> Schema:
    told = {name: node.said[name] for name in _TOLD if name in node.said}
    if root:
        told.pop("x-kubernetes-preserve-unknown-fields", None)
    return Schema(
        type=_type(node),
        description=node.description,
        properties=_fields(node, root=root),
        values=_values(node),
        items=_shape(node.items) if node.items is not None else None,
        required=node.required,
        default=None if node.default is NOTHING else node.default,
        nullable=node.nullable,
        format="int64" if node.int_or_string else "",
        list_type=_LISTS.get(node.list_type, ListType.ATOMIC),
        list_keys=node.list_keys,
        atomic=node.map_type == "atomic",
        preserve=node.preserve,
        keywords=told,
    )


_LISTS: Final = {"set": ListType.SET, "map": ListType.MAP}


def _type(node: Node) -> Type:
    if node.int_or_string:
        return Type.INT_OR_STRING
    if node.type == "array":
        return Type.ARRAY
    if node.type == "object":
        return Type.MAP if node.values is not None or node.open else Type.OBJECT
    # Without a type, but with fields: what is known of them holds wherever an object stands.
    return _SCALARS.get(node.type, Type.OBJECT if node.properties else Type.ANY)


def _fields(node: Node, *, root: bool) -> Mapping[str, Schema]:
    if not node.properties and not node.embedded and not root:
        return {}
    fields: dict[str, Any] = {name: _shape(each) for name, each in node.properties.items()}
    return fields | dict(HEAD) if root or node.embedded else fields


def _values(node: Node) -> Schema | None:
    if node.values is not None:
        return _shape(node.values)
    return _ANYTHING if node.open else None
