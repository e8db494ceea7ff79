from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.errors import BadRequest, Invalid, TooLarge, UserFault
from isthmus.serve.kube.patch import json_patch
from isthmus.serve.kube.status import refusal

DOCUMENT = {"metadata": {"name": "x", "labels": {"a/b": "1"}}, "list": [1, 2, 3], "flag": True}


def operate(*operations: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy((DOCUMENT, operations))
    try:
        return json_patch(DOCUMENT, list(operations))
    finally:
        assert (DOCUMENT, operations) == before


def test_all_six_operations() -> None:
    assert operate(
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "remove", "path": "/flag"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"},
        {"op": "move", "from": "/metadata/name", "path": "/name"},
        {"op": "test", "path": "/list", "value": [0, 1, 2, 3, 4]},
    ) == {
        "metadata": {"labels": {"a/b": "2"}, "annotations": {"a/b": "2"}},
        "name": "x",
        "list": [0, 1, 2, 3, 4],
    }


def test_no_operations_change_nothing() -> None:
    assert operate() == DOCUMENT


def test_a_later_operation_does_not_reach_into_the_patch() -> None:
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/new", "value": {"a": 1}},
        {"op": "add", "path": "/new/b", "value": 2},
    ]
    assert json_patch({}, operations) == {"new": {"a": 1, "b": 2}}
    assert operations[0]["value"] == {"a": 1}


def test_kubectls_move_of_managed_fields() -> None:
    document = {"metadata": {"resourceVersion": "7", "managedFields": [{"manager": "a"}]}}
    assert json_patch(
        document,
        [
            {"op": "replace", "path": "/metadata/managedFields", "value": [{"manager": "b"}]},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        ],
    ) == {"metadata": {"resourceVersion": "7", "managedFields": [{"manager": "b"}]}}


@pytest.mark.parametrize(
    ("path", "value", "holds"),
    [
        ("/flag", True, True),
        ("/flag", 1, False),  # JSON: true is not 1
        ("/list/0", 1.0, True),
        ("/list/0", True, False),
        ("/list", [1, 2], False),
        ("/metadata", {"name": "x"}, False),
        ("/metadata/labels", {"a/b": "1"}, True),
        ("/metadata/labels", [], False),
        ("/absent", None, True),  # as Kubernetes has it
        ("/absent", "", False),
    ],
)
def test_test(path: str, value: object, *, holds: bool) -> None:
    operation = {"op": "test", "path": path, "value": value}
    if holds:
        assert operate(operation) == DOCUMENT
    else:
        with pytest.raises(Invalid):
            operate(operation)


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ({"op": "remove", "path": "/no/where"}, "/no/where"),
        ({"op": "replace", "path": "/no", "value": 1}, "/no"),
        ({"op": "add", "path": "/no/where", "value": 1}, "/no/where"),
        ({"op": "add", "path": "/list/9", "value": 1}, "/list/9"),
        ({"op": "add", "path": "/list/x", "value": 1}, "/list/x"),
        ({"op": "add", "path": "/flag/x", "value": 1}, "/flag/x"),
        ({"op": "add", "path": "/list/" + "9" * 5000, "value": 1}, ("/list/" + "9" * 250)),
        ({"op": "remove", "path": "/list/-"}, "/list/-"),
        ({"op": "remove", "path": ""}, ""),
        ({"op": "copy", "from": "/no", "path": "/list"}, "/no -> /list"),
        ({"op": "move", "from": "/metadata", "path": "/metadata/a"}, "/metadata -> /metadata/a"),
        ({"op": "test", "path": "/list/0", "value": 2}, "/list/0"),
        ({"op": "test", "path": "/a~2", "value": 2}, "/a~2"),
    ],
)
def test_a_patch_to_nowhere_is_invalid_and_names_the_path(
    operation: dict[str, Any], path: str
) -> None:
    with pytest.raises(Invalid) as refused:
        operate({"op": "test", "path": "/flag", "value": True}, operation)
    (cause,) = refused.value.causes
    assert cause.path == path
    assert "operation 1" in refused.value.message
    told = refusal(refused.value, "")
    assert told.code == 422
    assert len(told.status["message"]) < 1000


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "replace", "path": "/no/where/x", "value": 1}, "nothing is at /no"),
        ({"op": "remove", "path": "/metadata/no"}, "nothing is at /metadata/no"),
        ({"op": "add", "path": "/no/where", "value": 1}, "nothing is at /no"),
        ({"op": "add", "path": "/flag/x/y", "value": 1}, "nothing is at /flag/x"),
        ({"op": "add", "path": "/list/9", "value": 1}, "it does not fit what is there"),
        ({"op": "copy", "from": "/a~1b/c", "path": "/list/0"}, "nothing is at /a~1b"),
        ({"op": "move", "from": "/flag", "path": "/no/where"}, "nothing is at /no"),
        ({"op": "remove", "path": "/a~2"}, "a path is no JSON pointer"),
        ({"op": "test", "path": "/no/x", "value": 1}, "nothing is at /no"),
        ({"op": "test", "path": "/flag", "value": 1}, "test failed: the value is another"),
    ],
)
def test_what_failed_is_said_in_words_of_json(operation: dict[str, Any], why: str) -> None:
    """And not in Python's: an object is never printed."""
    with pytest.raises(Invalid) as refused:
        operate(operation)
    assert refused.value.message.endswith(f"): {why}")


