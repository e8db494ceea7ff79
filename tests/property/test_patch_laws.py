"""Laws of patches: what holds whatever the documents and the patches are."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import UserFault
from isthmus.model.schema import Patch, Schema, Type
from isthmus.serve.kube.patch import apply, merge_patch, strategic_merge_patch

Object = dict[str, Any]

NAMES = st.sampled_from(["a", "b", "c", "items", "plain", "$patch", "$retainKeys", "name"])
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "a", "b", "delete", "replace", "merge", "/a", "/items/0", "add", "copy"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4)
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
PATCHES = st.dictionaries(NAMES, st.none() | VALUES, max_size=4)


# ---- merge patch


def merge_diff(old: Object, new: Object) -> Object:
    """The shortest merge patch from old to new (neither holds null)."""
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        held = old.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            if inner := merge_diff(held, value):
                patch[name] = inner
        elif name not in old or msgspec.json.encode(held) != msgspec.json.encode(value):
            patch[name] = value
    return patch


@given(OBJECTS, PATCHES)
def test_merging_twice_is_merging_once(document: Object, patch: Object) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(OBJECTS, OBJECTS)
def test_a_merge_diff_leads_to_its_target(old: Object, new: Object) -> None:
    assert merge_patch(old, merge_diff(old, new)) == new


@given(OBJECTS)
def test_an_empty_patch_is_nothing(document: Object) -> None:
    assert merge_patch(document, {}) == document


# ---- strategic merge patch: a reference diff, as kubectl makes it

TEXT = Schema(type=Type.STRING)
LEAF = Schema(
    type=Type.OBJECT,
    properties={
        "name": TEXT,
        "value": TEXT,
        "tags": Schema(type=Type.ARRAY, items=TEXT, patch=Patch.MERGE),
    },
)
NODE = Schema(
    type=Type.OBJECT,
    properties={
        "text": TEXT,
        "name": TEXT,
        "labels": Schema(type=Type.MAP, values=TEXT),
        "plain": Schema(type=Type.ARRAY, items=TEXT, patch=Patch.MERGE),
        "atomic": Schema(type=Type.ARRAY, items=LEAF),
        "items": Schema(type=Type.ARRAY, items=LEAF, patch=Patch.MERGE, merge_key="name"),
    },
)
ROOT = Schema(
    type=Type.OBJECT,
    properties={
        "node": NODE,
        "nodes": Schema(type=Type.ARRAY, items=NODE, patch=Patch.MERGE, merge_key="name"),
    },
)

LETTERS = st.sampled_from("abcde")
PLAIN = st.lists(LETTERS, unique=True, max_size=4)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


def keyed(items: st.SearchStrategy[Object]) -> st.SearchStrategy[list[Object]]:
    """Lists of objects, each with a name of its own."""
    return st.builds(
        lambda names, bodies: [
            {**body, "name": name} for name, body in zip(names, bodies, strict=False)
        ],
        st.lists(LETTERS, unique=True, max_size=4),
        st.lists(items, min_size=4, max_size=4),
    )


LEAVES = some(value=LETTERS, tags=PLAIN)
NODES = some(
    text=LETTERS,
    labels=st.dictionaries(LETTERS, LETTERS, max_size=3),
    plain=PLAIN,
    atomic=st.lists(LEAVES, max_size=2),
    items=keyed(LEAVES),
)
ROOTS = some(node=NODES, nodes=keyed(NODES))


def strategic_diff(schema: Schema, old: Object, new: Object) -> Object:
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        inner = schema.fields.get(name) if schema.type is Type.OBJECT else schema.values
        assert inner is not None
        if name not in old:
            patch[name] = value
        elif old[name] == value:
            continue
        elif isinstance(value, dict):
            patch[name] = strategic_diff(inner, old[name], value)
        elif isinstance(value, list) and inner.patch is Patch.MERGE:
            patch |= list_diff(inner, name, old[name], value)
        else:
            patch[name] = value
    return patch


def list_diff(schema: Schema, name: str, old: list[Any], new: list[Any]) -> Object:
    key = schema.merge_key
    if not key:
        return {
            f"$setElementOrder/{name}": new,
            f"$deleteFromPrimitiveList/{name}": [value for value in old if value not in new],
            name: [value for value in new if value not in old],
        }
    before = {item[key]: item for item in old}
    after = {item[key] for item in new}
    assert schema.items is not None
    changes: list[Object] = []
    for item in new:
        if (held := before.get(item[key])) is None:
            changes.append(item)
        elif held != item:
            changes.append({**strategic_diff(schema.items, held, item), key: item[key]})
    gone = [{"$patch": "delete", key: one} for one in before if one not in after]
    return {f"$setElementOrder/{name}": [{key: item[key]} for item in new], name: changes + gone}


@given(ROOTS, ROOTS)
def test_a_strategic_diff_leads_to_its_target(old: Object, new: Object) -> None:
    patch = strategic_diff(ROOT, old, new)
    assert strategic_merge_patch(ROOT, old, patch) == new


@given(ROOTS, ROOTS)
def test_a_strategic_diff_may_be_sent_twice(old: Object, new: Object) -> None:
    patch = strategic_diff(ROOT, old, new)
    once = strategic_merge_patch(ROOT, old, patch)
    assert strategic_merge_patch(ROOT, once, patch) == once


@given(ROOTS)
def test_an_object_merged_into_nothing_is_itself(new: Object) -> None:
    assert strategic_merge_patch(ROOT, {}, new) == new


@given(OBJECTS, PATCHES)
def test_without_a_schema_and_directives_it_is_a_merge_patch(
    document: Object, patch: Object
) -> None:
    def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, dict):
            return {name: plain(held) for name, held in value.items() if name[0] != "$"}
        return [plain(held) for held in value] if isinstance(value, list) else value

    document, patch = plain(document), plain(patch)
    unknown = Schema(type=Type.ANY)
    assert strategic_merge_patch(unknown, document, patch) == merge_patch(document, patch)


# ---- hostile patches

OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "eat"])},
        optional={
            "path": st.sampled_from(["", "/", "/a", "/a/b", "/items/0", "/items/-", "/a~", "x"]),
            "from": st.sampled_from(["", "/a", "/items", "/items/0", "/b/c"]) | VALUES,
            "value": st.none() | VALUES,
        },
    ),
    max_size=5,
)
TYPES = st.sampled_from(
    [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ]
)
ANYTHING = st.one_of(
    OPERATIONS,
    PATCHES,
    VALUES,
    st.dictionaries(
        st.sampled_from(
            ["items", "plain", "atomic", "labels", "name", "text"]
            + [f"{d}{n}" for d in ("$setElementOrder/", "$deleteFromPrimitiveList/")
               for n in ("items", "plain", "atomic", "labels", "")]
        ),
        st.lists(PATCHES | SCALARS, max_size=3) | VALUES | st.none(),
    ),
).map(msgspec.json.encode) | st.binary(max_size=20)  # fmt: skip


@given(TYPES, OBJECTS | NODES, ANYTHING)
def test_nothing_but_a_fault_escapes_and_nothing_is_changed(
    content_type: str, document: Object, body: bytes
) -> None:
    before = copy.deepcopy(document)
    try:
        result = apply(content_type, NODE, document, body, custom=False)
    except UserFault as fault:
        assert fault.http in (400, 413, 422)
    else:
        assert isinstance(result, dict)
        msgspec.json.encode(result)
    assert document == before
