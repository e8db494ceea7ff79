from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import BadRequest, Invalid
from isthmus.serve.kube.deletion import DeleteOptions, Propagation, delete_options
from isthmus.serve.kube.query import parse_query
from isthmus.store.objects import Preconditions


def test_a_bare_delete_leaves_everything_to_the_kind() -> None:
    assert delete_options({}) == DeleteOptions()
    assert delete_options({}, {}) == DeleteOptions()


def test_kubectls_delete() -> None:
    assert delete_options({}, {"propagationPolicy": "Background"}) == DeleteOptions(
        propagation=Propagation.BACKGROUND
    )


def test_a_full_body() -> None:
    body = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
        "dryRun": ["All"],
        "preconditions": {"uid": "u-1", "resourceVersion": "7"},
        "unknown": {"is": "passed over"},
    }
    assert delete_options({}, body) == DeleteOptions(
        propagation=Propagation.FOREGROUND,
        grace_seconds=0,
        preconditions=Preconditions("u-1", 7),
        dry_run=True,
    )


def test_the_query_says_what_the_body_leaves_out() -> None:
    query = parse_query("gracePeriodSeconds=5&propagationPolicy=Orphan&dryRun=All")
    assert delete_options(query) == DeleteOptions(
        propagation=Propagation.ORPHAN, grace_seconds=5, dry_run=True
    )
    both = delete_options(query, {"propagationPolicy": "Foreground", "preconditions": None})
    assert both.propagation is Propagation.FOREGROUND
    assert both.dry_run


@pytest.mark.parametrize(
    ("query", "propagation"),
    [("orphanDependents=true", "Orphan"), ("orphanDependents=false", "Background")],
)
def test_orphan_dependents_is_an_older_word(query: str, propagation: str) -> None:
    assert delete_options(parse_query(query)).propagation == propagation


def test_a_negative_grace_period_is_the_shortest() -> None:
    assert delete_options({}, {"gracePeriodSeconds": -1}).grace_seconds == 1
    assert delete_options({}, {"gracePeriodSeconds": 2**40}).grace_seconds == 2**31


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"propagationPolicy": "Sideways"}, ["propagationPolicy"]),
        ({"propagationPolicy": 3}, ["propagationPolicy"]),
        ({"dryRun": ["Some"]}, ["dryRun"]),
        ({"orphanDependents": True, "propagationPolicy": "Orphan"}, ["propagationPolicy"]),
        ({"dryRun": ["x"], "propagationPolicy": "y"}, ["propagationPolicy", "dryRun"]),
    ],
)
def test_values_that_deletes_do_not_know(body: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        delete_options({}, body)
    assert [cause.path for cause in refused.value.causes] == paths


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"gracePeriodSeconds": "5"}, "gracePeriodSeconds"),
        ({"gracePeriodSeconds": True}, "gracePeriodSeconds"),
        ({"gracePeriodSeconds": 1.5}, "gracePeriodSeconds"),
        ({"orphanDependents": "yes"}, "orphanDependents"),
        ({"dryRun": "All"}, "dryRun"),
        ({"dryRun": [1]}, "dryRun"),
        ({"preconditions": "u"}, "preconditions"),
        ({"preconditions": {"uid": 3}}, "preconditions"),
        ({"preconditions": {"resourceVersion": 3}}, "preconditions"),
        ({"preconditions": {"resourceVersion": "x"}}, "preconditions.resourceVersion"),
        ({"preconditions": {"resourceVersion": "0"}}, "preconditions.resourceVersion"),
    ],
)
def test_wrong_shapes_are_named(body: dict[str, Any], path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        delete_options({}, body)
    assert [cause.path for cause in refused.value.causes] == [path]


def test_another_kind_of_body_is_refused() -> None:
    with pytest.raises(BadRequest, match="DeleteOptions"):
        delete_options({}, {"kind": "Pod"})
