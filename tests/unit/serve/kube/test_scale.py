from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.errors import BadRequest, Invalid, MethodNotAllowed
from isthmus.serve.kube import scale
from isthmus.serve.kube.patch import merge_patch
from isthmus.serve.kube.status import refusal
from isthmus.store.objects import Preconditions
from tests.unit.serve.kube.kinds import THING, WIDGET

DOCUMENT: dict[str, Any] = {
    "apiVersion": "example.io/v1",
    "kind": "Widget",
    "metadata": {
        "name": "w", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"replicas": 2, "size": 1, "selector": {"matchLabels": {"b": "2", "a": "1"}}},
    "status": {"replicas": 1},
}  # fmt: skip


def test_an_object_seen_as_a_scale() -> None:
    assert scale.of(WIDGET, DOCUMENT) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "w", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=1,b=2"},
    }  # fmt: skip


def test_what_an_object_leaves_out_counts_as_none() -> None:
    told = scale.of(WIDGET, {"spec": {"replicas": True}, "status": 3})
    assert (told["spec"], told["status"]) == ({"replicas": 0}, {"replicas": 0})


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("app in (x)", "app in (x)"),
        ({"app": "x", "a": "y"}, "a=y,app=x"),
        ({}, None),
        (["odd"], None),
        (
            {
                "matchLabels": {"app": "x"},
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["2", "1"]},
                    {"key": "b", "operator": "NotIn", "values": ["3"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ],
            },
            "a in (1,2),app=x,b notin (3),c,!d",
        ),
    ],
)
def test_selectors_are_text(selector: object, text: str | None) -> None:
    told = scale.of(WIDGET, {"spec": {"selector": selector}})
    assert told["status"].get("selector") == text


def test_a_scale_written_back_changes_the_replicas_only() -> None:
    before = copy.deepcopy(DOCUMENT)
    wanted = merge_patch(scale.of(WIDGET, DOCUMENT), {"spec": {"replicas": 5}})
    scaled = scale.applied(WIDGET, DOCUMENT, wanted)
    assert scaled["spec"] == {**DOCUMENT["spec"], "replicas": 5}
    assert {**scaled, "spec": None} == {**DOCUMENT, "spec": None}
    assert before == DOCUMENT


def test_replicas_reach_an_object_without_a_spec() -> None:
    assert scale.applied(WIDGET, {}, {"spec": {"replicas": 5}}) == {"spec": {"replicas": 5}}
    assert scale.applied(WIDGET, {"spec": 3}, {"spec": None}) == {"spec": {"replicas": 0}}


@pytest.mark.parametrize("replicas", [-1, 2**31, "3", True, None, 1.5])
def test_impossible_replicas_are_invalid(replicas: object) -> None:
    with pytest.raises(Invalid) as refused:
        scale.applied(WIDGET, {}, {"metadata": {"name": "w"}, "spec": {"replicas": replicas}})
    message = refusal(refused.value, "").status["message"]
    assert message.startswith('Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: ')


@pytest.mark.parametrize("body", [{"spec": []}, {"metadata": 3, "spec": "x"}])
def test_a_spec_of_another_shape_is_invalid(body: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        scale.applied(WIDGET, {}, body)


@pytest.mark.parametrize("body", [{"kind": "Pod"}, {"apiVersion": "v1"}])
def test_another_kind_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="autoscaling/v1 Scale"):
        scale.applied(WIDGET, {}, body)


def test_kinds_without_replicas_do_not_scale() -> None:
    with pytest.raises(MethodNotAllowed):
        scale.of(THING, {})


def test_preconditions_of_a_scale() -> None:
    assert scale.preconditions(scale.of(WIDGET, DOCUMENT)) == Preconditions("u", 7)
    assert scale.preconditions({"metadata": {}}) == Preconditions()
    assert scale.preconditions({}) == Preconditions()
    assert scale.preconditions({"metadata": {"uid": None}}) == Preconditions()


@pytest.mark.parametrize("metadata", [{"uid": 3}, {"resourceVersion": 3}, {"resourceVersion": "x"}])
def test_preconditions_that_cannot_be_read(metadata: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        scale.preconditions({"metadata": metadata})
