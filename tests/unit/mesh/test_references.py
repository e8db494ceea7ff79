from __future__ import annotations

import pytest

from isthmus.ir.names import Ref
from isthmus.mesh.references import Resolution, resolution, route_faults
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

ROUTE = Ref(LOCAL, "gateway.networking.k8s.io", "HTTPRoute", "shop", "r")
GONE = "shop/gone was not found"
NET = {"group": "policy.linkerd.io", "kind": "EgressNetwork", "name": "net"}
TO_NOBODY = {"backendRef": {"name": "gone"}}
MISPLACED = "EgressNetwork backend needs to be on a route that has an EgressNetwork parent"


def world(rule: Compact, **said: object) -> World:
    parent = {"egress": "net", "port": 80} if said.pop("out", False) else {"service": "cart"}
    return World(
        {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]},
        {"egress": "shop/net"},
        {"route": "shop/r", **parent, "rules": [rule], **said},
    )


def backends(*refs: Compact) -> Compact:
    return {"backendRefs": list(refs)}


@pytest.mark.parametrize(
    ("rule", "reason", "message"),
    [
        ({}, "ResolvedRefs", ""),
        (backends({"name": "cart", "port": 9}), "ResolvedRefs", ""),
        (backends({"name": "cart"}, {"name": "gone"}), "BackendNotFound", f"Service {GONE}"),
        (backends({"name": "x", "kind": "Bucket"}, {"name": "gone"}), "InvalidKind", ""),
        (backends(NET), "InvalidKind", MISPLACED),
        (backends({**NET, "name": "gone"}), "BackendNotFound", f"EgressNetwork {GONE}"),
        (
            {
                "filters": [
                    {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "gone"}}}
                ]
            },
            "BackendNotFound",
            f"Service {GONE}",
        ),
    ],
)
def test_the_first_reference_that_leads_nowhere_decides(
    rule: Compact, reason: str, message: str
) -> None:
    found = world(rule).db.read(resolution, ROUTE)
    assert found == Resolution(reason == "ResolvedRefs", reason, message)


def test_a_network_is_a_backend_of_its_own_routes() -> None:
    assert world(backends(NET), out=True).db.read(resolution, ROUTE).resolved


def test_references_are_in_the_routes_own_namespace() -> None:
    mesh = world(backends({"name": "cart"}))
    mesh.apply({"route": "pay/r", "service": "cart", "of": "shop", "backends": [["cart", 80]]})
    theirs = Ref(LOCAL, "gateway.networking.k8s.io", "HTTPRoute", "pay", "r")
    assert mesh.db.read(resolution, theirs).message == "Service pay/cart was not found"


def test_parts_that_are_not_understood_are_told_by_their_place() -> None:
    rule = {
        "matches": [{}, {"path": {"type": "RegularExpression", "value": "("}}],
        "filters": [{"type": "CORS"}],
        "backendRefs": [{"name": "cart", "filters": [{"type": "ExtensionRef"}]}],
    }
    notes = {"timeout.linkerd.io/request": "soon", "retry.linkerd.io/http": "never"}
    found = world(rule, annotations=notes).db.read(route_faults, ROUTE)
    assert [each.path for each in found] == [
        "metadata.annotations[timeout.linkerd.io/request]",
        "metadata.annotations[retry.linkerd.io/http]",
        "spec.rules[0].matches[1]",
        "spec.rules[0].filters[0]",
        "spec.rules[0].backendRefs[0].filters[0]",
    ]


def test_of_several_rules_for_connections_the_first_counts() -> None:
    rules = [{"backendRefs": [{"name": "cart", "port": 80}]}] * 2
    mesh = World({"tcproute": "shop/r", "service": "cart", "rules": rules})
    route = Ref(LOCAL, "gateway.networking.k8s.io", "TCPRoute", "shop", "r")
    assert [each.path for each in mesh.db.read(route_faults, route)] == ["spec.rules[1]"]


def test_a_route_that_is_gone_has_no_faults() -> None:
    mesh = World()
    assert mesh.db.read(resolution, ROUTE).resolved
    assert mesh.db.read(route_faults, ROUTE) == ()
