from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import Cause
from isthmus.model import shapes
from isthmus.model.schema import Schema
from isthmus.model.shapes import (
    ANY,
    BOOLEAN,
    INT_OR_STRING,
    LABEL_SELECTOR,
    NUMBER,
    PORT,
    STRING,
    TIME,
    choice,
    listed,
    mapped,
    resource,
    structure,
    text,
    whole,
)
from isthmus.model.walk import (
    MAX_FAULTS,
    defaults,
    is_base64,
    normalise,
    prune,
    rule_faults,
    type_faults,
    unknown_fields,
)
from isthmus.model.wire import schema_of

RULE = structure(
    {
        "port": PORT,
        "host": text(pattern="^[a-z]+$", min_length=2, max_length=5),
        "mode": choice("on", "off", default="on"),
        "weight": whole(minimum=0, default=1),
    },
    required=("port",),
)
SCHEMA = resource(
    structure(
        {
            "rules": listed(RULE, keys=("port",), min_items=1, max_items=3),
            "hosts": listed(STRING, unique=True),
            "ratio": NUMBER,
            "target": INT_OR_STRING,
            "extra": ANY,
            "labels": mapped(STRING),
            "since": TIME,
            "flag": BOOLEAN,
            "options": structure({"deep": choice("a", default="a")}, default={}),
            "selector": LABEL_SELECTOR,
            "maybe": Schema(type=STRING.type, nullable=True),
        }
    )
)
POD = schema_of("core.v1.Pod")


def test_every_unknown_field_is_named_with_its_path() -> None:
    document = {
        "kind": "X",
        "foo": 1,
        "metadata": {"name": "a", "lables": {}},
        "spec": {"rules": [{"port": 1}, {"prt": 2, "x": 3}], "extra": {"any": {"thing": 1}}},
    }
    assert unknown_fields(SCHEMA, document) == [
        "foo",
        "metadata.lables",
        "spec.rules[1].prt",
        "spec.rules[1].x",
    ]
    prune(SCHEMA, document)
    assert unknown_fields(SCHEMA, document) == []
    assert document["spec"] == {"rules": [{"port": 1}, {}], "extra": {"any": {"thing": 1}}}


def test_unknown_fields_of_a_pod() -> None:
    document = {"spec": {"containers": [{"name": "a", "foo": 1}], "x": {}}, "status": {"y": 1}}
    assert unknown_fields(POD, document) == ["spec.x", "spec.containers[0].foo", "status.y"]


def test_what_is_told_is_bounded() -> None:
    many = {f"f{i}": 1 for i in range(1000)}
    assert len(unknown_fields(SCHEMA, many)) == MAX_FAULTS
    wrong = {"spec": {"hosts": [1] * 1000}}
    assert len(type_faults(SCHEMA, wrong)) == MAX_FAULTS


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("ratio", "1", "number"),
        ("target", 1.5, "integer or string"),
        ("target", True, "integer or string"),
        ("labels", [], "object"),
        ("hosts", {}, "array"),
        ("since", 5, "string"),
        ("flag", 1, "boolean"),
        ("rules", [1], "object"),
    ],
)
def test_wrong_types(field: str, value: object, kind: str) -> None:
    (found,) = type_faults(SCHEMA, {"spec": {field: value}})
    assert found.reason == "FieldValueTypeInvalid"
    assert f"in body must be of type {kind}: " in found.message


def test_a_wrong_type_is_told_as_kubernetes_tells_it() -> None:
    found = type_faults(SCHEMA, {"spec": {"rules": [{"port": "http"}]}})
    assert found == [
        Cause(
            "spec.rules[0].port",
            'Invalid value: "string": spec.rules[0].port in body must be of type integer: "string"',
            "FieldValueTypeInvalid",
        )
    ]
    assert "the object in body" in type_faults(SCHEMA, [])[0].message  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (schema_of("core.v1.ServicePort").fields["port"], 2**31, "must fit 32 bits"),
        (schema_of("meta.v1.ObjectMeta").fields["generation"], -(2**63) - 1, "must fit 64 bits"),
        (INT_OR_STRING, 2**40, "must fit 32 bits"),
        (schema_of("resource.Quantity"), "1Q", "must be a quantity"),
        (schema_of("resource.Quantity"), 1e300, "must be a quantity"),
        (TIME, "yesterday", "RFC 3339"),
        (schema_of("meta.v1.Duration"), "5", "must be a duration"),
        (schema_of("bytes"), "a", "must be base64"),
        (schema_of("bytes"), "ä===", "must be base64"),
    ],
)
def test_values_that_do_not_fit(schema: Schema, value: object, says: str) -> None:
    (found,) = type_faults(structure({"x": schema}), {"x": value})
    assert says in found.message
    assert found.path == "x"


