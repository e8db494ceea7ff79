from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import Cause
from isthmus.model.core import CONFIG_MAP, NAMESPACE, SERVICE
from isthmus.model.metacheck import MAX_ANNOTATIONS, MAX_ENTRIES, metadata_faults, unchanged


def faults(old: dict[str, Any] | None = None, **metadata: object) -> list[Cause]:
    meta = {"name": "a", "namespace": "ns", **metadata}
    before = None if old is None else {"metadata": {"name": "a", "namespace": "ns", **old}}
    return metadata_faults({"metadata": meta}, CONFIG_MAP, before)


def paths(found: list[Cause]) -> list[str]:
    return [cause.path for cause in found]


def test_good_metadata_has_no_faults() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}
    found = faults(
        labels={"app": "a", "example.com/x": ""},
        annotations={"Mixed.Case/Key": "anything \n at all"},
        finalizers=["orphan", "example.com/f"],
        ownerReferences=[{**owner, "controller": True}],
    )
    assert found == []


def test_every_fault_is_told_at_once() -> None:
    found = faults(
        name="A\x07",
        labels={"bad key": "-"},
        annotations={"a/b/c": ""},
        finalizers=["nobody-knows", "a b"],
        ownerReferences=[{}, {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "2"}],
    )
    assert paths(found) == [
        "metadata.name",
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.finalizers",
        "metadata.ownerReferences[0].apiVersion",
        "metadata.ownerReferences[0].kind",
        "metadata.ownerReferences[0].name",
        "metadata.ownerReferences[0].uid",
        "metadata.ownerReferences[1]",
    ]


def test_a_name_or_a_prefix_is_needed() -> None:
    assert faults(name="") == [
        Cause(
            "metadata.name",
            "Required value: name or generateName is required",
            "FieldValueRequired",
        )
    ]
    assert faults(generateName="web-") == []
    assert paths(faults(generateName="Web-")) == ["metadata.generateName"]
    assert metadata_faults({}, CONFIG_MAP, None)


def test_names_have_the_grammar_of_their_kind() -> None:
    document = {"metadata": {"name": "1st", "namespace": "ns"}}
    assert metadata_faults(document, CONFIG_MAP, None) == []
    assert paths(metadata_faults(document, SERVICE, None)) == ["metadata.name"]


def test_namespaces() -> None:
    assert paths(faults(namespace="")) == ["metadata.namespace"]
    assert paths(faults(namespace="a.b")) == ["metadata.namespace"]
    inside = {"metadata": {"name": "a", "namespace": "b"}}
    found = metadata_faults(inside, NAMESPACE, None)
    assert found == [
        Cause("metadata.namespace", "Forbidden: not allowed on this type", "FieldValueForbidden")
    ]


def test_sizes_are_bounded() -> None:
    assert faults(annotations={"a": "x" * MAX_ANNOTATIONS}) == [
        Cause(
            "metadata.annotations",
            "Too long: may not be more than 262144 bytes",
            "FieldValueTooLong",
        )
    ]
    many = [f"example.com/f{i}" for i in range(MAX_ENTRIES + 1)]
    assert paths(faults(finalizers=many)) == ["metadata.finalizers"]
    assert paths(faults(labels=dict.fromkeys(many, ""))) == ["metadata.labels"]
    assert paths(faults(ownerReferences=[{}] * (MAX_ENTRIES + 1))) == ["metadata.ownerReferences"]


def test_only_one_owner_controls() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": "1", "controller": True}
    found = faults(ownerReferences=[{**owner, "name": "a"}, {**owner, "name": "b"}])
    assert 'Found "true" in references for a and b' in found[0].message


def test_finalizers_that_contradict_each_other() -> None:
    assert paths(faults(finalizers=["orphan", "foregroundDeletion"])) == ["metadata.finalizers"]


def test_no_finalizer_joins_an_object_on_its_way_out() -> None:
    gone = {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["example.com/a"]}
    assert faults(gone, **{**gone, "finalizers": []}) == []
    found = faults(gone, **{**gone, "finalizers": ["example.com/b"]})
    assert "found new finalizers example.com/b" in found[0].message


@pytest.mark.parametrize("name", ["name", "namespace", "uid", "creationTimestamp"])
def test_identity_stays(name: str) -> None:
    old = {"uid": "1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    found = faults(old, **{**old, name: "other"})
    assert found == [
        Cause(f"metadata.{name}", 'Invalid value: "other": field is immutable', "FieldValueInvalid")
    ]


def test_a_stored_name_is_not_judged_again_and_generations_grow() -> None:
    assert faults({"name": "Old_Name"}, name="Old_Name") == []
    assert paths(faults({"generation": 3}, generation=2)) == ["metadata.generation"]


def test_unchanged_tells_what_changed() -> None:
    old, new = {"a": {"b": 1}, "c": ""}, {"a": {"b": 2}, "c": "x"}
    assert paths(list(unchanged(new, old, "a.b", "c"))) == ["a.b"]
    assert list(unchanged(new, None, "a.b")) == []
