"""Any JSON at all, and any document that fits its schema: nothing but our own errors comes out."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.errors import BadRequest, Invalid
from isthmus.model.document import strict_json
from isthmus.model.intake import Unreadable, faults, prepare, view
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import KINDS
from isthmus.model.schema import Schema, Type
from isthmus.model.walk import type_faults, unknown_fields
from tests.support.examples import examples

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 70_000)
    | st.floats(allow_nan=False, allow_infinity=False)
) | st.text(max_size=4)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)

WORDS = st.sampled_from(
    ["", "a", "TCP", "http", "10.0.0.1", "fd00::1", "None", "Always", "a/b", "-", "x" * 300, "\x07",
     "ExternalName", "LoadBalancer", "ClientIP", "In", "Exists", "25%", "IPv4", "True", "Ready"]
)  # fmt: skip


LEAVES: dict[Type, st.SearchStrategy[Any]] = {
    Type.STRING: WORDS,
    Type.INTEGER: st.sampled_from([-1, 0, 1, 80, 443, 70_000]),
    Type.NUMBER: st.sampled_from([0, 1.5]),
    Type.BOOLEAN: st.booleans(),
    Type.INT_OR_STRING: st.sampled_from([0, 80, "http", "50%", ""]),
    Type.QUANTITY: st.sampled_from(["1", "100m", 2, "1Gi"]),
    Type.BYTES: st.sampled_from(["", "YQ=="]),
    Type.TIME: st.sampled_from(["2026-01-02T03:04:05Z", None]),
    Type.MICRO_TIME: st.sampled_from(["2026-01-02T03:04:05.000001Z", None]),
    Type.DURATION: st.sampled_from(["1s", "1m0s"]),
    Type.ANY: JSON,
}


def fitting(schema: Schema, depth: int = 5) -> st.SearchStrategy[Any]:
    """Values that fit a schema: sparse, odd, and sometimes null."""
    match schema.type:
        case Type.OBJECT:
            return objects(schema, depth)
        case Type.MAP:
            values = fitting(schema.values, depth - 1) if schema.values else JSON
            return st.dictionaries(WORDS, values, max_size=2) if depth > 0 else st.just({})
        case Type.ARRAY:
            items = fitting(schema.items, depth - 1) if schema.items else JSON
            return st.lists(items, max_size=2) if depth > 0 else st.just([])
        case _:
            return LEAVES[schema.type]


@st.composite
def objects(draw: st.DrawFn, schema: Schema, depth: int) -> dict[str, Any]:
    fields = schema.fields
    if depth <= 0 or not fields:
        return {}
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=5, unique=True))
    if depth == 5:  # a whole object: metadata and spec are what is worth asking about
        chosen = sorted({*chosen, *(fields.keys() & {"metadata", "spec", "status"})})
    found = {}
    for name in chosen:
        found[name] = draw(st.none() | fitting(fields[name], depth - 1))
    return found


def everything(kind: Kind, document: Document, old: Document | None) -> None:
    """Prepare, carry, check, show, view: what a write and a read do."""
    version = kind.versions[0]
    try:
        prepared = prepare(kind, version, document)
    except (BadRequest, Invalid) as fault:
        assert fault.causes
        return
    assert kind.keeps_unknown or not unknown_fields(version.schema, document)
    assert not type_faults(version.schema, document)
    for carry in kind.carry:
        carry(document, old)
    found = faults(kind, document, old)
    assert all(cause.message for cause in found)
    for column in version.columns:
        assert isinstance(column.cell(document, 1.8e9), str | int | None)
    seen = view(kind, msgspec.json.encode(document))
    assert found or not isinstance(seen, Unreadable), seen
    again = deepcopy(prepared.document)
    prepare(kind, version, again)
    assert again == prepared.document, "a second write of the same object changes nothing"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_documents_that_fit_their_schema(kind: Kind, data: st.DataObject) -> None:
    shapes = fitting(kind.versions[0].schema)
    document, other = data.draw(shapes), data.draw(shapes)
    everything(kind, deepcopy(document), None)
    try:
        prepare(kind, kind.versions[0], other)
    except (BadRequest, Invalid):
        return
    everything(kind, document, other)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
@settings(max_examples=examples(10))
@given(document=st.dictionaries(st.sampled_from(
    ["metadata", "spec", "status", "data", "rules", "ports", "subsets", "endpoints", "x"]
), JSON, max_size=4))  # fmt: skip
def test_documents_of_any_shape(kind: Kind, document: Document) -> None:
    everything(kind, document, None)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_json_is_read_as_python_reads_it(document: Document) -> None:
    read, duplicates = strict_json(json.dumps(document).encode())
    assert read == document
    assert duplicates == ()


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]",:0eE.-+tfn\\u', max_size=40).map(str.encode)
)
def test_bytes_of_any_kind_are_read_or_refused(body: bytes) -> None:
    try:
        strict_json(body)
    except BadRequest as fault:
        assert "body" in fault.message