def test_null_is_absent_and_good_values_are_fine() -> None:
    fine = {
        "spec": {
            "ratio": 1,
            "target": "a",
            "labels": {"a": "b"},
            "since": "2026-01-02T03:04:05Z",
            "flag": None,
            "rules": None,
            "extra": [1],
        }
    }
    assert type_faults(SCHEMA, fine) == []
    assert is_base64("YQ==\n")


def test_rules() -> None:
    document = {
        "spec": {
            "rules": [
                {"port": 0, "host": "a", "mode": "maybe", "weight": -1},
                {"host": "ABCDEFG"},
                {"port": 80},
                {"port": 80},
            ],
            "hosts": ["a", "b", "a"],
        }
    }
    found = [(cause.path, cause.message) for cause in rule_faults(SCHEMA, document)]
    assert found == [
        ("spec.rules", "Too many: 4: must have at most 3 items"),
        ("spec.rules[3]", 'Duplicate value: {"port":80}'),
        (
            "spec.rules[0].port",
            "Invalid value: 0: spec.rules[0].port in body should be greater than or equal to 1",
        ),
        (
            "spec.rules[0].host",
            'Invalid value: "a": spec.rules[0].host in body should be at least 2 chars long',
        ),
        (
            "spec.rules[0].mode",
            'Unsupported value: "maybe": supported values: "on", "off"',
        ),
        (
            "spec.rules[0].weight",
            "Invalid value: -1: spec.rules[0].weight in body should be greater than or equal to 0",
        ),
        ("spec.rules[1].port", "Required value"),
        (
            "spec.rules[1].host",
            "Invalid value: \"ABCDEFG\": spec.rules[1].host in body should match '^[a-z]+$'",
        ),
        ("spec.rules[1].host", "Too long: may not be more than 5 bytes"),
        ("spec.hosts[2]", 'Duplicate value: "a"'),
    ]


def test_rules_of_ends() -> None:
    assert [cause.message for cause in rule_faults(SCHEMA, {"spec": {"rules": []}})] == [
        "Invalid value: 0: spec.rules in body should have at least 1 items"
    ]
    assert [
        cause.message for cause in rule_faults(SCHEMA, {"spec": {"rules": [{"port": 70000}]}})
    ] == ["Invalid value: 70000: spec.rules[0].port in body should be less than or equal to 65535"]
    assert [cause.path for cause in rule_faults(SCHEMA, {})] == ["spec"]
    assert rule_faults(SCHEMA, {"spec": {"rules": "no", "flag": True}}) == []


def test_defaults_stand_where_their_parent_is() -> None:
    document: dict[str, Any] = {"spec": {"rules": [{"port": 1, "mode": None}, {"weight": 0}]}}
    defaults(SCHEMA, document)
    assert document["spec"]["rules"] == [
        {"port": 1, "mode": "on", "weight": 1},
        {"weight": 0, "mode": "on"},
    ]
    assert document["spec"]["options"] == {"deep": "a"}
    other: dict[str, Any] = {"spec": {}}
    defaults(SCHEMA, other)
    other["spec"]["options"]["deep"] = "changed"
    third: dict[str, Any] = {"spec": {}}
    defaults(SCHEMA, third)
    assert third["spec"]["options"] == {"deep": "a"}, "a default is not shared"


def test_nulls_go_and_quantities_become_text() -> None:
    document: dict[str, Any] = {
        "metadata": {"creationTimestamp": None, "labels": {"a": None}},
        "spec": {
            "containers": [None, {"args": [None], "resources": {"limits": {"cpu": 1, "m": 0.5}}}]
        },
        "status": None,
    }
    normalise(POD, document)
    assert document == {
        "metadata": {"labels": {"a": ""}},
        "spec": {
            "containers": [{}, {"args": [""], "resources": {"limits": {"cpu": "1", "m": "0.5"}}}]
        },
    }


def test_a_null_that_means_something_stays() -> None:
    document: dict[str, Any] = {"spec": {"maybe": None, "extra": {"a": None}, "ratio": None}}
    normalise(SCHEMA, document)
    assert document == {"spec": {"maybe": None, "extra": {"a": None}}}


def test_shapes() -> None:
    assert shapes.CONDITIONS.list_keys == ("type",)
    assert set(resource(more={"data": mapped(STRING)}, ref="x").fields) == {
        "apiVersion",
        "kind",
        "metadata",
        "data",
    }
    assert "status" in resource(STRING, status=STRING).fields
