from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.kind import Version
from isthmus.model.schema import ListType, Patch, Schema, Type
from isthmus.serve.kube.components import Components
from tests.unit.serve.kube.kinds import STRING, THING, WIDGET

META = "io.k8s.apimachinery.pkg"


def field(schema: Schema) -> dict[str, Any]:
    return Components().field(schema)


@pytest.mark.parametrize(
    ("schema", "node"),
    [
        (STRING, {"type": "string"}),
        (Schema(type=Type.INTEGER, format="int32", minimum=0, maximum=9),
         {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9}),
        (Schema(type=Type.NUMBER), {"type": "number"}),
        (Schema(type=Type.BOOLEAN, default=False), {"type": "boolean", "default": False}),
        (Schema(type=Type.BYTES), {"type": "string", "format": "byte"}),
        (Schema(type=Type.ANY),
         {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Schema(type=Type.STRING, enum=("a", "b"), pattern="^.$", min_length=1, max_length=2,
                nullable=True, description="A letter."),
         {"type": "string", "enum": ["a", "b"], "pattern": "^.$", "minLength": 1, "maxLength": 2,
          "nullable": True, "description": "A letter."}),
        (Schema(type=Type.MAP, values=STRING, atomic=True),
         {"type": "object", "additionalProperties": {"type": "string"},
          "x-kubernetes-map-type": "atomic"}),
        (Schema(type=Type.MAP), {"type": "object", "additionalProperties": {}}),
        (Schema(type=Type.ARRAY),
         {"type": "array", "items": {}, "x-kubernetes-list-type": "atomic"}),
        (Schema(type=Type.ARRAY, items=STRING, patch=Patch.MERGE, list_type=ListType.SET,
                min_items=1, max_items=2),
         {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2,
          "x-kubernetes-patch-strategy": "merge", "x-kubernetes-list-type": "set"}),
        (Schema(type=Type.OBJECT), {"type": "object"}),
        (Schema(type=Type.OBJECT, properties={"a": STRING}, required=("a",)),
         {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    ],
)  # fmt: skip
def test_inline_nodes(schema: Schema, node: dict[str, Any]) -> None:
    assert field(schema) == node


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (Type.INT_OR_STRING, f"{META}.util.intstr.IntOrString"),
        (Type.QUANTITY, f"{META}.api.resource.Quantity"),
        (Type.TIME, f"{META}.apis.meta.v1.Time"),
        (Type.MICRO_TIME, f"{META}.apis.meta.v1.MicroTime"),
        (Type.DURATION, f"{META}.apis.meta.v1.Duration"),
    ],
)
def test_named_scalars_are_components(type_: Type, name: str) -> None:
    components = Components()
    node = components.field(Schema(type=type_, description="When."))
    assert node == {"allOf": [Components.reference(name)], "description": "When."}
    assert name in components.schemas


def test_how_a_list_merges_belongs_to_the_field_not_to_the_type() -> None:
    components = Components()
    part = Schema(type=Type.OBJECT, ref="x.Part", properties={"name": STRING})
    node = components.field(
        Schema(
            type=Type.ARRAY,
            items=part,
            patch=Patch.MERGE_RETAIN_KEYS,
            merge_key="name",
            list_type=ListType.MAP,
            list_keys=("name",),
        )
    )
    assert node == {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/components/schemas/x.Part"}]},
        "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    assert components.schemas["x.Part"] == {
        "type": "object", "properties": {"name": {"type": "string"}},
    }  # fmt: skip


def test_a_recursive_type_ends() -> None:
    def properties() -> dict[str, Schema]:
        return {"not": tree, "all": Schema(type=Type.ARRAY, items=tree)}

    tree = Schema(type=Type.OBJECT, ref="x.Tree", properties=properties)
    components = Components()
    components.field(tree)
    reference = {"allOf": [{"$ref": "#/components/schemas/x.Tree"}]}
    assert components.schemas["x.Tree"]["properties"]["not"] == reference


def test_a_kind_without_a_name_gets_one_from_its_group() -> None:
    components = Components()
    schema = Schema(type=Type.OBJECT)
    assert components.kind(WIDGET, Version(name="v2", schema=schema)) == "io.example.v2.Widget"
    assert components.kind(THING, Version(name="v1", schema=schema)) == "io.k8s.api.core.v1.Thing"
