"""Laws of server-side apply: what holds whatever the documents, the managers and their order."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import Conflict, IsthmusError
from isthmus.model.kind import Document
from isthmus.model.registry import BUILT_IN
from isthmus.model.schema import Schema
from isthmus.serve.kube.answer import Asked
from isthmus.serve.kube.apply import FieldSet, Writing, applied, tracked
from isthmus.serve.kube.apply.compare import applied_fields, compare
from isthmus.serve.kube.apply.fields import EMPTY, Builder, Path, parse, write
from isthmus.serve.kube.apply.managers import read
from isthmus.serve.kube.apply.merge import merged
from isthmus.serve.kube.apply.schemas import parts
from isthmus.serve.kube.applying import applying, configuration, newborn, writing
from isthmus.serve.kube.auth import ANONYMOUS
from isthmus.serve.kube.options import WriteOptions
from isthmus.serve.kube.routes import Target
from tests.property.test_model_documents import JSON, fitting
from tests.unit.serve.kube.apply.things import LATER, ROOT, THING, thing, writes

WORDS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 2)
LOOSE = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


TAGS = st.lists(WORDS, unique=True, max_size=3)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(80, 82)},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "value": WORDS, "tags": TAGS},
    ),
    max_size=3,
    unique_by=lambda item: (item["port"], item.get("protocol", "TCP")),
)
SPECS = some(
    text=WORDS,
    number=NUMBERS,
    labels=st.dictionaries(WORDS, WORDS, max_size=3),
    whole=st.dictionaries(WORDS, WORDS, max_size=2),
    inner=some(a=WORDS, b=WORDS),
    items=ITEMS,
    tags=TAGS,
    list=st.lists(WORDS, max_size=2),
    any=LOOSE,
)
METADATA = some(
    labels=st.dictionaries(WORDS, WORDS, max_size=2),
    finalizers=st.lists(st.sampled_from(["x/a", "x/b"]), unique=True, max_size=2),
)
THINGS = st.builds(
    lambda spec, metadata: {**thing(**spec), "metadata": {"name": "x", **metadata}}, SPECS, METADATA
)
NOTHING: Document = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "x"}}

Leaves = dict[Path, str]


def leaves(document: Document) -> Leaves:
    """Every value that has no parts, and every container, by path; in any order of lists."""
    found: Leaves = {}

    def walk(schema: Schema, value: Any, path: Path) -> None:  # noqa: ANN401 - JSON
        for step, part in (parts(schema, value) or {}).items():
            below = parts(part.schema, part.value)
            here = (*path, step)
            if below is None:
                found[here] = msgspec.json.encode(part.value, order="deterministic").decode()
            else:
                found[here] = "tree"
                walk(part.schema, part.value, here)

    walk(ROOT, writes("x").ownable(document), ())
    return found


def values(document: Document) -> Leaves:
    """The same without containers that hold something."""
    found = leaves(document)
    around = {path[:length] for path in found for length in range(1, len(path))}
    return {path: value for path, value in found.items() if path not in around}


def sets(document: Document) -> dict[str, set[Path]]:
    """What each manager owns."""
    held = read(document["metadata"].get("managedFields"))
    return {manager.name: set(each.fields.paths()) for manager, each in held.items()}


def made(manager: str, document: Document) -> Document:
    return tracked(writes(manager), None, document)


# ------------------------------------------------------------------------- sets are sets

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'v:"x"', "i:0"])
PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=6)


def as_set(paths: set[Path]) -> FieldSet:
    made = Builder()
    for step in {path[0] for path in paths}:
        if (step,) in paths:
            made.add(step)
        made.put(step, as_set({path[1:] for path in paths if path[0] == step and path[1:]}))
    return made.made()


@given(PATHS, PATHS)
def test_sets_of_paths_are_sets(left: set[Path], right: set[Path]) -> None:
    one, other = as_set(left), as_set(right)
    assert set(one.paths()) == left
    assert set(one.union(other).paths()) == left | right
    assert set(one.difference(other).paths()) == left - right
    assert set(one.intersection(other).paths()) == left & right
    assert one.union(other) == other.union(one)
    assert one.difference(one) == EMPTY
    assert bool(one) == bool(left)


@given(PATHS)
def test_what_is_written_is_read(paths: set[Path]) -> None:
    fields = as_set(paths)
    assert parse(msgspec.json.decode(msgspec.json.encode(write(fields)))) == fields


@given(THINGS, THINGS)
def test_the_difference_is_what_differs(old: Document, new: Document) -> None:
    before, after = leaves(old), leaves(new)
    found = compare(ROOT, writes("x").ownable(old), writes("x").ownable(new))
    changed = set(found.modified.paths())
    around = {path for path in changed if "tree" in (before.get(path), after.get(path))}
    assert set(found.added.paths()) == after.keys() - before.keys()
    assert set(found.removed.paths()) == before.keys() - after.keys()
    both = before.keys() & after.keys()
    assert changed == {path for path in both if before[path] != after[path]}
    assert all(before[path] != after[path] for path in around)


# ---------------------------------------------------------------------------- laws of apply


@given(THINGS, THINGS)
def test_applying_twice_is_applying_once(live: Document, config: Document) -> None:
    once = applied(writes("me"), made("other", live), config, force=True)
    assert applied(writes("me", now=LATER), once, config) == once


@given(THINGS)
def test_applying_to_nothing_makes_what_is_applied(config: Document) -> None:
    new = applied(writes("me"), None, config)
    assert leaves(new) == leaves(config)
    assert applied(writes("me", now=LATER), new, config) == new


@given(THINGS, THINGS)
def test_what_is_applied_is_there_and_is_mine(live: Document, config: Document) -> None:
    new = applied(writes("me"), made("other", live), config, force=True)
    said, held = values(config), leaves(new)
    for path, value in said.items():
        assert held[path] == value or (value == "tree" and held[path] == "tree")
    assert sets(new).get("me", set()) == set(
        applied_fields(ROOT, writes("me").ownable(config)).paths()
    ) - {("f:metadata",)}


@given(THINGS, THINGS)
def test_no_field_of_others_is_lost(live: Document, config: Document) -> None:
    """What the configuration does not speak of keeps its value and its owner."""
    before = made("other", live)
    after = applied(writes("me"), before, config, force=True)
    said = leaves(config)
    spoken = {path for path, value in said.items() if value != "tree"}
    for path, value in values(live).items():
        if any(path[:length] in spoken for length in range(1, len(path) + 1)) or path in said:
            continue
        assert leaves(after)[path] == value
        assert path in sets(after)["other"]


@given(THINGS, THINGS)
def test_nobody_owns_what_is_not_there(live: Document, config: Document) -> None:
    before = made("other", live)
    for document in (
        before,
        applied(writes("me"), before, config, force=True),
        tracked(writes("third"), before, {**config, "metadata": before["metadata"]}),
    ):
        there = leaves(document).keys()
        assert all(paths <= there for paths in sets(document).values())


@given(THINGS, THINGS)
def test_conflicts_are_the_values_that_differ(live: Document, config: Document) -> None:
    before = made("other", live)
    said, held = leaves(config), leaves(live)
    clash = any(path in held and held[path] != value for path, value in said.items())
    try:
        applied(writes("me"), before, config)
    except Conflict as refused:
        assert clash
        assert {cause.reason for cause in refused.causes} == {"FieldManagerConflict"}
    else:
        assert not clash


@given(THINGS, THINGS)
def test_who_applies_and_then_nothing_leaves_no_trace(live: Document, config: Document) -> None:
    """Gone is exactly what they alone owned: not what was there before with the same value."""
    before = made("other", live)
    during = applied(writes("me"), before, config, force=True)
    after = applied(writes("me", now=LATER), during, NOTHING)
    assert "me" not in sets(after)
    mine, theirs = sets(during).get("me", set()), sets(during).get("other", set())
    gone = {path for path in mine if not any(path == their[: len(path)] for their in theirs)}
    left = leaves(after)
    for path, value in values(during).items():
        if any(path[:length] in gone for length in range(1, len(path) + 1)):
            assert path not in left
        elif path in theirs:
            assert left[path] == value
    assert left.keys() <= leaves(during).keys()


@given(THINGS, THINGS)
def test_disjoint_managers_may_come_in_any_order(config: Document, split: Document) -> None:
    """Two halves of one configuration, applied by two, one after the other."""
    del split["metadata"]["name"]
    one, two = _halves(config, split)
    forth = applied(writes("b"), applied(writes("a"), None, one), two)
    back = applied(writes("a"), applied(writes("b"), None, two), one)
    assert leaves(forth) == leaves(back)
    assert sets(forth) == sets(back)
    alone = applied(writes("a"), forth, NOTHING)
    assert values(two).items() <= leaves(alone).items()


def _halves(config: Document, split: Document) -> tuple[Document, Document]:
    """Fields that `split` has too for one, the others for the other."""
    one, two = dict(NOTHING), dict(NOTHING)
    for name in ("spec", "metadata"):
        inside = {
            each: value for each, value in config[name].items() if each in split.get(name, {})
        }
        outside = {each: value for each, value in config[name].items() if each not in inside}
        one[name] = {**one.get(name, {}), **inside}
        two[name] = {**two.get(name, {}), **outside}
    one["metadata"]["name"] = two["metadata"]["name"] = "x"
    return one, two


@given(THINGS, THINGS)
def test_a_writer_owns_what_it_changes(live: Document, wanted: Document) -> None:
    before = made("other", live)
    after = tracked(writes("me"), before, wanted)
    old, new = leaves(live), leaves(wanted)
    changed = {path for path, value in new.items() if old.get(path) != value}
    assert sets(after).get("me", set()) == changed
    assert sets(after).get("other", set()) == sets(before).get("other", set()) & (
        new.keys() - changed
    )


@given(THINGS, THINGS)
def test_lists_keep_the_applied_order(live: Document, config: Document) -> None:
    new = merged(ROOT, live, config)
    for name in ("items", "tags"):
        wanted = [_key(each) for each in config["spec"].get(name, [])]
        found = [_key(each) for each in new["spec"].get(name, [])]
        old = [_key(each) for each in live["spec"].get(name, [])]
        assert [each for each in found if each in wanted] == wanted
        rest = [each for each in old if each not in wanted]
        assert [each for each in found if each not in wanted] == rest


def _key(item: Any) -> Any:  # noqa: ANN401 - JSON
    return (item["port"], item.get("protocol", "TCP")) if isinstance(item, dict) else item


@given(THINGS, THINGS, st.sampled_from(["v1", "v2"]), st.sampled_from(["v1", "v2"]))
def test_versions_are_one_object(live: Document, config: Document, one: str, other: str) -> None:
    """The same in another version: the same result, as the first version shows it."""

    def shown(document: Document, version: str) -> Document:
        assert THING.convert is not None
        present = document["apiVersion"].rpartition("/")[2]
        new = document if present == version else THING.convert(document, present, version)
        return {**new, "apiVersion": f"example.io/{version}"}

    def through(first: str, second: str) -> Leaves:
        held = applied(writes("me", first), None, shown(config, first))
        held = tracked(writes("other", "v1"), shown(held, "v1"), _overlaid(shown(held, "v1"), live))
        held = applied(writes("me", second), shown(held, second), shown(NOTHING, second))
        return leaves(shown(held, "v1"))

    # Conversion fills in defaults, so the default protocol is always written out here.
    for each in (live, config):
        for item in each["spec"].get("items", []):
            item.setdefault("protocol", "TCP")
    assert through(one, other) == through("v1", "v1")


def _overlaid(document: Document, other: Document) -> Document:
    new: Document = merged(ROOT, document, other)
    return new


# ------------------------------------------------------------------------------ any document

DEPLOYMENT = BUILT_IN.by_resource("apps", "deployments")
SERVICE = BUILT_IN.by_resource("", "services")
assert DEPLOYMENT is not None
assert SERVICE is not None


def writing_of(kind: Any, manager: str) -> Writing:  # noqa: ANN401 - a Kind
    return Writing(kind, kind.versions[0], manager, LATER)


@given(st.sampled_from([DEPLOYMENT, SERVICE]).flatmap(
    lambda kind: st.tuples(
        st.just(kind), fitting(kind.versions[0].schema), fitting(kind.versions[0].schema)
    )
))  # fmt: skip
def test_any_documents_of_a_kind(case: tuple[Any, Document, Document]) -> None:
    kind, live, config = case
    for each in (live, config):
        each["metadata"] = {**(each.get("metadata") or {}), "name": "x"}
        each["metadata"].pop("managedFields", None)
    before = tracked(writing_of(kind, "other"), None, live)
    try:
        once = applied(writing_of(kind, "me"), before, config, force=True)
        again = applied(writing_of(kind, "me"), once, config)
    except IsthmusError:
        return
    assert again == once


# -------------------------------------------------------------------------------------- fuzz


def asked_of(raw: bytes) -> Asked:
    async def body() -> bytes:
        return raw

    assert SERVICE is not None
    target = Target("", "v1", "services", "a", "x")
    return Asked("PATCH", "patch", target, SERVICE, SERVICE.versions[0], {}, {}, ANONYMOUS, body)


FIELDS = st.recursive(
    st.just({}) | JSON,
    lambda inner: st.dictionaries(
        st.sampled_from([".", "f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "k:", "v:1",
                         "v:", "i:0", "i:x", "x", "", "k:[]", "k:{}", 'v:{"a":"\\ud800"}', "f:"])
        | st.text(max_size=3),
        inner,
        max_size=3,
    ),
    max_leaves=8,
)  # fmt: skip
ENTRIES = JSON | st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "manager": st.just("me") | JSON,
            "operation": st.sampled_from(["Apply", "Update", "", 7]),
            "apiVersion": st.sampled_from(["v1", "v9", "apps/v1", ""]) | JSON,
            "time": st.sampled_from([LATER, "never", "", None, 1]),
            "fieldsType": st.sampled_from(["FieldsV1", "FieldsV1", "X", None]),
            "fieldsV1": FIELDS,
            "subresource": st.sampled_from(["", "status", None, 1]),
        },
    ),
    max_size=4,
)
BODIES = st.binary(max_size=40) | st.builds(
    lambda fields: msgspec.json.encode({"apiVersion": "v1", "kind": "Service", **fields}),
    some(
        metadata=some(name=st.just("x") | JSON, labels=JSON, ownerReferences=JSON, finalizers=JSON),
        spec=some(ports=JSON | st.lists(some(port=JSON, protocol=JSON), max_size=3), selector=JSON),
        status=JSON,
        any=JSON,
    ),
)


@given(BODIES, ENTRIES, st.booleans())
def test_bodies_and_owners_of_any_sort(raw: bytes, listed: Any, force: bool) -> None:  # noqa: ANN401
    asked = asked_of(raw)
    live = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x", "namespace": "a", "managedFields": listed},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80}], "type": "ClusterIP"},
    }
    options = WriteOptions(manager="me")
    try:
        config, _ = configuration(asked, options, raw)
        newborn(writing(asked, options, 0.0), config)
        applying(writing(asked, options, 0.0), config, force=force)(live)
    except IsthmusError:
        pass
    wanted = {**live, "spec": {"ports": [{"port": 81}]}}
    try:
        tracked(writing(asked, options, 0.0), live, wanted)
        tracked(writing(asked, options, 0.0), {**live, "metadata": {"name": "x"}}, wanted)
    except IsthmusError:
        pass


@given(FIELDS)
def test_fields_of_any_sort(value: object) -> None:
    try:
        fields = parse(value)
    except IsthmusError:
        return
    assert parse(write(fields)) == fields
