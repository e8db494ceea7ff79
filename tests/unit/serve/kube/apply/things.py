"""A kind with every sort of field that server-side apply treats in its own way."""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.model.conversion import by_schema
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.schema import Schema, Type
from isthmus.model.shapes import ANY, INTEGER, METADATA, STRING, listed, mapped, structure
from isthmus.serve.kube.apply import Writing

ITEM = structure(
    {
        "port": INTEGER,
        "protocol": Schema(type=Type.STRING, default="TCP"),
        "value": STRING,
        "tags": listed(STRING, unique=True),
    }
)
SPEC = {
    "text": STRING,
    "number": INTEGER,
    "labels": mapped(STRING),
    "whole": Schema(type=Type.MAP, values=STRING, atomic=True),
    "inner": structure({"a": STRING, "b": STRING}),
    "items": listed(ITEM, keys=("port", "protocol")),
    "tags": listed(STRING, unique=True),
    "list": listed(STRING),
    "any": ANY,
}


def _root(text: str) -> Schema:
    """The schema of a version that has `text` under this name."""
    spec = {text if name == "text" else name: field for name, field in SPEC.items()}
    return structure(
        {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": METADATA,
            "spec": structure(spec),
            "status": structure({"phase": STRING, "count": INTEGER}),
        }
    )


SCHEMAS = {"v1": _root("text"), "v2": _root("words")}
ROOT = SCHEMAS["v1"]


def _reshape(document: Document, present: str, wanted: str) -> None:
    names = {"v1": "text", "v2": "words"}
    spec = document.get("spec")
    if isinstance(spec, dict) and names[present] in spec:
        spec[names[wanted]] = spec.pop(names[present])


class NoView(msgspec.Struct, frozen=True):
    """The mesh reads nothing of it."""


THING = Kind(
    group="example.io",
    name="Thing",
    plural="things",
    singular="thing",
    stored="v1",
    versions=tuple(Version(name=name, schema=schema) for name, schema in SCHEMAS.items()),
    view=NoView,
    convert=by_schema(SCHEMAS, _reshape),
)

LATER = "2026-01-02T03:05:05Z"


def writes(
    manager: str, version: str = "v1", *, now: str = "2026-01-02T03:04:05Z", subresource: str = ""
) -> Writing:
    """A write of a thing."""
    found = THING.version(version)
    assert found is not None
    return Writing(THING, found, manager, now, subresource)


def thing(version: str = "v1", /, **spec: Any) -> Document:  # noqa: ANN401 - JSON values
    """A thing with this spec."""
    return {
        "apiVersion": f"example.io/{version}",
        "kind": "Thing",
        "metadata": {"name": "x"},
        "spec": spec,
    }


def owners(document: Document) -> dict[str, Any]:
    """`manager operation` -> fieldsV1."""
    listed_ = document["metadata"].get("managedFields", [])
    return {f"{each['manager']} {each['operation']}": each["fieldsV1"] for each in listed_}
