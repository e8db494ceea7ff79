from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.errors import BadRequest, Invalid
from isthmus.model.core import SERVICE, Service
from isthmus.model.faults import invalid, required
from isthmus.model.intake import (
    Unreadable,
    faults,
    invalid_object,
    prepare,
    strict_fault,
    strict_warnings,
    view,
)
from isthmus.model.kind import Kind, Version
from isthmus.model.meta import Object
from isthmus.model.shapes import STRING, choice, resource, structure

CUSTOM = Kind(
    group="example.org",
    name="Widget",
    plural="widgets",
    singular="widget",
    versions=(
        Version(
            "v1",
            resource(
                structure(
                    {"size": choice("s", "l", default="s"), "name": STRING}, required=("name",)
                )
            ),
        ),
    ),
    stored="v1",
    view=Object,
)
WIDGET = CUSTOM.versions[0]


def widget(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": spec,
    }


def test_a_document_is_made_to_fit() -> None:
    prepared = prepare(CUSTOM, WIDGET, widget(name="n", foo=1, bar={"x": 1}))
    assert prepared.unknown == ("spec.foo", "spec.bar")
    assert prepared.document["spec"] == {"name": "n", "size": "s"}
    assert faults(CUSTOM, prepared.document) == []


def test_a_custom_kind_of_a_wrong_type_is_invalid() -> None:
    with pytest.raises(
        Invalid, match=r'^Widget\.example\.org "a" is invalid: spec\.name: '
    ) as caught:
        prepare(CUSTOM, WIDGET, widget(name=1))
    assert caught.value.causes[0].path == "spec.name"
    assert caught.value.about.qualified == "widgets.example.org"


def test_a_built_in_kind_of_a_wrong_type_cannot_be_read() -> None:
    document = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": "x"}]}}
    with pytest.raises(BadRequest, match=r"Service in version 'v1' .*spec\.ports\[0\]\.port"):
        prepare(SERVICE, SERVICE.versions[0], document)


def test_faults_of_schema_metadata_and_kind_come_together_once() -> None:
    document = widget(size="xl")
    document["metadata"]["name"] = "A"
    assert [cause.path for cause in faults(CUSTOM, document)] == [
        "metadata.name",
        "spec.name",
        "spec.size",
    ]
    twice = msgspec.structs.replace(CUSTOM, check=(lambda _new, _old: [required("spec.name")],))
    assert len(faults(twice, document)) == 3


def test_strictness_is_said_in_kubernetes_words() -> None:
    fault = strict_fault(["spec.foo"], ["spec.bar"])
    assert fault.message == (
        'strict decoding error: unknown field "spec.foo", duplicate field "spec.bar"'
    )
    assert strict_warnings(["a", "b"]) == ('unknown field "a"', 'unknown field "b"')


def test_one_fault_stands_alone_and_several_in_brackets() -> None:
    one = invalid_object(SERVICE, "x", [required("spec.ports")])
    assert one.message == 'Service "x" is invalid: spec.ports: Required value'
    two = invalid_object(SERVICE, "x", [required("spec.ports"), invalid("", 1, "no")])
    assert two.message == (
        'Service "x" is invalid: [spec.ports: Required value, Invalid value: 1: no]'
    )


def test_a_view_is_lenient() -> None:
    raw = b'{"metadata":{"name":"a","managedFields":[1]},"spec":{"type":"Sometimes","new":{}}}'
    seen = view(SERVICE, raw)
    assert isinstance(seen, Service)
    assert (seen.metadata.name, seen.spec.type) == ("a", "Sometimes")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"spec":{"ports":5}}', b'{"spec":' + b"[" * 99999]
)
def test_what_makes_no_view_is_left_out_alone(raw: bytes) -> None:
    seen = view(SERVICE, raw)
    assert isinstance(seen, Unreadable)
    assert seen.reason.startswith("Service: ")
