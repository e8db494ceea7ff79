from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.errors import BadRequest
from isthmus.serve.kube.patch import merge_patch

# RFC 7386, appendix A: those of its rows whose documents and patches are objects.
ROWS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": {"b": 1}}, {}, {"a": {"b": 1}}),
]


@pytest.mark.parametrize(("document", "patch", "merged"), ROWS)
def test_rfc_7386(document: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch(document, patch) == merged
    assert (document, patch) == before


def test_the_result_shares_nothing_with_what_went_in() -> None:
    document, patch = {"kept": {"list": [1]}}, {"new": {"list": [{"a": 1}]}}
    merged = merge_patch(document, patch)
    merged["kept"]["list"].append(2)
    merged["new"]["list"][0]["a"] = 2
    assert document == {"kept": {"list": [1]}}
    assert patch == {"new": {"list": [{"a": 1}]}}


@pytest.mark.parametrize("patch", [None, 1, "x", [], [{"a": 1}], True])
def test_a_patch_of_another_shape_is_refused(patch: object) -> None:
    with pytest.raises(BadRequest, match="must be an object"):
        merge_patch({}, patch)
