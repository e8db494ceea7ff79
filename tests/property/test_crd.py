"""Laws of definitions, for schemas and objects made by chance."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import Invalid
from isthmus.model import intake
from isthmus.model.crd import Unusable, faults, kind_of, survey
from isthmus.model.crd.shape import shape
from isthmus.model.crd.structural import read
from isthmus.model.crd.values import faults as value_faults
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Object
from isthmus.model.schema import Schema
from isthmus.model.walk import MAX_FAULTS, defaults, drop_nulls, prune, unknown_fields
from isthmus.serve.kube.components import Components
from tests.support.examples import examples
from tests.unit.model.crd.widgets import definition, version

Said = dict[str, Any]

COIN: st.SearchStrategy[int] = st.integers(0, 3)
NAMES = st.sampled_from(["a", "b", "c", "d-e"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9).map(lambda x: round(x, 1)),
    st.sampled_from(["", "x", "abc", "10.0.0.1", "2026-01-01T00:00:00Z"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Said:
    """A structural schema."""
    kinds = ["string", "integer", "number", "boolean", "either", "any"]
    more = ["object", "object", "map", "open", "array"] if depth else []
    kind = draw(st.sampled_from([*kinds, *more]))
    said: Said = {"type": kind}
    match kind:
        case "string":
            said |= draw(st.sampled_from([
                {}, {"enum": ["x", "abc"]}, {"pattern": "^[a-z]*$"}, {"maxLength": 2},
                {"format": "ipv4"}, {"format": "date-time"}, {"minLength": 1, "default": "x"},
            ]))  # fmt: skip
        case "integer" | "number":
            said |= draw(st.sampled_from([
                {}, {"minimum": 0, "default": 3}, {"maximum": 5, "exclusiveMaximum": True},
                {"multipleOf": 2}, {"enum": [1, 2]}, {"minimum": 1, "exclusiveMinimum": True},
            ]))  # fmt: skip
        case "either":
            said = {"x-kubernetes-int-or-string": True}
        case "any":
            said = {"x-kubernetes-preserve-unknown-fields": True}
        case "map":
            said = {"type": "object", "additionalProperties": draw(schemas(depth - 1))}
        case "open":
            said = {"type": "object", "additionalProperties": True}
        case "array":
            said["items"] = draw(schemas(depth - 1))
            said |= draw(st.sampled_from([{}, {"maxItems": 2}, {"minItems": 1}]))
        case "object":
            said = draw(objects(depth))
        case _:
            pass
    if "default" not in said and draw(COIN) == 1:
        said["nullable"] = True
    return said


@st.composite
def objects(draw: st.DrawFn, depth: int) -> Said:
    """The schema of an object with fields, and rules about them."""
    fields = draw(st.dictionaries(NAMES, schemas(depth - 1), max_size=3))
    said: Said = {"type": "object", "properties": fields}
    if fields and draw(COIN) == 0:
        names = st.sampled_from(sorted(fields))
        said["required"] = draw(st.lists(names, unique=True, min_size=1, max_size=2))
    if len(fields) > 1 and draw(COIN) == 0:
        how = draw(st.sampled_from(["oneOf", "anyOf", "allOf"]))
        said[how] = [{"required": [name]} for name in sorted(fields)[:2]]
    if draw(COIN) == 1:
        said["x-kubernetes-preserve-unknown-fields"] = True
    if draw(COIN) == 1:
        said["default"] = {}
        said.pop("required", None)
        said.pop("oneOf", None)
        said.pop("anyOf", None)
        said.pop("allOf", None)
    return said


def whole(spec: Said) -> Said:
    return {"type": "object", "properties": {"spec": spec}}


def settle(schema: Schema, document: Document) -> Document:
    """What an object goes through before it is checked."""
    document = deepcopy(document)
    prune(schema, document)
    drop_nulls(schema, document)
    defaults(schema, document)
    return document


@settings(deadline=None)
@given(schemas(), VALUES)
def test_pruning_and_filling_in_settle_at_once(spec: Said, value: object) -> None:
    found = read(whole(spec), "")
    assert found.faults == ()
    schema = shape(found.root)
    once = settle(schema, {"spec": value})
    assert settle(schema, once) == once
    assert unknown_fields(schema, once) == []


@settings(deadline=None)
@given(schemas(), VALUES, VALUES)
def test_every_object_is_checked_to_the_end(spec: Said, value: object, old: object) -> None:
    root = read(whole(spec), "").root
    found = value_faults(root, {"spec": value})
    assert len(found) <= MAX_FAULTS
    assert all(each.path.startswith("spec") and each.message for each in found)
    assert value_faults(root, {"spec": value}, {"spec": value}) == []
    changed = value_faults(root, {"spec": value}, {"spec": old})
    assert {each.path for each in changed} <= {each.path for each in found}


def published(root: Said) -> Said:
    """The schema as OpenAPI shows it, read back: shared parts put where they are referred to."""
    schema = shape(read(root, "").root)
    one = Version("v1", schema)
    kind = Kind(
        group="e.com",
        name="E",
        plural="es",
        singular="e",
        versions=(one,),
        stored="v1",
        view=Object,
    )
    components = Components()
    name = components.kind(kind, one)
    node = deepcopy(components.schemas[name])
    node["properties"] = {"spec": node["properties"]["spec"]}
    node.pop("x-kubernetes-group-version-kind")
    found: Said = bare(node)
    return found


def bare(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Without what OpenAPI adds: references to shared types, and the list type nobody wrote."""
    if isinstance(node, list):
        return [bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    said = {name: bare(each) for name, each in node.items()}
    if said.get("x-kubernetes-list-type") == "atomic":
        del said["x-kubernetes-list-type"]
    parts = said.get("allOf")
    if isinstance(parts, list) and any("$ref" in part for part in parts):
        del said["allOf"]
    return said


@settings(deadline=None)
@given(schemas(), VALUES)
def test_what_openapi_tells_means_the_same(spec: Said, value: object) -> None:
    original = read(whole(spec), "")
    again = read(published(whole(spec)), "")
    assert again.faults == ()
    document = {"spec": value}
    assert value_faults(again.root, document) == value_faults(original.root, document)
    assert settle(shape(again.root), document) == settle(shape(original.root), document)


TOP = ["spec", "status", "metadata", "kind", "x"]
WIDGETS = kind_of(definition()["spec"], "uid")


@settings(deadline=None, max_examples=examples(300))
@given(
    st.dictionaries(st.sampled_from(["spec", "status", "metadata", "kind", "x"]), VALUES), VALUES
)
def test_any_document_is_taken_or_refused(document: Said, spec: object) -> None:
    said = {"metadata": {"name": "a", "namespace": "b"}, **document}
    for each in (said, {**said, "spec": spec}, {**said, "spec": {"color": spec, "parts": spec}}):
        copy = deepcopy(each)
        try:
            intake.prepare(WIDGETS, WIDGETS.versions[0], copy)
        except Invalid as fault:
            assert fault.causes
            continue
        found = intake.faults(WIDGETS, copy) + intake.faults(WIDGETS, copy, {"spec": spec})
        assert all(cause.message for cause in found)
        for column in WIDGETS.versions[0].columns:
            column.cell(copy, 0.0)


KEYWORDS = st.sampled_from([
    "type", "properties", "items", "additionalProperties", "required", "enum", "default", "not",
    "allOf", "anyOf", "oneOf", "$ref", "pattern", "minimum", "maxLength", "nullable",
    "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource", "rule", "message",
])  # fmt: skip
WORDS = st.sampled_from(["object", "array", "string", "map", "set", "self.a == 1", "^a", "("])
NONSENSE = st.recursive(
    SCALARS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | NAMES, inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=examples(200))
@given(st.dictionaries(KEYWORDS, NONSENSE, max_size=4))
def test_any_json_is_a_schema_or_full_of_faults(said: Said) -> None:
    document = definition(version(schema={"openAPIV3Schema": said}))
    found = list(faults(document, None))
    assert all(each.path and each.message for each in found)
    broken = survey(said).faults
    try:
        kind = kind_of(document["spec"], "uid")
    except Unusable as fault:
        assert broken
        assert str(fault)
    else:
        assert not broken
        assert kind.versions[0].schema.fields
