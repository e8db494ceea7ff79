from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.errors import BadRequest
from isthmus.model.schema import Patch, Schema, Type
from isthmus.serve.kube.patch import strategic_merge_patch
from tests.unit.serve.kube.kinds import METADATA, STRING

ITEM = Schema(
    type=Type.OBJECT,
    properties={
        "name": STRING,
        "value": STRING,
        "env": Schema(
            type=Type.ARRAY,
            items=Schema(type=Type.OBJECT, properties={"name": STRING, "value": STRING}),
            patch=Patch.MERGE,
            merge_key="name",
        ),
    },
)
SCHEMA = Schema(
    type=Type.OBJECT,
    properties={
        "metadata": METADATA,
        "items": Schema(type=Type.ARRAY, items=ITEM, patch=Patch.MERGE, merge_key="name"),
        "volumes": Schema(
            type=Type.ARRAY, items=ITEM, patch=Patch.MERGE_RETAIN_KEYS, merge_key="name"
        ),
        "atomic": Schema(type=Type.ARRAY, items=ITEM),
        "plain": Schema(type=Type.ARRAY, items=STRING, patch=Patch.MERGE),
        "keyless": Schema(type=Type.ARRAY, items=ITEM, patch=Patch.MERGE),
        "strategy": Schema(
            type=Type.OBJECT,
            patch=Patch.RETAIN_KEYS,
            properties={"type": STRING, "rolling": Schema(type=Type.ANY)},
        ),
        "any": Schema(type=Type.ANY),
    },
)


def merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy((document, patch))
    merged = strategic_merge_patch(SCHEMA, document, patch)
    assert (document, patch) == before
    return merged


A, B, C = {"name": "a"}, {"name": "b"}, {"name": "c"}


def one(**fields: object) -> dict[str, Any]:
    return {"name": "a", **fields}


