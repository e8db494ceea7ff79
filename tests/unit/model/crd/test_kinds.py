from __future__ import annotations

from copy import deepcopy

import pytest

from isthmus.errors import TooLarge
from isthmus.model import intake
from isthmus.model.crd import Unusable, kind_of
from isthmus.model.crd.rules import UNCHECKED
from isthmus.model.kind import Kind
from isthmus.model.registry import by_resource
from isthmus.model.walk import MAX_FILLED, defaults
from tests.unit.model.crd.widgets import SCHEMA, Said, definition, version, widget


def kind(*versions: Said) -> Kind:
    return kind_of(definition(*versions)["spec"], "uid-1")


def faults(of: Kind, document: Said, old: Said | None = None) -> dict[str, str]:
    document = deepcopy(document)
    intake.prepare(of, of.versions[0], document)
    return {each.path: each.message for each in intake.faults(of, document, old)}


def test_a_definition_says_everything_of_its_kind() -> None:
    found = kind(version("v2"), version("v1", storage=False, served=False))
    assert (found.group, found.name, found.plural) == ("shop.example.com", "Widget", "widgets")
    assert (found.stored, found.definition, found.custom) == ("v2", "uid-1", True)
    assert [each.name for each in found.versions if found.version(each.name)] == ["v2"]
    assert (found.short_names, found.categories) == (("wg",), ("toys",))
    assert found.namespaced
    assert found.status
    assert found.scale is not None
    assert found.scale.spec_replicas == "spec.replicas"
    assert found.field_selectors == {"spec.color": "spec.color"}
    assert "create" in found.verbs
    ending = kind_of(definition()["spec"], "u", ending=True)
    assert "create" not in ending.verbs
    assert "delete" in ending.verbs


def test_each_version_has_subresources_and_selectable_fields_of_its_own() -> None:
    plain = version("v1", storage=False, subresources={}, selectableFields=[])
    found = kind(version("v2"), plain)
    new, old = (found.seen_in(each) for each in found.versions)
    assert (new.status, new.scale, new.field_selectors) == (
        True, found.scale, {"spec.color": "spec.color"},
    )  # fmt: skip
    assert (old.status, old.scale, old.field_selectors) == (False, None, {})
    assert found.seen_in(found.versions[1]) is old
    built_in = by_resource("apps", "deployments")
    assert built_in is not None
    assert built_in.seen_in(built_in.versions[0]) is built_in


def test_another_edition_says_something_else() -> None:
    assert kind(version()).edition == kind(version()).edition
    assert kind(version()).edition != kind(version(selectableFields=[])).edition
    assert kind_of(definition()["spec"], "u", ending=True).edition == kind(version()).edition


def test_objects_are_checked_as_a_whole() -> None:
    of = kind()
    assert faults(of, widget()) == {}
    assert faults(of, widget(replicas=20, color="blue")) == {
        "spec": 'Invalid value: "object": too many'
    }
    found = faults(of, widget(color=1, replicas=-1, parts=[{"name": "a"}, {"name": "a"}]))
    assert found.keys() == {"spec.color", "spec.replicas", "spec.parts[1]", "<nil>"}
    assert UNCHECKED in found["<nil>"]
    old = widget()
    intake.prepare(of, of.versions[0], old)
    assert faults(of, widget(color="blue"), old)["spec"].endswith("color is fixed")


def test_types_of_metadata_are_looked_at_first() -> None:
    of = kind()
    document = widget()
    document["metadata"]["labels"] = {"a": 1}
    with pytest.raises(Exception, match="metadata.labels.a"):
        intake.prepare(of, of.versions[0], document)


def test_versions_differ_in_what_they_show() -> None:
    old = deepcopy(SCHEMA)
    old["properties"]["spec"]["properties"]["shade"] = {"type": "string", "default": "dark"}
    of = kind(version("v1"), version("v1alpha1", storage=False, schema={"openAPIV3Schema": old}))
    assert of.convert is not None
    written = {**widget(shade="light"), "apiVersion": "shop.example.com/v1alpha1"}
    stored = of.convert(written, "v1alpha1", "v1")
    assert stored["spec"]["shade"] == "light"
    assert "shade" not in of.convert(stored, "v1", "v1")["spec"]
    assert of.convert(stored, "v1", "v1alpha1")["spec"]["shade"] == "light"
    assert of.convert(widget(), "v1", "v1alpha1")["spec"]["shade"] == "dark"


def test_deprecation_has_its_words() -> None:
    found = kind(version("v1", deprecated=True))
    assert found.versions[0].deprecated == "shop.example.com/v1 Widget is deprecated"
    own = kind(version("v1", deprecated=True, deprecationWarning="use gadgets"))
    assert own.versions[0].deprecated == "use gadgets"


def test_what_cannot_be_served_is_not_a_kind() -> None:
    bad = version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}})
    with pytest.raises(Unusable, match=r"version v1: schema.properties\[a\].type"):
        kind(bad)
    with pytest.raises(Unusable, match="no version is the storage version"):
        kind(version(storage=False))


def test_defaults_cannot_make_a_small_object_huge() -> None:
    fields = {f"f{n}": {"type": "string", "default": "x"} for n in range(1000)}
    item = {"type": "object", "properties": fields}
    whole = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"l": {"type": "array", "items": item}}}
        },
    }
    of = kind(version(schema={"openAPIV3Schema": whole}, selectableFields=[], subresources={}))
    small = {**widget(), "spec": {"l": [{} for _ in range(MAX_FILLED // 1000 + 1)]}}
    with pytest.raises(TooLarge, match="defaults would add more"):
        defaults(of.versions[0].schema, deepcopy(small))
    assert of.convert is not None
    assert of.convert(small, "v1", "v1")["kind"] == "Widget"


def test_each_version_is_written_by_its_own_rules() -> None:
    def most(limit: int) -> Said:
        spec: Said = {
            "type": "object",
            "properties": {"number": {"type": "integer"}, f"of{limit}": {"type": "string"}},
            "x-kubernetes-validations": [
                {"rule": f"self.number < {limit}", "message": f"below {limit}"}
            ],
        }
        return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}

    of = kind(version("v1", schema=most(10)), version("v1beta1", storage=False, schema=most(5)))
    assert of.written_in(of.versions[0]) is of
    beta = of.written_in(of.versions[1])
    held = {**widget(), "spec": {"number": 7, "of10": "x"}}
    assert [each.message for each in intake.faults(of, held)] == []
    assert "below 5" in intake.faults(beta, held)[0].message
    above = {**widget(), "spec": {"number": 12}}
    assert ["below 10" in each.message for each in intake.faults(of, above)] == [True]
    assert ["below 5" in each.message for each in intake.faults(beta, above)] == [True]
    # What v1beta1 does not show has not changed for who writes in it.
    assert intake.faults(beta, {**widget(), "spec": {"number": 7}}, held) == []
