from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.errors import Conflict
from isthmus.model.kind import Document
from isthmus.serve.kube.apply import applied, tracked
from isthmus.serve.kube.apply.client_side import ANNOTATION
from tests.unit.serve.kube.apply.things import owners, thing, writes


def applied_by_client(said: str | None = None, **spec: Any) -> Document:  # noqa: ANN401 - JSON
    """A thing as `kubectl apply` leaves it, on its own side."""
    document = thing(**spec)
    last = json.dumps(thing(**spec)) + "\n" if said is None else said
    document["metadata"]["annotations"] = {ANNOTATION: last}
    return tracked(writes("kubectl-client-side-apply"), None, document)


def last(document: Document) -> Any:  # noqa: ANN401 - JSON
    return json.loads(document["metadata"]["annotations"][ANNOTATION])


def test_what_kubectl_applied_on_its_side_is_no_conflict() -> None:
    live = applied_by_client(text="a", number=1)
    new = applied(writes("kubectl"), live, thing(text="b"))
    assert new["spec"] == {"text": "b", "number": 1}
    assert last(new) == thing(text="b")
    with pytest.raises(Conflict):
        applied(writes("other"), live, thing(text="b"))


def test_what_others_changed_since_is_one() -> None:
    live = applied_by_client(text="a", number=1)
    changed = {**live, "spec": {"text": "z", "number": 1}}
    live = tracked(writes("other"), live, changed)
    with pytest.raises(Conflict) as refused:
        applied(writes("kubectl"), live, thing(text="b", number=2))
    assert [cause.path for cause in refused.value.causes] == [".spec.text"]


@pytest.mark.parametrize(
    "said",
    ["{", "[]", "7", '{"apiVersion":"example.io/v2","spec":{"text":"a"}}', '{"spec":7}', "{}",
     '{"apiVersion":"example.io/v1","spec":[{"text":"a"}],"metadata":7}'],
)  # fmt: skip
def test_an_annotation_that_says_nothing_allows_nothing(said: str) -> None:
    live = applied_by_client(said, text="a")
    with pytest.raises(Conflict):
        applied(writes("kubectl"), live, thing(text="b"))
    forced = applied(writes("kubectl"), live, thing(text="b"), force=True)
    assert last(forced) == thing(text="b")


def test_the_annotation_is_rewritten_only_when_it_says_something_else() -> None:
    config = thing(text="a")
    config["metadata"]["annotations"] = {}
    said = json.dumps(config, indent=1)
    live = applied_by_client(said, text="a")
    new = applied(writes("kubectl"), live, thing(text="a"))
    assert new["metadata"]["annotations"][ANNOTATION] == said
    assert owners(new)["kubectl Apply"] == {"f:spec": {"f:text": {}}}


def test_without_the_annotation_none_is_made() -> None:
    new = applied(writes("kubectl"), None, thing(text="a"))
    assert "annotations" not in new["metadata"]


def test_one_that_would_be_too_large_stays() -> None:
    live = applied_by_client(text="a")
    new = applied(writes("kubectl"), live, thing(labels={"a": "x" * 300_000}))
    assert last(new) == thing(text="a")
