from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.crd.structural import read
from isthmus.model.crd.values import ABSENT, MAX_STEPS
from isthmus.model.crd.values import faults as value_faults
from isthmus.model.walk import MAX_FAULTS

Said = dict[str, Any]


def faults(spec: Said, value: Any, old: Any = ABSENT) -> dict[str, str]:  # noqa: ANN401 - JSON
    """The faults of a value at `spec`: path to message."""
    found = read({"type": "object", "properties": {"spec": spec}}, "")
    assert found.faults == ()
    before = ABSENT if old is ABSENT else {"spec": old}
    causes = value_faults(found.root, {"spec": value}, before)
    return {each.path: each.message for each in causes}


def one(spec: Said, value: Any) -> str:  # noqa: ANN401 - JSON
    """The one fault at `spec`, or ""."""
    found = faults(spec, value)
    assert found.keys() <= {"spec"}, found
    return found.get("spec", "")


TEXT = {"type": "string"}
NUMBER = {"type": "number"}
WHOLE = {"type": "integer"}


@pytest.mark.parametrize(
    ("spec", "good", "bad", "says"),
    [
        (TEXT, "a", 1, 'Invalid value: "integer": spec in body must be of type string: "integer"'),
        (TEXT, "a", None, 'spec in body must be of type string: "null"'),
        ({**TEXT, "nullable": True}, None, 1, "must be of type string"),
        (WHOLE, 1, 1.5, 'must be of type integer: "number"'),
        (WHOLE, 2.0, True, 'must be of type integer: "boolean"'),
        (NUMBER, 1, "1", 'must be of type number: "string"'),
        ({"type": "boolean"}, False, 0, 'must be of type boolean: "integer"'),
        ({"type": "array", "items": TEXT}, [], {}, 'must be of type array: "object"'),
        ({"type": "object"}, {}, [], 'must be of type object: "array"'),
        ({"x-kubernetes-int-or-string": True}, 5, True, "must be of type integer,string"),
        ({"x-kubernetes-int-or-string": True}, "5%", 1.5, "must be of type integer,string"),
        ({**TEXT, "enum": ["a", "b"]}, "a", "c",
         'Unsupported value: "c": supported values: "a", "b"'),
        ({**WHOLE, "enum": [1]}, 1, 2, "Unsupported value: 2"),
        ({**TEXT, "pattern": "^a+$"}, "aa", "ab",
         "Invalid value: \"ab\": spec in body should match '^a+$'"),
        ({**TEXT, "maxLength": 2}, "éé", "abc", "Too long: may not be more than 2 bytes"),
        ({**TEXT, "minLength": 2}, "ab", "a", "spec in body should be at least 2 chars long"),
        ({**WHOLE, "minimum": 1}, 1, 0, "should be greater than or equal to 1"),
        ({**WHOLE, "minimum": 1, "exclusiveMinimum": True}, 2, 1, "should be greater than 1"),
        ({**NUMBER, "maximum": 1.5}, 1.5, 1.6, "should be less than or equal to 1.5"),
        ({**WHOLE, "maximum": 5, "exclusiveMaximum": True}, 4, 5, "should be less than 5"),
        ({**WHOLE, "multipleOf": 3}, 9, 10, "should be a multiple of 3"),
        ({**NUMBER, "multipleOf": 0.1}, 0.3, 0.35, "should be a multiple of 0.1"),
        ({**WHOLE, "format": "int32"}, 2**31 - 1, 2**31, "must be of type int32"),
        ({**TEXT, "format": "date-time"}, "2026-01-02T03:04:05Z", "monday",
         'spec in body must be of type date-time: "monday"'),
        ({**TEXT, "format": "ipv4"}, "10.0.0.1", "::1", "must be of type ipv4"),
        ({**TEXT, "format": "unheard-of"}, "anything", 1, "must be of type string"),
        ({"type": "array", "items": TEXT, "maxItems": 1}, ["a"], ["a", "b"],
         "Too many: 2: must have at most 1 items"),
        ({"type": "array", "items": TEXT, "minItems": 1}, ["a"], [],
         "should have at least 1 items"),
        ({"type": "object", "additionalProperties": TEXT, "maxProperties": 1}, {"a": "b"},
         {"a": "b", "c": "d"}, "Too many: 2"),
        ({"type": "object", "additionalProperties": TEXT, "minProperties": 1}, {"a": "b"}, {},
         "should have at least 1 properties"),
    ],
)  # fmt: skip
def test_each_keyword(spec: Said, good: Any, bad: Any, says: str) -> None:  # noqa: ANN401 - JSON
    assert one(spec, good) == ""
    assert says in one(spec, bad)


