from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from isthmus.errors import Conflict
from isthmus.model.conversion import by_schema
from isthmus.model.kind import Document, Version
from isthmus.model.shapes import INTEGER, METADATA, STRING, structure, text
from isthmus.serve.kube.apply import Writing, applied, tracked
from tests.unit.serve.kube.apply.things import LATER, THING, owners, thing, writes


def spec_of(document: Document) -> Any:  # noqa: ANN401 - JSON
    return document.get("spec")


def test_neither_document_is_changed() -> None:
    live = tracked(writes("other"), None, thing(text="a", items=[{"port": 1, "tags": ["x"]}]))
    config = thing(text="b", items=[{"port": 1, "tags": ["y"]}])
    before = copy.deepcopy((live, config))
    new = applied(writes("me"), live, config, force=True)
    new["spec"]["items"][0]["tags"].append("z")
    assert (live, config) == before


def test_what_others_own_inside_a_dropped_item_goes_with_it() -> None:
    live = applied(writes("me"), None, thing(items=[{"port": 1}, {"port": 2}]))
    value = thing(items=[{"port": 1, "value": "x"}, {"port": 2}])
    live = tracked(writes("other"), live, {**value, "metadata": live["metadata"]})
    new = applied(writes("me"), live, thing(items=[{"port": 2}]))
    assert spec_of(new) == {"items": [{"port": 2}]}
    assert list(owners(new)) == ["me Apply"]


def test_an_item_that_others_own_too_stays() -> None:
    live = applied(writes("one"), None, thing(items=[{"port": 1, "value": "x"}]))
    live = applied(writes("two"), live, thing(items=[{"port": 1, "tags": ["t"]}]))
    new = applied(writes("one"), live, thing())
    assert spec_of(new) == {"items": [{"port": 1, "tags": ["t"]}]}


def test_what_nobody_owns_survives_what_was_around_it() -> None:
    """An unowned key of a map outlives the keys that its applier leaves out."""
    live = applied(writes("me"), None, thing(labels={"a": "1"}))
    live["spec"]["labels"]["unowned"] = "2"
    assert spec_of(applied(writes("me"), live, thing())) == {"labels": {"unowned": "2"}}


def test_whole_values_conflict_as_one() -> None:
    live = applied(writes("one"), None, thing(whole={"a": "1"}, list=["a"]))
    with pytest.raises(Conflict) as refused:
        applied(writes("two"), live, thing(whole={"b": "1"}, list=["b"]))
    assert [cause.path for cause in refused.value.causes] == [".spec.list", ".spec.whole"]
    new = applied(writes("two"), live, thing(whole={"b": "1"}), force=True)
    assert spec_of(new) == {"whole": {"b": "1"}, "list": ["a"]}


def test_an_object_without_accounts_belonged_to_somebody_before() -> None:
    live = thing(text="a", number=1)
    with pytest.raises(Conflict, match='"before-first-apply" using example.io/v1: .spec.number'):
        applied(writes("me"), live, thing(text="a", number=2))
    new = applied(writes("me"), live, thing(text="a"))
    assert owners(new) == {
        "me Apply": {"f:spec": {"f:text": {}}},
        "before-first-apply Update": {"f:spec": {".": {}, "f:number": {}, "f:text": {}}},
    }


def test_the_time_stands_still_while_nothing_changes() -> None:
    once = applied(writes("me"), None, thing(text="a"))
    again = applied(writes("me", now=LATER), once, thing(text="a"))
    assert again == once
    more = applied(writes("me", now=LATER), once, thing(text="b"))
    assert more["metadata"]["managedFields"][0]["time"] == LATER


def test_an_applier_is_the_same_in_every_version() -> None:
    live = applied(writes("me"), None, thing(text="a", number=1, labels={"a": "1"}))
    assert THING.convert is not None
    shown = {**THING.convert(live, "v1", "v2"), "apiVersion": "example.io/v2"}
    new = applied(writes("me", "v2"), shown, thing("v2", words="b", labels={"a": "1"}))
    assert spec_of(new) == {"words": "b", "labels": {"a": "1"}}
    [entry] = new["metadata"]["managedFields"]
    assert entry["apiVersion"] == "example.io/v2"


