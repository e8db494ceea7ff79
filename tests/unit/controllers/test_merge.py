from __future__ import annotations

import pytest

from isthmus.controllers.merge import GONE, REMOVE, TOUCH, merged
from isthmus.errors import Conflict
from isthmus.model import Document

NOW = "2026-01-01T00:00:00Z"
OLD = "2025-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": None}}, {"a": {"x": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "text"}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({}, {"a": None}, {}),
        ({"f": ["x", "y"]}, {f"{REMOVE}f": ["x"]}, {"f": ["y"]}),
        ({}, {f"{REMOVE}f": ["x"]}, {}),
        ({"f": ["x"]}, {f"{REMOVE}f": ["x"]}, {}),
    ],
)
def test_fields_merge(document: Document, patch: Document, result: Document) -> None:
    assert merged(document, patch, NOW) == result


def test_the_document_that_came_in_stays_as_it_was() -> None:
    document = {"a": {"x": 1}, "conditions": [{"type": "A", "status": "True"}]}
    merged(document, {"a": {"x": 2}, "conditions": [{"type": "A", "status": "False"}]}, NOW)
    assert document == {"a": {"x": 1}, "conditions": [{"type": "A", "status": "True"}]}


def condition(kind: str, status: str, **more: str) -> Document:
    return {"type": kind, "status": status, **more}


def test_a_condition_of_somebody_else_stays() -> None:
    theirs = condition("Theirs", "True")
    done = merged({"conditions": [theirs]}, {"conditions": [condition("Ours", "True")]}, NOW)
    assert done["conditions"][0] == theirs
    assert done["conditions"][1]["lastTransitionTime"] == NOW


@pytest.mark.parametrize(("status", "time"), [("True", OLD), ("False", NOW)])
def test_a_transition_is_dated_only_when_the_status_changes(status: str, time: str) -> None:
    before = condition("A", "True", lastTransitionTime=OLD, reason="Before")
    done = merged({"conditions": [before]}, {"conditions": [condition("A", status)]}, NOW)
    assert done["conditions"] == [condition("A", status, lastTransitionTime=time)]


@pytest.mark.parametrize(("touch", "time"), [({"lastUpdateTime": TOUCH}, NOW), ({}, OLD)])
def test_an_update_is_dated_only_when_touched(touch: dict[str, str], time: str) -> None:
    before = condition("A", "True", lastTransitionTime=OLD, lastUpdateTime=OLD)
    patch = {"conditions": [condition("A", "True", **touch)]}
    assert merged({"conditions": [before]}, patch, NOW)["conditions"][0]["lastUpdateTime"] == time


def owner(uid: str, *, controller: bool = False) -> Document:
    return {"uid": uid, "kind": "X", "name": uid} | ({"controller": True} if controller else {})


def test_owners_merge_by_uid() -> None:
    patch = {"ownerReferences": [owner("2"), {"uid": "1", "$patch": "delete"}]}
    assert merged({"ownerReferences": [owner("1"), owner("3")]}, patch, NOW) == {
        "ownerReferences": [owner("3"), owner("2")]
    }


def test_a_second_controller_is_refused() -> None:
    held = {"ownerReferences": [owner("1", controller=True)]}
    with pytest.raises(Conflict, match="X 1 controls"):
        merged(held, {"ownerReferences": [owner("2", controller=True)]}, NOW)
    assert merged(held, {"ownerReferences": [owner("1", controller=True)]}, NOW) == held


def test_a_condition_may_be_taken_away() -> None:
    document = {"conditions": [condition("A", "True"), condition("B", "True")]}
    patch = {"conditions": [{"type": "A", "$patch": GONE}, {"type": "C", "$patch": GONE}]}
    assert merged(document, patch, NOW) == {"conditions": [condition("B", "True")]}


def report(name: str, *conditions: Document) -> Document:
    return {"remoteRef": {"name": name}, "conditions": list(conditions)}


def test_reports_are_replaced_and_keep_the_times_of_what_did_not_move() -> None:
    same = condition("Mirrored", "True", message="old", lastTransitionTime=OLD)
    moved = condition("Mirrored", "True", lastTransitionTime=OLD)
    held = {"mirrorServices": [report("a", same), report("b", moved), report("gone", same)]}
    wanted = [
        report("new", condition("Mirrored", "True")),
        report("a", condition("Mirrored", "True", message="new")),
        report("b", condition("Mirrored", "False")),
    ]
    assert merged(held, {"mirrorServices": wanted}, NOW)["mirrorServices"] == [
        report("new", condition("Mirrored", "True", lastTransitionTime=NOW)),
        report("a", condition("Mirrored", "True", message="new", lastTransitionTime=OLD)),
        report("b", condition("Mirrored", "False", lastTransitionTime=NOW)),
    ]


def test_a_list_of_reports_may_be_empty() -> None:
    assert merged({}, {"federatedServices": []}, NOW) == {"federatedServices": []}