def test_faults_of_all_places_are_told_together() -> None:
    spec = {
        "type": "object",
        "required": ["must"],
        "properties": {
            "must": TEXT,
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": WHOLE}}},
            "map": {"type": "object", "additionalProperties": WHOLE},
        },
    }
    found = faults(spec, {"list": [{"n": 1}, {"n": "x"}], "map": {"a": "b"}, "unknown": 1})
    assert found.keys() == {"spec.must", "spec.list[1].n", "spec.map.a"}
    assert found["spec.must"] == "Required value"


LOGIC = {"type": "object", "properties": {"a": WHOLE, "b": WHOLE}}
EITHER = [{"required": ["a"]}, {"required": ["b"]}]


def test_parts_combine() -> None:
    assert one({**LOGIC, "oneOf": EITHER}, {"a": 1}) == ""
    assert "oneOf). Found 2 valid" in one({**LOGIC, "oneOf": EITHER}, {"a": 1, "b": 1})
    none = faults({**LOGIC, "oneOf": EITHER}, {})
    assert "must validate one and only one schema (oneOf). Found none valid" in none["spec"]
    assert none["spec.a"] == "Required value"
    assert one({**LOGIC, "anyOf": EITHER}, {"a": 1, "b": 1}) == ""
    assert "at least one schema (anyOf)" in faults({**LOGIC, "anyOf": EITHER}, {})["spec"]
    assert "all the schemas (allOf)" in faults({**LOGIC, "allOf": EITHER}, {"a": 1})["spec"]
    assert "must not validate the schema (not)" in one({**LOGIC, "not": EITHER[0]}, {"a": 1})
    assert one({**LOGIC, "not": EITHER[0]}, {"b": 1}) == ""


def keyed(default: object = None) -> Said:
    k = TEXT if default is None else {**TEXT, "default": default}
    fields = {"k": k, "v": WHOLE}
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": fields, "required": [] if default else ["k"]},
    }


def test_lists_hold_nothing_twice() -> None:
    unique = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    assert faults(unique, ["a", "b", "a"]) == {"spec[2]": 'Duplicate value: "a"'}
    assert faults(keyed(), [{"k": "a"}, {"k": "a"}]) == {"spec[1]": 'Duplicate value: {"k":"a"}'}
    assert faults(keyed("a"), [{"k": "a"}, {}]).keys() == {"spec[1]"}
    assert faults({**unique, "items": {}} | {"items": WHOLE}, [1, 2]) == {}


def test_an_embedded_object_says_what_it_is() -> None:
    spec = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    good = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    assert faults(spec, good) == {}
    assert faults(spec, {"kind": ""}).keys() == {"spec.apiVersion", "spec.kind"}
    assert "spec.metadata.labels" in faults(spec, {**good, "metadata": {"labels": 1}})
    assert "spec.metadata" in faults(spec, {**good, "metadata": 1})


def test_what_has_not_changed_is_not_found_fault_with() -> None:
    spec: Said = {"type": "object", "properties": {"a": {**WHOLE, "maximum": 5}, "l": keyed()}}
    spec["properties"]["l"]["items"]["properties"]["v"] = {**WHOLE, "maximum": 5}
    old = {"a": 9, "l": [{"k": "x", "v": 9}, {"k": "y", "v": 1}]}
    assert faults(spec, old, old) == {}
    changed = {"a": 8, "l": [{"k": "y", "v": 7}, {"k": "x", "v": 9}]}
    assert faults(spec, changed, old).keys() == {"spec.a", "spec.l[0].v"}
    assert faults(spec, {**old, "a": True}, {**old, "a": 1}).keys() == {"spec.a"}


def test_the_work_is_bounded() -> None:
    many = {"type": "array", "items": {**WHOLE, "anyOf": [{"enum": [n]} for n in range(1000)]}}
    found = faults(many, [-1] * 10_000)
    assert len(found) <= MAX_FAULTS
    assert f"takes more than {MAX_STEPS} steps" in found[""]
    wrong = {"type": "array", "items": WHOLE}
    assert len(faults(wrong, ["a"] * 100_000)) == MAX_FAULTS


def test_patterns_take_time_by_the_length_of_the_text() -> None:
    assert "should match" in one({**TEXT, "pattern": "^(a+)+$"}, "a" * 100_000 + "b")
