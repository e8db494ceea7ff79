from __future__ import annotations

from typing import Any

from isthmus.model.crd.shape import shape
from isthmus.model.crd.structural import read
from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.walk import defaults, drop_nulls, prune, unknown_fields


def schema(spec: dict[str, Any]) -> Schema:
    found = read({"type": "object", "properties": {"spec": spec}}, "")
    assert found.faults == ()
    return shape(found.root)


def spec_of(spec: dict[str, Any]) -> Schema:
    return schema(spec).fields["spec"]


def test_every_object_has_its_head() -> None:
    assert set(schema({"type": "object"}).fields) == {"apiVersion", "kind", "metadata", "spec"}


def test_types_and_lists() -> None:
    text = {"type": "string"}
    assert spec_of({"type": "object"}).type is Type.OBJECT
    assert spec_of({"type": "object", "additionalProperties": text}).type is Type.MAP
    values = spec_of({"type": "object", "additionalProperties": True}).values
    assert values is not None
    assert values.type is Type.ANY
    assert spec_of({"x-kubernetes-int-or-string": True}).type is Type.INT_OR_STRING
    assert spec_of({"x-kubernetes-preserve-unknown-fields": True}).type is Type.ANY
    item = {"type": "object", "required": ["k"], "properties": {"k": text}}
    listed = {"type": "array", "items": item}
    keyed = {**listed, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    assert spec_of(listed).list_type is ListType.ATOMIC
    assert (spec_of(keyed).list_type, spec_of(keyed).list_keys) == (ListType.MAP, ("k",))
    assert (
        spec_of({"type": "array", "items": text, "x-kubernetes-list-type": "set"}).list_type
        is ListType.SET
    )
    assert spec_of({**item, "x-kubernetes-map-type": "atomic"}).atomic


def test_rules_of_values_go_along_as_written() -> None:
    said = {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "enum": [2, 3]}
    assert spec_of(said).keywords == {"minimum": 1, "exclusiveMinimum": True, "enum": [2, 3]}
    # What walks of the schema would check themselves is left to the kind's own check.
    assert (spec_of(said).minimum, spec_of(said).enum) == (None, ())


def test_unknown_fields_go_or_stay() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "object"}}}
    held = {"spec": {"a": {"z": 1}, "y": 2}, "x": 3}
    strict = schema(inner)
    assert unknown_fields(strict, held) == ["x", "spec.y", "spec.a.z"]
    prune(strict, held)
    assert held == {"spec": {"a": {}}}
    kept = {"spec": {"a": {"z": 1}, "y": 2}}
    loose = schema({**inner, "x-kubernetes-preserve-unknown-fields": True})
    assert unknown_fields(loose, kept) == ["spec.a.z"]
    prune(loose, kept)
    assert kept == {"spec": {"a": {}, "y": 2}}
    embedded = schema({
        "type": "object", "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    })  # fmt: skip
    document = {"spec": {"kind": "A", "metadata": {"name": "n", "nonsense": 1}, "spec": {}}}
    assert unknown_fields(embedded, document) == ["spec.metadata.nonsense"]


def test_defaults_and_nulls() -> None:
    fields = {
        "a": {"type": "integer", "default": 1},
        "b": {"type": "string", "nullable": True, "default": "x"},
        "c": {"type": "string"},
        "o": {
            "type": "object",
            "default": {},
            "properties": {"d": {"type": "string", "default": "y"}},
        },
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "l": {
            "type": "array",
            "items": {"type": "object", "properties": {"e": {"type": "integer", "default": 2}}},
        },
    }
    of = schema({"type": "object", "properties": fields})
    document: dict[str, Any] = {
        "spec": {"a": None, "b": None, "c": None, "m": {"k": None}, "l": [{}, {"e": 3}]}
    }
    drop_nulls(of, document)
    defaults(of, document)
    assert document["spec"] == {
        "a": 1, "b": None, "o": {"d": "y"}, "m": {}, "l": [{"e": 2}, {"e": 3}],
    }  # fmt: skip
    bare: dict[str, Any] = {}
    defaults(of, bare)
    assert bare == {}