def test_what_others_own_in_another_version_stays() -> None:
    live = applied(writes("one"), None, thing(text="a", number=1))
    assert THING.convert is not None
    shown = {**THING.convert(live, "v1", "v2"), "apiVersion": "example.io/v2"}
    shown = applied(writes("two", "v2"), shown, thing("v2", words="a"))
    back = {**THING.convert(shown, "v2", "v1"), "apiVersion": "example.io/v1"}
    assert spec_of(applied(writes("one"), back, thing())) == {"text": "a"}


def test_accounts_in_a_version_that_is_gone_hinder_nobody() -> None:
    live = applied(writes("one"), None, thing(text="a"))
    live["metadata"]["managedFields"][0]["apiVersion"] = "example.io/v0"
    new = applied(writes("two"), live, thing(text="b"))
    assert list(owners(new)) == ["two Apply"]
    again = applied(writes("one"), live, thing(number=1))
    assert spec_of(again) == {"text": "a", "number": 1}


def test_identity_is_nobodys() -> None:
    config = thing()
    del config["spec"]
    config["metadata"] |= {"uid": "1", "resourceVersion": "7", "labels": {"a": "b"}}
    live = tracked(writes("other"), None, thing())
    new = applied(writes("me"), live, config)
    assert owners(new)["me Apply"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    assert new["metadata"]["resourceVersion"] == "7"
    assert new["metadata"]["uid"] == "1"


def test_status_is_left_alone_but_by_its_own_applier() -> None:
    live = tracked(writes("other"), None, thing(text="a"))
    whole = {**thing(text="a"), "status": {"phase": "x"}}
    assert "status" not in applied(writes("me"), live, whole)
    told = applied(writes("me", subresource="status"), live, {**whole, "metadata": {"labels": {}}})
    assert told["status"] == {"phase": "x"}
    assert "labels" not in told["metadata"]
    assert owners(told)["me Apply"] == {"f:status": {"f:phase": {}}}


def test_a_wish_that_was_not_kept_is_still_a_wish() -> None:
    """A field that its owner lost to somebody who kept no accounts is not free for others."""
    live = applied(writes("one"), None, thing(text="a", number=1))
    del live["spec"]["number"]
    with pytest.raises(Conflict, match='conflict with "one": .spec.number'):
        applied(writes("two"), live, thing(number=2))
    assert spec_of(applied(writes("one"), live, thing(text="a", number=1)))["number"] == 1


def test_a_default_takes_the_place_of_what_went_in_another_version() -> None:
    spec = structure({"mode": text(default="off"), "text": STRING, "number": INTEGER})
    root = structure({"apiVersion": STRING, "kind": STRING, "metadata": METADATA, "spec": spec})
    schemas = {"v1": root, "v2": root}
    versions = {name: Version(name=name, schema=schema) for name, schema in schemas.items()}
    kind = msgspec.structs.replace(
        THING, versions=tuple(versions.values()), convert=by_schema(schemas)
    )

    def who(manager: str, version: str = "v1") -> Writing:
        return writes(manager)._replace(kind=kind, version=versions[version])

    live = applied(who("me"), None, thing(mode="on", text="a"))
    live = applied(who("other"), live, thing(number=1))
    shown = {**live, "apiVersion": "example.io/v2"}
    new = applied(who("me", "v2"), shown, thing("v2", text="a"))
    assert spec_of(new) == {"mode": "off", "text": "a", "number": 1}


def test_a_refusal_is_bounded() -> None:
    long, many = "x" * 5000, range(400)
    live = applied(writes("one"), None, thing(any={long: {str(n): 1 for n in many}}))
    with pytest.raises(Conflict, match="failed with 400 conflicts") as refused:
        applied(writes("two"), live, thing(any={long: {str(n): 2 for n in many}}))
    assert len(refused.value.causes) == 256
    assert refused.value.message.endswith("and 144 more")
    assert len(refused.value.message) < 300_000
