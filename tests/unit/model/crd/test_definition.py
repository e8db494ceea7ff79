from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from isthmus.model import intake
from isthmus.model.apiextensions import CUSTOM_RESOURCE_DEFINITION as DEFINITION
from isthmus.model.crd import faults
from isthmus.model.document import MAX_DEPTH
from tests.unit.model.crd.widgets import SCHEMA, Said, definition, version

CRD = DEFINITION.versions[0]


def said(document: Said, old: Said | None = None) -> list[str]:
    return [f"{each.path}: {each.message}" for each in faults(document, old)]


def with_spec(**fields: Any) -> Said:  # noqa: ANN401 - JSON
    document = definition()
    document["spec"] |= fields
    return document


def schema(spec: Said) -> Said:
    whole = {"type": "object", "properties": {"spec": spec}}
    return definition(version(schema={"openAPIV3Schema": whole}))


def test_a_good_definition_passes_every_check() -> None:
    document = definition()
    intake.prepare(DEFINITION, CRD, document)
    assert intake.faults(DEFINITION, document) == []
    assert document["spec"]["conversion"] == {"strategy": "None"}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (with_spec(conversion={"strategy": "Webhook"}),
         "spec.conversion.strategy: Forbidden: conversion webhooks are not supported"),
        (with_spec(conversion={"strategy": "Magic"}), "spec.conversion.strategy: Unsupported"),
        (with_spec(conversion={"strategy": "None", "webhook": {}}), "spec.conversion.webhook"),
        (with_spec(preserveUnknownFields=True), "spec.preserveUnknownFields: Invalid value: true"),
        (definition(shortNames=["A_b"]), "spec.names.shortNames[0]: Invalid value"),
        (definition(categories=["x"] * 101), "spec.names.categories: Too many"),
        (definition(version(deprecationWarning="x")), "only be set for deprecated versions"),
        (definition(version(deprecated=True, deprecationWarning="x" * 257)), "at most 256"),
        (definition(version(subresources={"scale": {}})),
         "subresources.scale.specReplicasPath: Required value"),
        (definition(version(subresources={"scale": {
            "specReplicasPath": ".status.a", "statusReplicasPath": ".status.b[0]"}})),
         "should be a json path under .spec"),
        (definition(version(selectableFields=[{"jsonPath": ".spec.parts"}])),
         "selectableFields[0].jsonPath: Invalid value"),
        (definition(version(selectableFields=[{"jsonPath": ".metadata.name"}])), "metadata"),
        (definition(version(selectableFields=[{"jsonPath": ".spec.none"}])), "must point to"),
        (definition(version(selectableFields=[{"jsonPath": ".spec.color"}] * 2)), "Duplicate"),
        (definition(version(selectableFields=[{"jsonPath": ".spec.color"}] * 9)), "Too many"),
        (definition(version(additionalPrinterColumns=[{"name": "A"}])),
         "spec.versions[0].additionalPrinterColumns[0].type: Required value"),
        (definition(*[version(f"v{n}", storage=n == 1) for n in range(1, 40)]), "Too many: 39"),
        (schema({"type": "strange"}),
         "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Unsupported value"),
        (schema({"type": "object", "x-kubernetes-validations": [{"rule": "self.a"}]}),
         "properties[spec].x-kubernetes-validations[0].rule: Invalid value"),
        (schema({"type": "integer", "default": "a"}), "properties[spec].default: Invalid value"),
        (schema({"type": "object", "default": {"z": 1}, "properties": {"a": {"type": "string"}}}),
         "must not have the unknown field z"),
        (schema({"type": "array", "items": {"type": "integer", "maximum": 2, "default": 3}}),
         "properties[spec].items.default: Invalid value: 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_definition(document: Said, says: str) -> None:
    assert any(says in each for each in said(document)), said(document)


def test_a_version_in_which_objects_are_stored_stays() -> None:
    document = definition(version("v2"))
    document["status"] = {"storedVersions": ["v1", "v2"]}
    assert said(document) == [
        'status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions'
    ]


def test_schemas_are_looked_at_when_they_change() -> None:
    broken = schema({"type": "strange"})
    assert said(broken, deepcopy(broken)) == []
    assert said(broken, definition())


def test_a_definition_of_a_built_in_kind_is_taken_with_a_warning() -> None:
    bad = version(schema={"openAPIV3Schema": {"type": "object", "properties": {"x": {}}}})
    document = definition(
        bad, group="gateway.networking.k8s.io", plural="httproutes", kind="HTTPRoute",
        singular="httproute", listKind="HTTPRouteList",
    )  # fmt: skip
    intake.prepare(DEFINITION, CRD, document)
    assert intake.faults(DEFINITION, document) == []
    (warning,) = intake.warnings(DEFINITION, document)
    assert warning.startswith("httproutes.gateway.networking.k8s.io are built in")


def test_bombs_are_refused_in_few_words() -> None:
    many = {f"p{n}": {"type": "string"} for n in range(9_999)}
    wide = [
        {"openAPIV3Schema": {"type": "object", "properties": {**many, f"q{n}": {"type": "string"}}}}
        for n in range(4)
    ]
    versions = [version(f"v{n}", storage=n == 0, schema=each) for n, each in enumerate(wide)]
    assert any("at most 30000 nodes" in each for each in said(definition(*versions)))
    rule = "self.color != '" + "a" * 9_000 + "'"
    wordy = []
    for n in range(3):
        whole = deepcopy(SCHEMA)
        whole["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": rule}] * 10
        whole["description"] = str(n)
        wordy.append(version(f"v{n}", storage=n == 0, schema={"openAPIV3Schema": whole}))
    assert any("200000 characters" in each for each in said(definition(*wordy)))
    deep: Any = {"type": "string"}
    for _ in range(MAX_DEPTH // 2 - 10):
        deep = {"type": "object", "properties": {"a": deep}}
    assert not any("deep" in each for each in said(schema(deep)))


@pytest.mark.parametrize(
    "odd",
    [None, 1, "x", [], {"type": None}, {"properties": 3}, {"items": 3}, {"not": 3}, {"allOf": {}},
     {"allOf": [3]}, {"x-kubernetes-validations": 3}, {"x-kubernetes-validations": [3]},
     {"enum": 3}, {"required": 3}, {"required": [3]}, {"default": None}],
)  # fmt: skip
def test_nonsense_is_answered(odd: object) -> None:
    """Below `items` the API itself has no types, so anything may stand there."""
    spec = {"type": "array", "items": odd}
    assert isinstance(said(schema(spec)), list)
