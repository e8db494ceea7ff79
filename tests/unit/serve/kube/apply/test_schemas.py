from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import BadRequest
from isthmus.model.schema import Schema
from isthmus.serve.kube.apply.fields import parse, write
from isthmus.serve.kube.apply.schemas import check_lists, parts, step_of, with_named
from tests.unit.serve.kube.apply.things import ROOT, thing

SPEC = ROOT.fields["spec"]
ITEMS = SPEC.fields["items"]


def steps(schema: Schema, value: object) -> list[str] | None:
    found = parts(schema, value)
    return None if found is None else list(found)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("text", "x", None),
        ("labels", {"a": "b"}, ["f:a"]),
        ("labels", "x", None),
        ("whole", {"a": "b"}, None),
        ("list", ["a", "b"], None),
        ("tags", ["a", "b"], ['v:"a"', 'v:"b"']),
        ("tags", ["a", {}], None),
        ("any", {"a": 1}, ["f:a"]),
        ("any", [1], None),
        ("any", None, None),
        ("items", [{"port": 1}, {"port": 1, "protocol": "UDP"}],
         ['k:{"port":1,"protocol":"TCP"}', 'k:{"port":1,"protocol":"UDP"}']),
        ("items", [{"port": 1}, {"port": 1}], ['k:{"port":1,"protocol":"TCP"}']),
        ("items", [7], None),
        ("items", [], []),
    ],
)  # fmt: skip
def test_what_has_parts(field: str, value: object, expected: list[str] | None) -> None:
    assert steps(SPEC.fields[field], value) == expected


def test_items_that_are_there_twice_are_one_part() -> None:
    found = parts(ITEMS, [{"port": 1, "value": each} for each in "abc"])
    assert found is not None
    [part] = found.values()
    assert part.whole
    assert [each["value"] for each in part.value] == ["a", "b", "c"]


def test_defaults_of_keys_count() -> None:
    assert step_of(ITEMS, {"port": 1}) == step_of(ITEMS, {"port": 1, "protocol": "TCP"})
    assert step_of(ITEMS, {"port": 1, "protocol": None}) == step_of(ITEMS, {"port": 1})
    assert step_of(ITEMS, {}) == 'k:{"protocol":"TCP"}'


def test_who_owns_a_field_needs_the_objects_around_it() -> None:
    held = parse({"f:spec": {"f:labels": {"f:a": {}}, "f:any": {"f:x": {"f:y": {}}}}})
    assert write(with_named(ROOT, held)) == {
        "f:spec": {
            ".": {},
            "f:labels": {".": {}, "f:a": {}},
            "f:any": {".": {}, "f:x": {"f:y": {}}},
        }
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"tags": [["a"]]}, ".spec.tags: an item of the set is no scalar"),
        ({"items": [{"port": 1}] * 2}, 'duplicate entries for key [port=1,protocol="TCP"]'),
        ({"items": [{"port": 1, "tags": ["a", "a"]}]}, '.spec.items[port=1,protocol="TCP"].tags: '),
    ],
)  # fmt: skip
def test_applied_lists_must_tell_their_items_apart(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_lists(ROOT, thing(**spec))
    assert said in refused.value.message
