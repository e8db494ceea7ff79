from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.errors import BadRequest
from isthmus.store import codec

SERVICE: dict[str, Any] = {
    "spec": {"ports": [{"port": 80, "name": "http"}], "clusterIP": "10.96.0.9"},
    "kind": "Service",
    "metadata": {"namespace": "faces", "name": "face", "resourceVersion": "7", "selfLink": "/x"},
    "apiVersion": "v1",
    "status": {},
}


def test_type_and_metadata_come_first_and_the_rest_is_sorted() -> None:
    assert codec.encode(SERVICE) == (
        b'{"apiVersion":"v1","kind":"Service","metadata":{"name":"face","namespace":"faces"},'
        b'"spec":{"clusterIP":"10.96.0.9","ports":[{"name":"http","port":80}]},"status":{}}'
    )


def test_equal_documents_are_equal_bytes() -> None:
    turned = {name: SERVICE[name] for name in reversed(SERVICE)}
    turned["spec"] = {name: SERVICE["spec"][name] for name in reversed(SERVICE["spec"])}
    assert codec.encode(turned) == codec.encode(SERVICE)


def test_encoding_changes_nothing() -> None:
    before = msgspec.json.encode(SERVICE)
    codec.encode(SERVICE)
    assert msgspec.json.encode(SERVICE) == before


def test_the_revision_is_spliced_in() -> None:
    raw = codec.encode(SERVICE)
    spliced = codec.with_revision(raw, 12)
    assert b'"metadata":{"resourceVersion":"12","name":"face"' in spliced
    assert msgspec.json.decode(spliced) == codec.document(raw, 12)


def test_splicing_into_empty_metadata() -> None:
    raw = codec.encode({"apiVersion": "v1", "kind": "X", "metadata": {}})
    assert codec.with_revision(raw, 3) == (
        b'{"apiVersion":"v1","kind":"X","metadata":{"resourceVersion":"3"}}'
    )


@pytest.mark.parametrize("text", ['"metadata":{', '\\"metadata":{', '","metadata":{"a":"'])
def test_text_that_looks_like_metadata_is_not_taken_for_it(text: str) -> None:
    document = {"apiVersion": text, "kind": text, "metadata": {"name": "x"}, "a": {"metadata": {}}}
    spliced = msgspec.json.decode(codec.with_revision(codec.encode(document), 3))
    assert spliced == {**document, "metadata": {"name": "x", "resourceVersion": "3"}}


def test_a_document_is_a_fresh_value_each_time() -> None:
    raw = codec.encode(SERVICE)
    first = codec.document(raw, 1)
    first["metadata"]["name"] = "changed"
    assert codec.document(raw, 1)["metadata"]["name"] == "face"
    assert "resourceVersion" not in codec.document(raw, 0)["metadata"]


@pytest.mark.parametrize("value", ["\ud800", {"a": ["\udfff"]}, object(), {1: object()}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(BadRequest, match="cannot be written as JSON"):
        codec.encode({**SERVICE, "spec": value})
    with pytest.raises(BadRequest):
        codec.copy({**SERVICE, "spec": value})


def test_a_field_name_json_cannot_say_is_refused() -> None:
    with pytest.raises(BadRequest):
        codec.encode({**SERVICE, "\ud800": 1})


def test_a_document_too_deep_to_write_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRequest):
        codec.encode({**SERVICE, "spec": deep})


def test_wishes_are_all_but_type_metadata_and_status() -> None:
    renamed = {**SERVICE, "metadata": {"name": "other"}, "status": {"x": 1}, "apiVersion": "v2"}
    assert codec.wishes(renamed, status=True) == codec.wishes(SERVICE, status=True)
    assert codec.wishes(renamed, status=False) != codec.wishes(SERVICE, status=False)
    assert codec.wishes({"a": True}, status=True) != codec.wishes({"a": 1}, status=True)
