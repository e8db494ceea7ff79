from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.serve.kube.apply.fields import EMPTY, parse
from isthmus.serve.kube.apply.merge import merged, without
from tests.unit.serve.kube.apply.things import ROOT

SPEC = ROOT.fields["spec"]


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        ({"text": "a"}, {"text": "b"}, {"text": "b"}),
        ({"text": "a"}, {"number": 1}, {"text": "a", "number": 1}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
        ({"list": ["a"]}, {"list": ["b"]}, {"list": ["b"]}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["a", "b"]}),
        (
            {"items": [{"port": 1, "protocol": "TCP", "value": "x"}]},
            {"items": [{"port": 1, "tags": ["t"]}]},
            {"items": [{"port": 1, "protocol": "TCP", "value": "x", "tags": ["t"]}]},
        ),
        ({"any": {"a": 1}}, {"any": {"b": [1]}}, {"any": {"a": 1, "b": [1]}}),
        ({"any": {"a": 1}}, {"any": "x"}, {"any": "x"}),
        ({"labels": {"a": "1"}}, {"labels": {}}, {"labels": {"a": "1"}}),
    ],
)
def test_what_is_applied_lies_over_what_is_live(
    live: dict[str, Any], config: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy((live, config))
    assert merged(SPEC, live, config) == expected
    assert (live, config) == before


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        ("abc", "", "abc"),
        ("", "ab", "ab"),
        ("abc", "cba", "cba"),
        ("abc", "d", "abcd"),
        ("abc", "db", "adbc"),
        ("axb", "ba", "xba"),
        ("axby", "ba", "xbya"),
        ("xay", "ab", "xayb"),
        ("abc", "bac", "bac"),
    ],
)
def test_applied_items_keep_their_order_and_others_their_place(
    live: str, config: str, expected: str
) -> None:
    assert merged(SPEC, {"tags": [*live]}, {"tags": [*config]}) == {"tags": [*expected]}


def test_items_that_are_there_twice_stay_unless_they_are_applied() -> None:
    twice = [{"port": 1, "value": "a"}, {"port": 1, "value": "b"}]
    other = {"port": 2}
    assert merged(SPEC, {"items": twice}, {"items": [other]}) == {"items": [*twice, other]}
    one = [{"port": 1, "tags": ["t"]}]
    assert merged(SPEC, {"items": twice}, {"items": one}) == {
        "items": [{"port": 1, "value": "a", "tags": ["t"]}]
    }
    one = [{"port": 1, "value": "c"}]
    assert merged(SPEC, {"items": twice}, {"items": one}) == {"items": one}


def test_what_goes_takes_along_what_is_below_it() -> None:
    value = {"items": [{"port": 1, "value": "x"}, {"port": 2}], "text": "a", "labels": {"a": "1"}}
    gone = parse({"f:items": {'k:{"port":1,"protocol":"TCP"}': {}}, "f:text": {}})
    before = copy.deepcopy(value)
    assert without(SPEC, value, gone, EMPTY) == {"items": [{"port": 2}], "labels": {"a": "1"}}
    assert value == before


def test_what_is_emptied_goes_unless_somebody_owns_it() -> None:
    gone = parse({"f:labels": {"f:a": {}}})
    assert without(SPEC, {"labels": {"a": "1"}}, gone, EMPTY) == {}
    assert without(SPEC, {"labels": {"a": "1", "b": "2"}}, gone, EMPTY) == {"labels": {"b": "2"}}
    kept = parse({"f:labels": {}})
    assert without(SPEC, {"labels": {"a": "1"}}, gone, kept) == {"labels": {}}
    assert without(SPEC, {"labels": {}}, gone, EMPTY) == {"labels": {}}
