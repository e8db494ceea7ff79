from __future__ import annotations

from typing import Any

import msgspec

from isthmus.model.registry import Registry
from isthmus.serve.kube.blob import Blob
from isthmus.serve.kube.openapi import OpenApi
from tests.unit.serve.kube.kinds import REVIEW, THING, WIDGET

OPENAPI = OpenApi(Registry([THING, WIDGET, REVIEW]))


def read(blob: Blob | None) -> dict[str, Any]:
    assert blob is not None
    return dict(msgspec.json.decode(blob.body))


def test_the_index_names_each_document_with_its_hash() -> None:
    paths = read(OPENAPI.index)["paths"]
    assert list(paths) == ["api/v1", "apis/example.io/v1", "apis/example.io/v1alpha1"]
    document = OPENAPI.document("example.io", "v1")
    assert document is not None
    assert paths["apis/example.io/v1"] == {
        "serverRelativeURL": f"/openapi/v3/apis/example.io/v1?hash={document.digest}"
    }


def test_what_is_not_served_has_no_document() -> None:
    assert OPENAPI.document("example.io", "v0") is None
    assert OPENAPI.document("other.io", "v1") is None


def test_each_document_is_made_once() -> None:
    assert OPENAPI.document("", "v1") is OPENAPI.document("", "v1")
    assert OPENAPI.index is OPENAPI.index


def test_paths_and_operations_are_those_of_the_verbs() -> None:
    document = read(OPENAPI.document("example.io", "v1"))
    operations = {
        path: sorted(set(item) - {"parameters"}) for path, item in document["paths"].items()
    }
    assert operations == {
        "/apis/example.io/v1/namespaces/{namespace}/widgets": ["delete", "get", "post"],
        "/apis/example.io/v1/namespaces/{namespace}/widgets/{name}": [
            "delete", "get", "patch", "put",
        ],
        "/apis/example.io/v1/widgetreviews": ["post"],
    }  # fmt: skip
    core = read(OPENAPI.document("", "v1"))["paths"]
    assert list(core) == ["/api/v1/things", "/api/v1/things/{name}"]


def test_apply_finds_that_patch_knows_field_validation() -> None:
    item = "/apis/example.io/v1/namespaces/{namespace}/widgets/{name}"
    patch = read(OPENAPI.document("example.io", "v1"))["paths"][item]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "example.io", "version": "v1", "kind": "Widget",
    }  # fmt: skip
    assert [(p["name"], p["in"]) for p in patch["parameters"]] == [("fieldValidation", "query")]


def test_explain_finds_the_kind_among_the_components() -> None:
    schemas = read(OPENAPI.document("example.io", "v1"))["components"]["schemas"]
    assert schemas["io.example.v1.Widget"]["x-kubernetes-group-version-kind"] == [
        {"group": "example.io", "version": "v1", "kind": "Widget"}
    ]
