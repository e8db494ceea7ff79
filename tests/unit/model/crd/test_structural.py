from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.crd.structural import MAX_NODES, read

Said = dict[str, Any]


def faults(spec: Said) -> list[str]:
    """The faults of a schema whose `spec` is this, as `path: message`."""
    whole = {"type": "object", "properties": {"spec": spec}}
    start = ".properties[spec]"
    return [f"{each.path.removeprefix(start)}: {each.message}" for each in read(whole, "").faults]


def test_a_schema_becomes_a_tree() -> None:
    said = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {"type": "integer", "minimum": 1, "maximum": 5.5, "default": 2},
                    "b": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                    "c": {"type": "object", "additionalProperties": {"type": "number"}},
                    "d": {"x-kubernetes-int-or-string": True},
                },
                "x-kubernetes-validations": [{"rule": "true", "message": "m"}],
            }
        },
    }
    found = read(said, "")
    assert found.faults == ()
    spec = found.root.properties["spec"]
    assert (spec.required, spec.rules[0].rule, spec.rules[0].message) == (("a",), "true", "m")
    a, b, c, d = (spec.properties[name] for name in "abcd")
    assert (a.bounds.minimum, a.bounds.maximum, a.default) == (1, 5.5, 2)
    assert b.items is not None
    assert c.values is not None
    assert (b.items.type, b.bounds.max_items, c.values.type) == ("string", 3, "number")
    assert d.int_or_string


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, ".type: Required value: must not be empty for specified object fields"),
        ({"type": "text"}, '.type: Unsupported value: "text": supported values: "array"'),
        ({"type": "array"}, ".items: Required value: must be specified"),
        ({"type": "array", "items": {}}, ".items.type: Required value: must not be empty"),
        ({"type": "array", "items": [{"type": "string"}]}, "must be a schema object and not"),
        ({"$ref": "#/definitions/a", "type": "object"}, ".$ref: Forbidden: $ref is not supported"),
        ({"type": "object", "definitions": {"a": {}}}, ".definitions: Forbidden"),
        ({"type": "object", "patternProperties": {"a": {}}}, ".patternProperties: Forbidden"),
        ({"type": "object", "frobnicate": 1}, ".frobnicate: Forbidden: is no keyword"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "quadratic"),
        ({"type": "object", "additionalProperties": False}, "cannot be set to false"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}},
             "additionalProperties": {"type": "string"}},
            "mutual exclusive",
        ),
        ({"type": "string", "properties": {"a": {"type": "string"}}}, "must be object where"),
        ({"type": "string", "pattern": "(?<=a)b"}, ".pattern: Invalid value"),
        ({"type": "string", "x-kubernetes-int-or-string": True}, "must be empty if"),
        ({"type": "string", "x-kubernetes-preserve-unknown-fields": True}, "must be object if"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "true or undefined"),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, ".properties: Required"),
        ({"type": "object", "x-kubernetes-map-type": "big"}, 'supported values: "atomic"'),
        ({"type": "string", "x-kubernetes-map-type": "atomic"}, "must be object if"),
        ({"type": "number", "multipleOf": 0}, "must be greater than 0"),
        ({"type": "string", "maxLength": "a"}, '.maxLength: Invalid value: "string"'),
        ({"type": 5}, '.type: Invalid value: "number"'),
        ("text", ': Invalid value: "string"'),
        ({"type": "object", "properties": {"a": 1}}, '.properties[a]: Invalid value: "number"'),
    ],
)  # fmt: skip
def test_what_is_not_structural_is_refused(spec: Any, says: str) -> None:  # noqa: ANN401 - JSON
    assert any(says in each for each in faults(spec)), faults(spec)


def listed(items: Said, **said: object) -> Said:
    return {"type": "array", "items": items} | {
        f"x-kubernetes-{k.replace('_', '-')}": v for k, v in said.items()
    }


