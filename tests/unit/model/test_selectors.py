from __future__ import annotations

import pytest

from isthmus.model.meta import LabelSelector, Requirement
from isthmus.model.selectors import (
    document_selects,
    is_empty,
    pairs_text,
    read_selector,
    selector_faults,
    selector_text,
    selects,
)

LABELS = {"app": "web", "tier": "front"}


def need(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (need("app", "In", "web", "api"), True),
        (need("app", "In", "api"), False),
        (need("none", "In", "api"), False),
        (need("app", "NotIn", "api"), True),
        (need("none", "NotIn", "api"), True),
        (need("app", "NotIn", "web"), False),
        (need("app", "Exists"), True),
        (need("none", "Exists"), False),
        (need("none", "DoesNotExist"), True),
        (need("app", "DoesNotExist"), False),
        (need("app", "Sometimes", "web"), False),
    ],
)
def test_requirements(requirement: Requirement, holds: bool) -> None:
    assert selects(LabelSelector(match_expressions=(requirement,)), LABELS) is holds


def test_pairs_and_requirements_must_all_hold() -> None:
    assert selects(LabelSelector(), {})
    assert selects(LabelSelector(match_labels={"app": "web"}), LABELS)
    assert not selects(LabelSelector(match_labels={"app": "web", "x": "y"}), LABELS)


DOCUMENT = {
    "matchLabels": {"b": "2", "a": "1"},
    "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]},
        {"key": "d", "operator": "NotIn", "values": ["z"]},
        {"key": "e", "operator": "Exists"},
        {"key": "f", "operator": "DoesNotExist"},
        {"key": "g", "operator": "Sometimes"},
    ],
}


def test_a_selector_is_shown_sorted() -> None:
    assert selector_text(DOCUMENT) == "a=1,b=2,c in (x,y),d notin (z),e,!f,g Sometimes"
    assert selector_text({}) == selector_text(None) == ""
    assert pairs_text({"b": "2", "a": "1"}) == "a=1,b=2"
    assert pairs_text({}) == "<none>"


def test_documents_are_read_leniently() -> None:
    odd = {"matchLabels": {"a": 1, "b": "x"}, "matchExpressions": ["no", {"key": "k"}]}
    assert read_selector(odd).match_labels == {"b": "x"}
    assert not document_selects(odd, {"b": "x"})
    assert document_selects({"matchLabels": {"b": "x"}}, {"b": "x"})
    assert is_empty({"matchLabels": {}})
    assert not is_empty(DOCUMENT)


def test_faults_of_selectors() -> None:
    bad = {
        "matchLabels": {"a b": "-"},
        "matchExpressions": [
            {"key": "c", "operator": "In"},
            {"key": "d", "operator": "Exists", "values": ["x"]},
            {"key": "", "operator": "Sometimes"},
            {"key": "e", "operator": "In", "values": ["-"]},
        ],
    }
    found = [(cause.path, cause.reason) for cause in selector_faults(bad, "spec.selector")]
    assert found == [
        ("spec.selector.matchLabels", "FieldValueInvalid"),
        ("spec.selector.matchLabels", "FieldValueInvalid"),
        ("spec.selector.matchExpressions[0].values", "FieldValueRequired"),
        ("spec.selector.matchExpressions[1].values", "FieldValueForbidden"),
        ("spec.selector.matchExpressions[2].operator", "FieldValueInvalid"),
        ("spec.selector.matchExpressions[2].key", "FieldValueInvalid"),
        ("spec.selector.matchExpressions[2].key", "FieldValueInvalid"),
        ("spec.selector.matchExpressions[3].values[0]", "FieldValueInvalid"),
    ]
    assert next(iter(selector_faults(DOCUMENT, ""))).path.endswith("[4].operator")
