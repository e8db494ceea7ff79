"""What is said of the mesh's kinds stands any document that fits a schema."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.model.intake import Unreadable, faults, prepare, view, warnings
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.model.schema import Schema, Type
from isthmus.model.walk import type_faults

KINDS = tuple(kind for kind in BUILT_IN if kind.custom)

TEXTS = st.sampled_from(
    ["", "a", "A b", "/", "/a", "/a/../b", "*", "*.a.b", "(", "10.0.0.0/8", "::1", "1.5s", "-1s",
     "5xx", "spiffe://a/b", "Service", "policy.linkerd.io", "EgressNetwork", "Exact", "PathPrefix",
     "RegularExpression", "RequestRedirect", "URLRewrite", "ReplacePrefixMatch", "500m", "a\n"]
)  # fmt: skip
NUMBERS = st.sampled_from([-1, 0, 1, 80, 302, 65536, 2**31 - 1])
METADATA = st.fixed_dictionaries(
    {"name": st.just("a"), "namespace": st.just("b")},
    optional={
        "annotations": st.dictionaries(
            st.sampled_from(["retry.linkerd.io/http", "timeout.linkerd.io/idle"]), TEXTS
        )
    },
)


def fitting(schema: Schema, depth: int = 7) -> st.SearchStrategy[Any]:
    """Values of the types that a schema names, whatever else it asks for."""
    match schema.type:
        case Type.OBJECT:
            fields = {
                name: fitting(inner, depth - 1) for name, inner in schema.fields.items() if depth
            }
            return st.fixed_dictionaries({}, optional=fields)
        case Type.MAP:
            return st.dictionaries(TEXTS, fitting(schema.values or schema, 0), max_size=2)
        case Type.ARRAY:
            if schema.items is None or depth == 0:
                return st.just([])
            return st.lists(fitting(schema.items, depth - 1), max_size=3)
        case Type.INTEGER:
            return NUMBERS
        case Type.NUMBER:
            return st.one_of(NUMBERS, st.sampled_from([0.5, -0.5]))
        case Type.BOOLEAN:
            return st.booleans()
        case Type.INT_OR_STRING | Type.QUANTITY:
            return st.one_of(NUMBERS, st.sampled_from(["1", "500m"]))
        case Type.TIME | Type.MICRO_TIME:
            return st.just("2026-01-02T03:04:05Z")
        case _:
            return st.one_of(TEXTS, st.sampled_from(schema.enum)) if schema.enum else TEXTS


@cache
def bodies(resource: str, version: str) -> st.SearchStrategy[Any]:
    """Documents of one version of a kind."""
    kind = BUILT_IN.by_key_resource(resource)
    assert kind is not None
    found = kind.version(version)
    assert found is not None
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(kind.api_version(version)),
            "kind": st.just(kind.name),
            "metadata": METADATA,
            "spec": fitting(found.schema.fields["spec"]),
        }
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
@given(data=st.data())
def test_what_fits_a_schema_is_judged_and_never_raises(kind: Kind, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(kind.versions))
    document = data.draw(bodies(kind.resource, version.name))
    if type_faults(version.schema, document):
        return
    made = prepare(kind, version, deepcopy(document)).document
    again = prepare(kind, version, deepcopy(made)).document
    assert again == made, "defaults are idempotent"
    stored = made
    if kind.convert is not None:
        stored = kind.convert(made, version.name, kind.stored)
    told = faults(kind, stored, None)
    assert all(each.path for each in told)
    assert all(isinstance(each, str) for each in warnings(kind, stored, None))
    seen = view(kind, msgspec.json.encode(stored))
    assert not isinstance(seen, Unreadable), seen
    for other in kind.versions:
        if kind.convert is not None:
            kind.convert(stored, kind.stored, other.name)
        for column in other.columns:
            column.cell(stored, 0.0)