KEYED = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (listed(KEYED, list_type="bag"), "Unsupported value"),
        (listed(KEYED, list_map_keys=["k"]), "must be map if x-kubernetes-list-map-keys"),
        (listed(KEYED, list_type="map"), "must not be empty if x-kubernetes-list-type is map"),
        (listed(KEYED, list_type="map", list_map_keys=["z"]), "must all be names of item"),
        (listed(KEYED, list_type="map", list_map_keys=["k", "k"]), "may not say a key twice"),
        (listed({"type": "string"}, list_type="map", list_map_keys=["k"]), "must be object if"),
        (
            listed({**KEYED, "required": []}, list_type="map", list_map_keys=["k"]),
            "or have a default",
        ),
        (listed({**KEYED, "nullable": True}, list_type="map", list_map_keys=["k"]), "nullable"),
        (listed(KEYED, list_type="set"), "items of a set must be scalars or atomic"),
        ({"type": "object", "x-kubernetes-list-type": "set"}, "must be array if"),
    ],
)
def test_lists_of_types_have_what_they_need(spec: Said, says: str) -> None:
    assert any(says in each for each in faults(spec)), faults(spec)


def test_good_lists_are_taken() -> None:
    assert faults(listed(KEYED, list_type="map", list_map_keys=["k"])) == []
    assert faults(listed({"type": "string"}, list_type="set")) == []
    assert faults(listed({**KEYED, "x-kubernetes-map-type": "atomic"}, list_type="set")) == []


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"type": "object"}, ".anyOf[0].type: Forbidden: must be empty to be structural"),
        ({"description": "a"}, ".anyOf[0].description: Forbidden"),
        ({"nullable": True}, ".anyOf[0].nullable: Forbidden"),
        ({"default": 1}, ".anyOf[0].default: Forbidden"),
        ({"additionalProperties": {}}, ".anyOf[0].additionalProperties: Forbidden"),
        ({"properties": {"z": {"minimum": 1}}}, ".properties[z]: Required value: because"),
        ({"items": {"minimum": 1}}, ".items: Required value: because"),
        ({"not": {"properties": {"z": {}}}}, ".properties[z]: Required value: because"),
        ({"x-kubernetes-validations": [{"rule": "true"}]}, "Forbidden"),
    ],
)
def test_parts_speak_of_values_only(part: Said, says: str) -> None:
    spec = {"type": "object", "properties": {"a": {"type": "integer"}}, "anyOf": [part]}
    found = faults(spec)
    assert any(says in each for each in found), found


def test_parts_that_combine_known_fields_are_taken() -> None:
    spec = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"properties": {"a": {"enum": [7]}}, "required": ["a"]},
    }
    assert faults(spec) == []
    either: Said = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    }
    assert faults(either) == []
    assert faults({**either, "allOf": [{"pattern": "^a"}]}) == []


def test_the_root_is_an_object_and_metadata_is_ours() -> None:
    assert "must be object at the root" in read({"type": "string"}, "").faults[0].message
    assert "must be object at the root" in read({}, "").faults[-1].message
    for meta in (
        {"type": "object", "properties": {"labels": {"type": "object"}}},
        {"type": "string"},
    ):
        said = {"type": "object", "properties": {"metadata": meta}}
        assert read(said, "").faults
    name = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}
    assert read({"type": "object", "properties": {"metadata": name}}, "").faults == ()


def test_all_faults_are_told_at_once() -> None:
    spec = {"type": "object", "properties": {"a": {}, "b": {"type": "x"}, "c": {"type": "array"}}}
    assert len(faults(spec)) == 3


def test_bombs_are_told_as_faults() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(MAX_NODES)}}
    (fault,) = faults(wide)
    assert "at most 20000 nodes" in fault
    deep: Said = {"type": "string"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    assert any("nested more than 60 deep" in each for each in faults(deep))
    logic: Said = {"minimum": 1}
    for _ in range(100):
        logic = {"not": logic}
    assert any("nested" in each for each in faults({"type": "integer", "not": logic}))
