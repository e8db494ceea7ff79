"""The CustomResourceDefinition of Link, for an API server that does not serve Links by itself."""

from __future__ import annotations

from isthmus.cli.multicluster.documents import Document, named
from isthmus.model.multicluster import LINK
from isthmus.model.schema import Schema, Type


def link_definition() -> Document:
    """All its versions, with their schemas."""
    plural = f"{LINK.plural}.{LINK.group}"
    versions = [
        {
            "name": version.name,
            "served": True,
            "storage": version.name == LINK.stored,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": _top(version.schema)},
        }
        for version in LINK.versions
    ]
    return named(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural,
        spec={
            "group": LINK.group,
            "scope": "Namespaced",
            "names": {
                "kind": LINK.name, "plural": LINK.plural, "singular": LINK.singular,
                "listKind": f"{LINK.name}List",
            },
            "versions": versions,
        },
    )  # fmt: skip


def _top(schema: Schema) -> Document:
    """What a definition may say: of metadata only that it is there."""
    whole = _node(schema)
    fields = {name: whole["properties"][name] for name in ("spec", "status")}
    plain = {name: {"type": "string"} for name in ("apiVersion", "kind")}
    return {"type": "object", "properties": {**plain, "metadata": {"type": "object"}, **fields}}


def _node(schema: Schema) -> Document:
    node: Document = {"description": schema.description} if schema.description else {}
    match schema.type:
        case Type.OBJECT:
            node |= {
                "type": "object",
                "properties": {name: _node(held) for name, held in schema.fields.items()},
            }
            if schema.required:
                node["required"] = list(schema.required)
        case Type.MAP:
            values = _node(schema.values) if schema.values is not None else {"type": "string"}
            node |= {"type": "object", "additionalProperties": values}
        case Type.ARRAY:
            items = _node(schema.items) if schema.items is not None else {"type": "string"}
            node |= {"type": "array", "items": items}
        case Type.INTEGER | Type.BOOLEAN:
            node["type"] = schema.type.value
        case _:
            node["type"] = "string"
    return node
