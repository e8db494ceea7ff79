"""Schemas as OpenAPI v3 components: every named node once, referred to by name.

Names and extensions (x-kubernetes-patch-merge-key, -list-type, ...) are those of Kubernetes'
published documents, so that clients find what they look for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.model.kind import Kind, Version
from isthmus.model.schema import ListType, Patch, Schema, Type

Node = dict[str, Any]

_META = "io.k8s.apimachinery.pkg"

_SHARED: Mapping[Type, tuple[str, Node]] = {
    Type.INT_OR_STRING: (
        f"{_META}.util.intstr.IntOrString",
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    ),
    Type.QUANTITY: (
        f"{_META}.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    Type.TIME: (f"{_META}.apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
    Type.MICRO_TIME: (f"{_META}.apis.meta.v1.MicroTime", {"type": "string", "format": "date-time"}),
    Type.DURATION: (f"{_META}.apis.meta.v1.Duration", {"type": "string"}),
}
"""Types that are components of their own, so that `kubectl explain` can name them."""

_PLAIN: Mapping[Type, Node] = {
    Type.STRING: {"type": "string"},
    Type.INTEGER: {"type": "integer"},
    Type.NUMBER: {"type": "number"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.BYTES: {"type": "string", "format": "byte"},
    Type.ANY: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


class Components:
    """The components of one document, gathered while its kinds are walked."""

    def __init__(self) -> None:
        self.schemas: dict[str, Node] = {}

    @staticmethod
    def reference(name: str) -> Node:
        """A reference to a component."""
        return {"$ref": f"#/components/schemas/{name}"}

    def kind(self, kind: Kind, version: Version) -> str:
        """Add the schema of a kind and all it reaches; its component's name."""
        name = version.schema.ref or _root_name(kind, version)
        who = {"group": kind.group, "version": version.name, "kind": kind.name}
        self._component(name, version.schema)["x-kubernetes-group-version-kind"] = [who]
        return name

    def _component(self, name: str, schema: Schema) -> Node:
        if name not in self.schemas:
            # Before its fields are walked: a recursive type meets itself there.
            node = self.schemas[name] = {}
            node.update(self._inside(schema))
            if schema.ref_description:
                node["description"] = schema.ref_description
        return self.schemas[name]

    def field(self, schema: Schema) -> Node:
        """The node of a field or an item: a reference with what belongs to the place, or inline."""
        name, shared = _SHARED.get(schema.type, ("", {}))
        if name:
            self.schemas.setdefault(name, shared)
        elif schema.ref:
            name = schema.ref
            self._component(name, schema)
        node: Node = {"allOf": [self.reference(name)]} if name else self._inside(schema)
        if schema.description and not (name and schema.description == schema.ref_description):
            node["description"] = schema.description
        return node | (dict(schema.keywords) if name else {}) | dict(_place(schema))

    def _inside(self, schema: Schema) -> Node:
        """What a schema says of its value, wherever it stands."""
        node: Node = {"description": schema.description} if schema.description else {}
        match schema.type:
            case Type.OBJECT:
                node["type"] = "object"
                if fields := schema.fields:
                    node["properties"] = {name: self.field(held) for name, held in fields.items()}
                if schema.required:
                    node["required"] = list(schema.required)
            case Type.MAP:
                node["type"] = "object"
                node["additionalProperties"] = self.field(schema.values) if schema.values else {}
            case Type.ARRAY:
                node["type"] = "array"
                node["items"] = self.field(schema.items) if schema.items else {}
            case Type.ANY if schema.keywords:
                pass  # a definition says itself what may stand there
            case other:
                node.update(_PLAIN[other])
        return node | dict(_limits(schema)) | dict(schema.keywords)


def _limits(schema: Schema) -> Iterator[tuple[str, Any]]:
    said = {
        "enum": list(schema.enum),
        "pattern": schema.pattern,
        "format": schema.format,
        "nullable": schema.nullable,
    }
    yield from ((name, value) for name, value in said.items() if value)
    numbers = {
        "minimum": schema.minimum,
        "maximum": schema.maximum,
        "minLength": schema.min_length,
        "maxLength": schema.max_length,
        "minItems": schema.min_items,
        "maxItems": schema.max_items,
    }
    yield from ((name, value) for name, value in numbers.items() if value is not None)


def _place(schema: Schema) -> Iterator[tuple[str, Any]]:
    """What belongs to the field rather than to the type: its default, and how it merges."""
    if schema.default is not None:
        yield "default", schema.default
    if schema.patch is not Patch.REPLACE:
        yield "x-kubernetes-patch-strategy", schema.patch.value
    if schema.merge_key:
        yield "x-kubernetes-patch-merge-key", schema.merge_key
    if schema.type is Type.ARRAY:
        yield "x-kubernetes-list-type", schema.list_type.value
    if schema.list_type is ListType.MAP:
        yield "x-kubernetes-list-map-keys", list(schema.list_keys)
    if schema.atomic:
        yield "x-kubernetes-map-type", "atomic"


def _root_name(kind: Kind, version: Version) -> str:
    """The component of a kind whose schema has no name: `io.linkerd.policy.v1beta3.Server`."""
    domain = ".".join(reversed(kind.group.split("."))) if kind.group else "io.k8s.api.core"
    return f"{domain}.{version.name}.{kind.name}"