@pytest.mark.parametrize(
    ("operations", "where"),
    [
        ({}, "must be a list"),
        (None, "must be a list"),
        (["x"], r"\[0\]: an operation must be an object"),
        ([{}], r"\[0\].op"),
        ([{"op": ["add"]}], r"\[0\].op"),
        ([{"op": "eat", "path": "/a"}], r"\[0\].op"),
        ([{"op": "add", "path": "/a"}], r"\[0\].value: is required"),
        ([{"op": "add", "value": 1}], r"\[0\].path: is required"),
        ([{"op": "move", "path": "/a"}], r"\[0\].from: is required"),
        ([{"op": "remove", "path": "a"}], r"\[0\].path: must be a JSON pointer"),
        ([{"op": "remove", "path": 3}], r"\[0\].path: must be a JSON pointer"),
    ],
)
def test_a_patch_of_another_shape_is_refused(operations: object, where: str) -> None:
    with pytest.raises(BadRequest, match=where):
        json_patch({}, operations)


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_the_result_must_be_an_object(value: object) -> None:
    with pytest.raises(Invalid, match="must leave an object"):
        operate({"op": "replace", "path": "", "value": value})


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(TooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({}, [{"op": "test", "path": "", "value": {}}] * 10_001)


def test_copies_that_would_double_again_and_again_are_stopped() -> None:
    # Sixty doublings of a small object: without a bound, 2^60 copies.
    double = [{"op": "copy", "from": "", "path": f"/c{i}"} for i in range(60)]
    with pytest.raises(UserFault):
        json_patch({"a": "x" * 100}, double)


def test_copies_of_one_long_string_are_stopped() -> None:
    copies = [{"op": "copy", "from": "/a", "path": f"/c{i}"} for i in range(100)]
    with pytest.raises(Invalid, match="copies of more than"):
        json_patch({"a": "x" * 100_000}, copies)


def test_an_object_may_not_become_too_deep() -> None:
    deeper = [{"op": "move", "from": "/a", "path": "/b"}] + [
        {"op": "add", "path": "/b" * i, "value": {}} for i in range(1, 150)
    ]
    nested = json_patch({"a": 1}, deeper)
    twice = [{"op": "copy", "from": "/b", "path": "/b" * 149 + "/c"}]
    with pytest.raises(BadRequest, match="nested deeper"):
        json_patch(nested, twice)
