"""What must hold of every kind of the mesh's own, whatever it is for."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import re2

from isthmus.model import gateway, multicluster, policy, serviceprofile, trafficsplit, workload
from isthmus.model.intake import Unreadable, faults, view, warnings
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.walk import defaults, rule_faults, type_faults

KINDS: tuple[Kind, ...] = (
    *policy.KINDS,
    *gateway.KINDS,
    *workload.KINDS,
    *multicluster.KINDS,
    *serviceprofile.KINDS,
    *trafficsplit.KINDS,
)
IDS = [kind.resource for kind in KINDS]
SPECS = ("spec", "status")


def nodes(schema: Schema, path: str, depth: int = 12) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    if depth == 0 or schema.ref.startswith("io.k8s.apimachinery"):
        return
    for name, inner in schema.fields.items():
        yield from nodes(inner, f"{path}.{name}", depth - 1)
    for inner in filter(None, (schema.items, schema.values)):
        yield from nodes(inner, f"{path}[]", depth - 1)


def own(kind: Kind) -> Iterator[tuple[str, Schema]]:
    for version in kind.versions:
        for name in SPECS:
            if name in version.schema.fields:
                yield from nodes(version.schema.fields[name], f"{version.name}.{name}", 8)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_a_kind_is_a_custom_resource_that_is_served_as_it_is_stored(kind: Kind) -> None:
    assert kind in BUILT_IN.kinds
    assert kind.custom
    assert kind.generation
    assert kind.version(kind.stored) is not None
    assert kind.singular == kind.name.lower()
    assert kind.status == ("status" in kind.versions[0].schema.fields)
    assert (kind.convert is not None) == (len(kind.versions) > 1)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_every_field_is_explained(kind: Kind) -> None:
    for version in kind.versions:
        assert version.schema.description
        assert version.schema.ref.endswith(f".{version.name}.{kind.name}")
        for path, node in nodes(version.schema.fields["spec"], "spec", 8):
            silent = [name for name, each in node.fields.items() if not each.description]
            if not node.ref and "ondition" not in path:
                assert not silent, (version.name, path, silent)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_schemas_are_coherent(kind: Kind) -> None:
    for path, node in own(kind):
        assert set(node.required) <= set(node.fields), path
        if node.list_type is ListType.MAP:
            assert node.items is not None
            assert set(node.list_keys) <= set(node.items.fields), path
        assert (node.items is not None) == (node.type is Type.ARRAY), path
        if node.pattern:
            assert re2.compile(node.pattern), path
        if node.default is not None:
            filled: dict[str, Any] = {"it": deepcopy(node.default)}
            whole = Schema(type=Type.OBJECT, properties={"it": node})
            defaults(whole, filled)
            assert type_faults(whole, filled) == []
            assert rule_faults(whole, filled) == [], path


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_columns_rules_and_views_stand_an_object_of_nothing(kind: Kind) -> None:
    some: list[dict[str, Any]] = [{}, {"spec": None}, {"spec": {}, "status": {}, "metadata": {}}]
    for written in some:
        for version in kind.versions:
            for column in version.columns:
                column.cell(dict(written), 0.0)
        assert faults(kind, dict(written), None)
        warnings(kind, dict(written), None)
        for check in kind.check:
            list(check(dict(written), {"spec": {}}))
    assert not isinstance(view(kind, b"{}"), Unreadable)
    assert isinstance(view(kind, b'{"spec": 3}'), Unreadable)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.convert], ids=lambda k: k.resource)
def test_conversion_leaves_what_it_is_given_alone(kind: Kind) -> None:
    document = {"apiVersion": kind.api_version(), "kind": kind.name, "spec": {}, "x": [1]}
    for version in kind.versions:
        before = deepcopy(document)
        assert kind.convert is not None
        made = kind.convert(document, kind.stored, version.name)
        assert document == before
        assert made["kind"] == kind.name


def test_groups_are_discovered_with_their_best_version() -> None:
    assert BUILT_IN.versions("policy.linkerd.io")[0] == "v1beta3"
    assert BUILT_IN.versions("gateway.networking.k8s.io")[0] == "v1"
    assert BUILT_IN.versions("multicluster.linkerd.io")[0] == "v1alpha3"
    assert BUILT_IN.by_key_resource("servers.policy.linkerd.io") is policy.SERVER
    short = {name for kind in KINDS for name in kind.short_names}
    assert {
        "srv",
        "saz",
        "authzpolicy",
        "meshtlsauthn",
        "netauthn",
        "gtw",
        "gc",
        "sp",
        "ts",
    } <= short