@pytest.mark.parametrize(
    ("document", "patch", "merged"),
    [
        # Objects merge, null removes, scalars replace.
        ({"any": {"x": 1, "y": 2}}, {"any": {"x": 3, "y": None}}, {"any": {"x": 3}}),
        ({}, {"any": {"x": {"y": None}}}, {"any": {"x": {}}}),
        ({"any": 1}, {"any": {"x": 1}}, {"any": {"x": 1}}),
        ({"any": {"x": 1}}, {"any": 2}, {"any": 2}),
        ({"any": 1}, {"any": None}, {}),
        ({}, {"any": None}, {}),
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"b": "2"}}},
         {"metadata": {"labels": {"a": "1", "b": "2"}}}),
        # A list without a strategy replaces, and loses what is null.
        ({"atomic": [A, B]}, {"atomic": [C]}, {"atomic": [C]}),
        ({"atomic": [A]}, {"atomic": [{"name": None, "x": [None]}]}, {"atomic": [{"x": [None]}]}),
        ({"unknown": [A]}, {"unknown": [B]}, {"unknown": [B]}),
        # Items merge by their key; new ones come first; known ones keep their places.
        ({"items": [A, B]}, {"items": [{"name": "b", "value": "1"}]},
         {"items": [A, {"name": "b", "value": "1"}]}),
        ({"items": [A, B]}, {"items": [C]}, {"items": [C, A, B]}),
        ({"items": [A, B]}, {"items": [B, C]}, {"items": [A, B, C]}),
        ({"items": [A, B]}, {"items": []}, {"items": [A, B]}),
        ({"items": [A]}, {"items": None}, {}),
        ({}, {"items": [A, A]}, {"items": [A]}),
        ({}, {"items": []}, {"items": []}),
        ({"items": "odd"}, {"items": [A]}, {"items": [A]}),
        ({"items": [one(env=[{"name": "x", "value": "1"}])]},
         {"items": [one(env=[{"name": "y"}], value=None)]},
         {"items": [one(env=[{"name": "y"}, {"name": "x", "value": "1"}])]}),
        # Items of one key that stood twice: the first merges, both stay.
        ({"items": [one(value="1"), one(value="2")]}, {"items": [one(env=[])]},
         {"items": [one(value="1", env=[]), one(value="2")]}),
        # $patch in items.
        ({"items": [A, B, A]}, {"items": [one(**{"$patch": "delete"})]}, {"items": [B]}),
        ({"items": [A, B]}, {"items": [{"$patch": "replace"}, C]}, {"items": [C]}),
        ({"items": [A, B]}, {"items": [{"$patch": "replace"}]}, {"items": []}),
        ({"items": [A]}, {"items": [one(value="1", **{"$patch": "merge"})]},
         {"items": [one(value="1")]}),
        ({}, {"items": [one(**{"$patch": "delete"}), B]}, {"items": [B]}),
        # $patch in objects.
        ({"strategy": {"type": "x"}}, {"strategy": {"$patch": "replace", "rolling": {"n": None}}},
         {"strategy": {"rolling": {}}}),
        ({"strategy": {"type": "x"}}, {"strategy": {"$patch": "delete"}}, {"strategy": {}}),
        ({}, {"strategy": {"$patch": "delete"}}, {}),
        ({}, {"strategy": {"$patch": "replace", "type": "y"}}, {"strategy": {"type": "y"}}),
        ({"strategy": {"type": "x"}}, {"strategy": {"$patch": "merge", "rolling": 1}},
         {"strategy": {"type": "x", "rolling": 1}}),
        ({"any": 1}, {"$patch": "delete"}, {}),
        # $retainKeys.
        ({"strategy": {"type": "x", "rolling": 1}},
         {"strategy": {"$retainKeys": ["type"], "type": "y", "rolling": None}},
         {"strategy": {"type": "y"}}),
        ({}, {"strategy": {"$retainKeys": ["type"], "type": "y"}}, {"strategy": {"type": "y"}}),
        ({"volumes": [one(value="1", empty={})]},
         {"volumes": [one(value="2", **{"$retainKeys": ["name", "value"]})]},
         {"volumes": [one(value="2")]}),
        # $setElementOrder.
        ({"items": [A, B, C]}, {"$setElementOrder/items": [C, A]}, {"items": [B, C, A]}),
        ({"items": [A, B]}, {"$setElementOrder/items": [A, C, B], "items": [C]},
         {"items": [A, C, B]}),
        ({}, {"$setElementOrder/items": [B, A], "items": [B, A]}, {"items": [B, A]}),
        ({}, {"$setElementOrder/items": [B, A]}, {}),
        ({"items": [A]}, {"$setElementOrder/items": None}, {"items": [A]}),
        ({"items": [A, B]},
         {"$setElementOrder/items": [B], "items": [one(**{"$patch": "delete"})]}, {"items": [B]}),
        ({"items": [A, B]}, {"$setElementOrder/items": [C, A, B], "items": None}, {}),
        ({"plain": ["x", "y"]}, {"$setElementOrder/plain": ["y", "x"]}, {"plain": ["y", "x"]}),
        # $deleteFromPrimitiveList, and lists of primitives.
        ({"plain": ["x", "y"]}, {"plain": ["z", "x", "z"]}, {"plain": ["z", "x", "y"]}),
        ({"plain": ["x", "y", "x"]}, {"$deleteFromPrimitiveList/plain": ["x", "q"]},
         {"plain": ["y"]}),
        ({}, {"$deleteFromPrimitiveList/plain": ["x"]}, {}),
        ({"plain": ["x", "y"]},
         {"$setElementOrder/plain": ["z", "y"], "$deleteFromPrimitiveList/plain": ["x"],
          "plain": ["z"]}, {"plain": ["z", "y"]}),
        ({"any": ["x", "y"]}, {"$deleteFromPrimitiveList/any": ["y"]}, {"any": ["x"]}),
        ({"plain": [True, 1, "1"]}, {"$deleteFromPrimitiveList/plain": [1]},
         {"plain": [True, "1"]}),
        # A field that begins with a dollar sign and is no directive (as in JSONSchemaProps).
        ({"any": {}}, {"any": {"$ref": "#/x"}}, {"any": {"$ref": "#/x"}}),
    ],
)  # fmt: skip
def test_merge(document: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge(document, patch) == merged


@pytest.mark.parametrize(
    ("document", "patch", "what"),
    [
        ({}, {"$patch": "frob"}, r"\$patch: unknown patch type frob"),
        ({}, {"any": {"x": {"$patch": 3}}}, r"any\.x\.\$patch: unknown patch type 3"),
        ({}, {"items": [A, one(**{"$patch": "frob"})]}, r"items\[1\]\.\$patch: unknown patch type"),
        ({}, {"items": [{"value": "x"}]}, r"items\[0\]: does not contain declared merge key: name"),
        ({"items": [{"value": "x"}]}, {"items": [A]}, r"items\[0\]: does not contain declared"),
        ({}, {"items": [{"$patch": "delete"}]}, r"items\[0\]: does not contain declared merge key"),
        ({}, {"items": ["a"]}, r"items\[0\]: must be an object with the merge key 'name'"),
        ({}, {"items": [None]}, r"items\[0\]: must be an object"),
        ({}, {"items": [{"name": []}]}, r"items\[0\]\.name: must be a string, a number or a"),
        ({}, {"items": [one(env=[{}])]}, r"items\[name=a\]\.env\[0\]: does not contain declared"),
        ({}, {"keyless": [A]}, "keyless: the list has no merge key"),
        ({}, {"plain": [[]]}, r"plain\[0\]: must be a string, a number or a boolean"),
        ({}, {"plain": [None]}, r"plain\[0\]: must be a string"),
        ({"plain": [{}]}, {"plain": ["x"]}, r"plain\[0\]: must be a string"),
        ({}, {"$setElementOrder/items": "x"}, r"\$setElementOrder/items: must be a list"),
        ({}, {"$setElementOrder/items": [], "items": {}}, "items: must be a list"),
        ({}, {"$deleteFromPrimitiveList/plain": {}}, r"\$deleteFromPrimitiveList/plain: must be"),
        ({"plain": ["x"]}, {"$deleteFromPrimitiveList/plain": [{}]}, r"plain\[0\]: must be a"),
        ({}, {"$setElementOrder/items": [B, A], "items": [A, B]}, "order in the patch list"),
        ({}, {"$setElementOrder/items": [B], "items": [A]}, "order in the patch list"),
        ({"items": [A]}, {"$setElementOrder/items": [{}]}, "does not contain declared merge key"),
        ({"atomic": [A]}, {"$setElementOrder/atomic": [A]}, "replaced, not merged"),
        ({}, {"strategy": {"$retainKeys": "type"}}, r"strategy\.\$retainKeys: must be a list"),
        ({}, {"strategy": {"$retainKeys": [1]}}, r"strategy\.\$retainKeys: must be a list"),
        ({}, {"strategy": {"$retainKeys": ["x"], "type": "y"}}, "must contain type"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused_with_its_path(
    document: dict[str, Any], patch: dict[str, Any], what: str
) -> None:
    with pytest.raises(BadRequest, match=what):
        strategic_merge_patch(SCHEMA, document, patch)


@pytest.mark.parametrize("patch", [None, [], "x", 1])
def test_a_patch_of_another_shape_is_refused(patch: object) -> None:
    with pytest.raises(BadRequest, match="must be an object"):
        strategic_merge_patch(SCHEMA, {}, patch)


def test_long_lists_merge_in_a_time_that_grows_with_their_length_only() -> None:
    many = 20_000
    document = {"items": [{"name": f"n{i}"} for i in range(many)]}
    patch = {"items": [{"name": f"n{i}", "value": "x"} for i in range(many)]}
    assert len(merge(document, patch)["items"]) == many


def test_a_path_made_long_by_the_asker_is_cut() -> None:
    patch: dict[str, Any] = {"$patch": "frob"}
    for _ in range(100):
        patch = {"x" * 1000: patch}
    with pytest.raises(BadRequest) as refused:
        strategic_merge_patch(SCHEMA, {}, patch)
    assert len(refused.value.message) < 1000
