from __future__ import annotations

from typing import Any

import msgspec

from isthmus.engine import Database, Delete, Put
from isthmus.mesh.definitions import (
    DEFINITIONS,
    Definition,
    Served,
    claim,
    made,
    names_taken,
    registry,
    row,
    verdict,
)
from isthmus.model.key import ObjectKey
from isthmus.model.registry import BUILT_IN
from tests.unit.model.crd.widgets import Said, definition, version

HERE = "here"


def key(name: str = "widgets.shop.example.com") -> ObjectKey:
    return ObjectKey(HERE, "", name)


def put(
    document: Said, created: int = 0, uid: str = "", **status: object
) -> Put[ObjectKey, Definition]:
    name = document["metadata"]["name"]
    meta = {"name": name, "uid": uid or name, "creationTimestamp": f"2026-01-01T00:00:0{created}Z"}
    raw = msgspec.json.encode({**document, "metadata": meta, "status": status})
    return Put(DEFINITIONS, key(name), row(raw))


def rival(plural: str, **names: Any) -> Said:  # noqa: ANN401 - JSON
    said: Said = {
        "singular": plural[:-1],
        "kind": plural.title(),
        "listKind": f"{plural.title()}List",
    }
    return definition(plural=plural, **{**said, "shortNames": [], **names})


def test_a_row_says_what_the_definition_says() -> None:
    raw = msgspec.json.encode(definition(version("v2"), version("v1", storage=False)))
    found = row(raw)
    assert (found.group, found.names.plural, found.storage) == ("shop.example.com", "widgets", "v2")
    assert (
        msgspec.json.decode(found.spec)
        == definition(version("v2"), version("v1", storage=False))["spec"]
    )
    assert row(b"{}").group == ""


def test_kinds_come_and_go_with_their_definitions() -> None:
    db = Database()
    assert db.read(registry, HERE) is BUILT_IN
    db.commit([put(definition())])
    kinds = db.read(registry, HERE)
    kind = kinds.by_resource("shop.example.com", "widgets")
    assert kind is not None
    assert kind.name == "Widget"
    assert db.read(verdict, key()).served is Served.YES
    db.commit([Delete(DEFINITIONS, key())])
    assert db.read(registry, HERE) is BUILT_IN


def test_what_is_said_of_a_definition_changes_no_kind() -> None:
    db = Database()
    db.commit([put(definition())])
    before, kinds = db.read(claim, key()), db.read(registry, HERE)
    db.commit([put(definition(), storedVersions=["v1"])])
    assert db.read(claim, key()) is before
    assert db.read(registry, HERE) is kinds


def test_a_change_of_one_definition_leaves_the_kinds_of_others() -> None:
    db = Database()
    db.commit([put(definition()), put(rival("wares"))])
    held = db.read(made, key()).kind
    db.commit([put(rival("wares", categories=["more"]))])
    assert db.read(registry, HERE).by_resource("shop.example.com", "widgets") is held


def test_names_belong_to_the_older_whatever_came_first() -> None:
    for clash in (
        rival("wares", kind="Widget"),
        rival("wares", listKind="WidgetList"),
        rival("wares", singular="widget"),
        rival("wares", shortNames=["wg"]),
    ):
        for order in (1, -1):
            db = Database()
            for each in [put(definition(), 1), put(clash, 2)][::order]:
                db.commit([each])
            assert db.read(verdict, key()).served is Served.YES
            lost = db.read(verdict, key("wares.shop.example.com"))
            assert lost.served is Served.CONFLICT
            assert "already in use by widgets.shop.example.com" in lost.message
            assert len(db.read(names_taken, HERE)) == 1
            assert len(db.read(registry, HERE).kinds) == len(BUILT_IN.kinds) + 1


def test_other_groups_have_names_of_their_own() -> None:
    db = Database()
    db.commit([put(definition()), put(definition(group="other.example.com"))])
    assert len(db.read(registry, HERE).kinds) == len(BUILT_IN.kinds) + 2


def test_built_in_kinds_stay_what_they_are() -> None:
    db = Database()
    group = "gateway.networking.k8s.io"
    route = rival("httproutes", kind="HTTPRoute")
    route["spec"]["group"] = group
    route["metadata"]["name"] = f"httproutes.{group}"
    thief = rival("thieves", kind="HTTPRoute")
    thief["spec"]["group"] = group
    thief["metadata"]["name"] = f"thieves.{group}"
    db.commit([put(route), put(thief)])
    assert db.read(registry, HERE) is BUILT_IN
    assert db.read(verdict, key(f"httproutes.{group}")).served is Served.BUILT_IN
    assert db.read(verdict, key(f"thieves.{group}")).served is Served.CONFLICT


def test_what_cannot_be_served_says_why() -> None:
    db = Database()
    bad = version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}})
    db.commit([put(definition(bad))])
    found = db.read(verdict, key())
    assert found.served is Served.UNUSABLE
    assert "properties[a].type" in found.message
    assert db.read(registry, HERE) is BUILT_IN
    assert db.read(verdict, key("none.at.all")).served is Served.UNUSABLE
