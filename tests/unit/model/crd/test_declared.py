from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.model import intake
from isthmus.model.crd.declared import compiled
from isthmus.model.crd.rules import Ruled
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.components import Components
from tests.unit.model.mesh import of, paths, told

GATEWAY = "gateway.networking.k8s.io/v1"
RULED = [kind for kind in BUILT_IN if kind.ruled]


def rules(ruled: Ruled | None) -> list[str]:
    """The text of every rule."""
    if ruled is None:
        return []
    below = [*ruled.fields.values(), ruled.values, ruled.items]
    own = [each.rule.rule for each in ruled.rules]
    return own + [text for each in below for text in rules(each)]


@pytest.mark.parametrize("kind", RULED, ids=lambda kind: kind.resource)
def test_every_rule_compiles_within_the_limits_of_definitions(kind: Kind) -> None:
    for version in kind.versions:
        made = compiled(version.schema)
        assert made.faults == ()
        assert made.root is not None


def test_gateway_kinds_have_rules_and_nobody_has_them_in_vain() -> None:
    assert {"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "Gateway"} == {k.name for k in RULED}
    for kind in BUILT_IN:
        whole = Components()
        for version in kind.versions:
            whole.kind(kind, version)
        told = b"x-kubernetes-validations" in msgspec.json.encode(whole.schemas)
        assert told is (kind.ruled or kind.name == "CustomResourceDefinition"), kind.name


@pytest.mark.parametrize("kind", RULED, ids=lambda kind: kind.resource)
def test_openapi_tells_every_rule(kind: Kind) -> None:
    for version in kind.versions:
        whole = Components()
        whole.kind(kind, version)
        encoded = msgspec.json.encode(whole.schemas).decode()
        for text in rules(compiled(version.schema).root):
            assert msgspec.json.encode(text).decode() in encoded


def test_rules_are_not_asked_where_they_rely_on_what_is_missing() -> None:
    backend = {"port": 80, "filters": [{"type": "URLRewrite"}]}
    found = told(of(GATEWAY, "HTTPRoute", {"rules": [{"backendRefs": [backend]}]}))
    assert [each.partition(":")[0] for each in found] == [
        "spec.rules[0].backendRefs[0].name", "<nil>",
    ]  # fmt: skip


def test_an_update_is_not_refused_for_what_it_leaves_alone() -> None:
    """As in Kubernetes: rules came later than objects (ratcheting)."""
    kind = BUILT_IN.by_kind("gateway.networking.k8s.io", "HTTPRoute")
    assert kind is not None
    old = of(GATEWAY, "HTTPRoute", {"rules": [{"matches": [{"path": {"value": "a"}}]}]})
    new: dict[str, Any] = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert [each.path for each in intake.faults(kind, old)] == [
        "spec.rules[0].matches[0].path.value"
    ]
    assert intake.faults(kind, new, old) == []
    other = of(GATEWAY, "HTTPRoute", {"rules": [{"matches": [{"path": {"value": "b"}}]}]})
    assert intake.faults(kind, other, old) != []


def test_the_largest_route_is_within_the_budget() -> None:
    modifier = {
        "type": "RequestHeaderModifier",
        "requestHeaderModifier": {"add": [{"name": f"h{n}", "value": "v"} for n in range(16)]},
    }
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "m", "port": 1}}}
    filters = [modifier, *[mirror] * 15]
    backends = [{"name": "b", "port": 80, "filters": filters}] * 16
    matches = [{"path": {"type": "Exact", "value": "/" + "a" * 1000}}] * 8
    rule = {"matches": matches, "filters": filters, "backendRefs": backends}
    parents = [{"name": f"p{n}", "kind": "Service", "group": ""} for n in range(32)]
    route = of(GATEWAY, "HTTPRoute", {"parentRefs": parents, "rules": [rule] * 16})
    assert paths(route) == []
