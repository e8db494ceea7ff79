from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest

from isthmus.model.crd import kind_of
from isthmus.model.registry import BUILT_IN, Registry
from isthmus.serve.kube import gnostic, swagger
from isthmus.serve.kube.openapi import OpenApi
from tests.unit.model.crd.widgets import definition
from tests.unit.serve.kube.kinds import REVIEW, THING, WIDGET

OPENAPI = OpenApi(Registry([THING, WIDGET, REVIEW]))

Read = dict[int, list[Any]]


def read(data: bytes) -> Read:
    """The fields of a protobuf message, by number."""
    found: Read = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        number, form = divmod(varint(), 8)
        match form:
            case 0:
                found.setdefault(number, []).append(varint())
            case 1:
                found.setdefault(number, []).append(struct.unpack_from("<d", data, at)[0])
                at += 8
            case 2:
                size = varint()
                found.setdefault(number, []).append(data[at : at + size])
                at += size
            case _:
                raise AssertionError(f"wire type {form}")
    return found


def named(data: bytes) -> dict[str, Read]:
    """Name -> message, of a list of named messages in field 1."""
    entries = [read(each) for each in read(data).get(1, [])]
    return {entry[1][0].decode(): read(entry[2][0]) for entry in entries}


def schema(node: dict[str, Any]) -> Read:
    """A schema as gnostic reads it."""
    return read(read(read(gnostic.definition("x", node))[1][0])[2][0])


def node(said: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The v2 form of one v3 component."""
    made = swagger.part({"components": {"schemas": {"x": said}}, "paths": {}}, {})
    return msgspec.json.decode(made.definitions["x"].json)


def test_both_forms_name_the_same_definitions_and_paths() -> None:
    spoken = msgspec.json.decode(OPENAPI.v2_json.body)
    assert spoken["swagger"] == "2.0"
    binary = read(OPENAPI.v2.body)
    assert binary[1] == [b"2.0"]
    assert named(binary[9][0]).keys() == spoken["definitions"].keys()
    paths = [read(each)[1][0].decode() for each in read(binary[8][0])[2]]
    assert paths == list(spoken["paths"])
    assert OPENAPI.v2.content_type == swagger.MEDIA


def test_every_reference_leads_to_a_definition() -> None:
    whole = OpenApi(BUILT_IN).v2_json
    definitions = msgspec.json.decode(whole.body)["definitions"]
    referred = {
        part.partition(b'"')[0].decode() for part in whole.body.split(b"#/definitions/")[1:]
    }
    assert referred <= definitions.keys()
    kinds = {
        (who["group"], who["version"], who["kind"])
        for each in definitions.values()
        for who in each.get("x-kubernetes-group-version-kind", ())
    }
    served = {(k.group, v.name, k.name) for k in BUILT_IN for v in k.versions if v.served}
    assert kinds == served


@pytest.mark.parametrize(
    ("v3", "v2"),
    [
        ({"type": "string", "nullable": True, "description": "A."}, {"description": "A."}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True},
         {"x-kubernetes-preserve-unknown-fields": True}),
        ({"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True},
         {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ({"x-kubernetes-int-or-string": True}, {"x-kubernetes-int-or-string": True}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
         {"type": "string", "format": "int-or-string"}),
        ({"type": "integer", "anyOf": [{"minimum": 3}], "not": {"enum": [4]}},
         {"type": "integer"}),
        ({"allOf": [{"$ref": "#/components/schemas/y"}], "description": "A.", "default": {}},
         {"$ref": "#/definitions/y", "description": "A.", "default": {}}),
        ({"type": "array", "items": {"additionalProperties": {"type": "number"}}},
         {"type": "array", "items": {"additionalProperties": {"type": "number"}}}),
    ],
)  # fmt: skip
def test_what_v2_cannot_say_is_left_out(v3: dict[str, Any], v2: dict[str, Any]) -> None:
    assert node(v3) == v2


def test_a_schema_as_protobuf() -> None:
    found = schema(
        {
            "type": "object",
            "description": "D" * 200,
            "required": ["a", "b"],
            "properties": {"a": {"type": "integer", "minimum": -1, "maxLength": 300}},
            "additionalProperties": True,
            "enum": [{"x": 1}],
            "default": [1],
            "x-kubernetes-map-type": "atomic",
        }
    )
    assert read(found[22][0])[1] == [b"object"]
    assert found[4] == [b"D" * 200]
    assert found[19] == [b"a", b"b"]
    inner = named(found[25][0])["a"]
    assert (inner[9], inner[11], read(inner[22][0])[1]) == ([-1.0], [300], [b"integer"])
    assert read(found[21][0])[2] == [1]
    assert read(found[20][0])[2] == [b'{"x":1}']
    assert read(found[5][0])[2] == [b"[1]"]
    extension = read(found[31][0])
    assert (extension[1], read(extension[2][0])[2]) == ([b"x-kubernetes-map-type"], [b'"atomic"'])


def test_apply_finds_in_v2_that_patch_knows_field_validation() -> None:
    entries = [read(each) for each in read(read(OPENAPI.v2.body)[8][0])[2]]
    items = {entry[1][0].decode(): read(entry[2][0]) for entry in entries}
    item = items["/apis/example.io/v1/namespaces/{namespace}/widgets/{name}"]
    patch = read(item[8][0])
    (parameter,) = patch[8]
    inner = read(read(read(parameter)[1][0])[2][0])[3][0]
    assert (read(inner)[2], read(inner)[4], read(inner)[6]) == (
        [b"query"], [b"fieldValidation"], [b"string"],
    )  # fmt: skip


def test_a_new_kind_costs_its_own_part_alone() -> None:
    before = OpenApi(BUILT_IN)
    assert before.v2.etag == OpenApi(BUILT_IN).v2.etag
    kind = kind_of(definition()["spec"], "u1")
    after = OpenApi(BUILT_IN.extended([kind]), before)
    assert after.v2.etag != before.v2.etag
    assert after.v2 is after.v2
    held, new = before._parts, after._parts  # noqa: SLF001 - what is shared cannot be seen outside
    assert all(new[key] is part for key, part in held.items())
    assert new.keys() - held.keys() == {(kind.group, v.name) for v in kind.versions}
    names = {name for name in named(read(after.v2.body)[9][0]) if name.endswith(".Widget")}
    assert names == {f"com.example.shop.{v.name}.Widget" for v in kind.versions}
