from __future__ import annotations

from typing import Any

from isthmus.serve.kube.apply.compare import NO_DIFFERENCE, all_fields, applied_fields, compare
from isthmus.serve.kube.apply.fields import FieldSet, write
from tests.unit.serve.kube.apply.things import ROOT

SPEC = ROOT.fields["spec"]
TCP = 'k:{"port":1,"protocol":"TCP"}'


def said(*fields: FieldSet) -> list[dict[str, Any]]:
    return [write(each) for each in fields]


def test_who_applies_owns_leaves_and_items_and_what_is_empty() -> None:
    spec = {
        "text": "a",
        "inner": {"a": "b"},
        "labels": {},
        "items": [{"port": 1, "tags": ["x"]}],
        "any": {"x": {"y": None}, "z": {}},
        "tags": [],
    }
    assert write(applied_fields(SPEC, spec)) == {
        "f:text": {},
        "f:inner": {"f:a": {}},
        "f:labels": {},
        "f:items": {TCP: {".": {}, "f:port": {}, "f:tags": {'v:"x"': {}}}},
        "f:any": {"f:x": {".": {}, "f:y": {}}, "f:z": {}},
        "f:tags": {},
    }


def test_all_fields_has_containers_too() -> None:
    assert write(all_fields(SPEC, {"inner": {"a": "b"}, "items": [{"port": 1}]})) == {
        "f:inner": {".": {}, "f:a": {}},
        "f:items": {".": {}, TCP: {".": {}, "f:port": {}}},
    }


def test_equal_values_do_not_differ() -> None:
    spec = {"text": "a", "items": [{"port": 1}, {"port": 2}], "tags": ["a", "b"], "number": 1}
    turned = {"number": 1.0, "tags": ["b", "a"], "items": [{"port": 2}, {"port": 1}], "text": "a"}
    assert compare(SPEC, spec, turned) is NO_DIFFERENCE


def test_true_is_not_one() -> None:
    assert said(compare(SPEC, {"any": {"a": True}}, {"any": {"a": 1}}).modified) == [
        {"f:any": {"f:a": {}}}
    ]


def test_what_is_new_gone_and_changed() -> None:
    old = {"text": "a", "inner": {"a": "1"}, "items": [{"port": 1, "value": "x"}], "whole": {}}
    new = {"text": "b", "items": [{"port": 1}, {"port": 2}], "whole": {"a": "b"}}
    found = compare(SPEC, old, new)
    assert said(*found) == [
        {"f:items": {'k:{"port":2,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
        {"f:inner": {".": {}, "f:a": {}}, "f:items": {TCP: {"f:value": {}}}},
        {"f:text": {}, "f:whole": {}},
    ]


def test_a_tree_that_becomes_a_leaf_takes_its_parts_along() -> None:
    found = compare(SPEC, {"any": {"a": 1}}, {"any": "x"})
    assert said(*found) == [{}, {"f:any": {"f:a": {}}}, {"f:any": {}}]
    back = compare(SPEC, {"any": "x"}, {"any": {"a": 1}})
    assert said(*back) == [{"f:any": {"f:a": {}}}, {}, {"f:any": {}}]


def test_items_that_are_there_twice_change_together() -> None:
    twice = [{"port": 1, "value": "a"}, {"port": 1, "value": "b"}]
    assert compare(SPEC, {"items": twice}, {"items": twice}) is NO_DIFFERENCE
    other = [twice[0], {"port": 1, "value": "c"}]
    found = compare(SPEC, {"items": twice}, {"items": other})
    assert said(*found) == [{}, {}, {"f:items": {TCP: {}}}]
    less = compare(SPEC, {"items": twice}, {"items": twice[:1]})
    assert write(less.modified) == {"f:items": {TCP: {}}}
