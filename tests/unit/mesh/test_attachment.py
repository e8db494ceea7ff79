from __future__ import annotations

import pytest

from isthmus.dialects.envoy.outbound import service_routes
from isthmus.ir.names import Ref
from isthmus.ir.outbound import OneNamespace
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.attachment import (
    Acceptance,
    acceptance,
    consumed,
    consumers,
    egress_class,
    egress_ports,
    served,
)
from isthmus.mesh.census import Place
from isthmus.mesh.outbound import outbound, parent_ref
from isthmus.mesh.routes import ALL, LISTED, parents
from isthmus.mesh.scope import EVERYTHING, in_scope, upstreams_of
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

CART = parent_ref(ObjectKey(LOCAL, "shop", "cart"))
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [{"port": 80, "name": "web"}]}
KINDS = {
    "groute": ("gateway.networking.k8s.io", "GRPCRoute"),
    "route": ("gateway.networking.k8s.io", "HTTPRoute"),
    "proute": ("policy.linkerd.io", "HTTPRoute"),
    "tlsroute": ("gateway.networking.k8s.io", "TLSRoute"),
    "tcproute": ("gateway.networking.k8s.io", "TCPRoute"),
}


def ref(kind: str, path: str) -> Ref:
    namespace, _, name = path.partition("/")
    return Ref(LOCAL, *KINDS[kind], namespace, name)


def said(world: World, kind: str = "route", path: str = "shop/r") -> Acceptance:
    """Whether the first parent of a route takes it."""
    route = ref(kind, path)
    first = world.db.read(parents, route)[0]
    return world.db.read(acceptance, route, first)


def words(found: Acceptance) -> tuple[bool, str, str]:
    return (found.accepted, found.reason, found.message)


NO = "NoMatchingParent"
HOLED = {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}


@pytest.mark.parametrize(
    ("service", "change", "expected"),
    [
        (SERVICE, {}, (True, "Accepted", "")),
        (SERVICE, {"port": 80}, (True, "Accepted", "")),
        (SERVICE, {"port": 81}, (False, NO, "the Service has no port 81")),
        (SERVICE, {"section": "web"}, (True, "Accepted", "")),
        (SERVICE, {"section": "web", "port": 80}, (True, "Accepted", "")),
        (SERVICE, {"section": "rest"}, (False, NO, "the Service has no port named rest")),
        (SERVICE, {"service": "till"}, (False, NO, "")),
        ({**SERVICE, "ip": "None"}, {}, (False, NO, "parent service must have a ClusterIP")),
        (
            {"svc": "shop/cart", "type": "ExternalName", "ports": [80]},
            {},
            (False, NO, "parent service must have a ClusterIP"),
        ),
    ],
)
def test_services_take_routes_to_ports_that_they_have(
    service: Compact, change: Compact, expected: tuple[bool, str, str]
) -> None:
    world = World(service, {"route": "shop/r", "service": "cart", **change})
    assert words(said(world)) == expected


@pytest.mark.parametrize(
    ("network", "change", "expected"),
    [
        ({}, {}, (True, "Accepted", "")),
        ({}, {"port": 0}, (False, NO, "an EgressNetwork parent needs a port")),
        ({}, {"section": "x"}, (False, NO, "an EgressNetwork has no sections")),
        ({}, {"egress": "other"}, (False, NO, "")),
        (
            {"networks": ["10.0.0.0/8"]},
            {},
            (False, NO, "EgressNetwork parent has not been accepted"),
        ),
        (
            {"networks": [{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}]},
            {},
            (True, "Accepted", ""),
        ),
        ({"networks": ["fd00::/16"]}, {}, (True, "Accepted", "")),
    ],
)
def test_egress_networks_take_routes_if_they_are_outside(
    network: Compact, change: Compact, expected: tuple[bool, str, str]
) -> None:
    route = {"route": "shop/r", "egress": "net", "port": 80, **change}
    world = World({"egress": "shop/net", **network}, route, cluster_networks=("10.0.0.0/8",))
    assert words(said(world)) == expected


def test_kinds_and_groups_are_read_in_any_case_and_others_are_nobodys() -> None:
    world = World(SERVICE)
    for group, kind, accepted in (
        ("", "Service", True),
        ("core", "service", True),
        ("CORE", "SERVICE", True),
        ("apps", "Service", False),
        ("", "Gateway", False),
    ):
        parent = {"group": group, "kind": kind, "name": "cart"}
        world.write("route shop/r", {"metadata": {}, "spec": {"parentRefs": [parent]}})
        assert said(world).accepted is accepted, (group, kind)


def test_the_most_specific_kind_is_taken_whatever_its_age() -> None:
    everything = [
        {
            kind: f"shop/{kind}",
            "service": "cart",
            "port": 80,
            "created": f"2024-01-0{9 - at}T00:00:00Z",
        }
        for at, kind in enumerate(KINDS)
    ]
    world = World(SERVICE, *everything)
    found = {kind: said(world, kind, f"shop/{kind}") for kind in KINDS}
    assert [kind for kind, one in found.items() if one.accepted] == ["groute"]
    assert {one.reason for kind, one in found.items() if kind != "groute"} == {
        "RouteReasonConflicted"
    }
    world.delete("groute shop/groute")
    taken = [
        kind for kind in KINDS if kind != "groute" and said(world, kind, f"shop/{kind}").accepted
    ]
    assert taken == ["route", "proute"]


def test_routes_conflict_only_where_they_name_the_same() -> None:
    world = World(
        SERVICE,
        {"route": "shop/r", "service": "cart"},
        {"groute": "shop/g", "service": "cart", "port": 80},
    )
    assert said(world).accepted


def test_routes_of_other_namespaces_conflict_with_nobodys() -> None:
    world = World(
        SERVICE,
        {"route": "shop/r", "service": "cart", "port": 80},
        {"groute": "pay/g", "service": "cart", "of": "shop", "port": 80},
        {"route": "pay/r", "service": "cart", "of": "shop", "port": 80},
    )
    assert said(world).accepted
    assert not said(world, "route", "pay/r").accepted


def test_at_egress_networks_they_conflict_with_the_networks_own() -> None:
    world = World(
        {"egress": "shop/net"},
        {"groute": "shop/g", "egress": "net", "port": 80},
        {"route": "pay/r", "egress": "net", "of": "shop", "port": 80},
        {"groute": "pay/g", "egress": "net", "of": "shop", "port": 81},
        {"route": "shop/r", "egress": "net", "port": 81},
    )
    assert not said(world, "route", "pay/r").accepted
    assert said(world, "route", "shop/r").accepted


# ------------------------------------------------------------------------------- classes


def mesh() -> World:
    return World(
        {"ns": "shop"},
        {"ns": "pay"},
        SERVICE,
        {"svc": "shop/till", "ip": "10.96.0.11", "ports": [80]},
        {"route": "shop/own", "service": "cart"},
        {"route": "pay/theirs", "service": "cart", "of": "shop", "port": 80},
        {"route": "ops/broken", "service": "cart", "of": "shop", "port": 99},
    )


def test_only_namespaces_with_routes_that_are_taken_are_classes_of_their_own() -> None:
    world = mesh()
    assert world.db.read(consumers, CART, 80) == ("pay",)
    told = {one: world.db.read(outbound, OutboundName(CART, 80, one)) for one in ("", "pay", "ops")}
    assert told["pay"].audience == OneNamespace("pay")
    assert told["ops"] is told[""]
    mine = world.db.read(served, OutboundName(CART, 80, "pay"))
    assert [route.name for route in mine.http] == ["theirs"]
    others = world.db.read(served, OutboundName(CART, 80, ""))
    assert [route.name for route in others.http] == ["own"]


def test_namespaces_without_routes_share_the_names_of_their_scope() -> None:
    world = mesh()
    everybody = world.db.read(in_scope, LOCAL, EVERYTHING)
    assert world.db.read(upstreams_of, Place(LOCAL, "shop"), EVERYTHING) is everybody
    theirs = world.db.read(upstreams_of, Place(LOCAL, "pay"), EVERYTHING)
    assert [(one.parent.name, one.namespace) for one in theirs] == [("cart", "pay"), ("till", "")]
    assert world.db.read(consumed, Place(LOCAL, "pay")) == (CART,)


def test_classes_of_what_leaves_the_cluster() -> None:
    world = World(
        {"egress": "linkerd-egress/all"},
        {"egress": "shop/own"},
        {"route": "pay/r", "egress": "all", "of": "linkerd-egress", "port": 80},
        {"route": "ops/r", "egress": "own", "of": "shop", "port": 81},
    )
    classes = {
        one: world.db.read(egress_class, Place(LOCAL, one)) for one in ("shop", "pay", "ops")
    }
    assert classes == {"shop": "shop", "pay": "pay", "ops": ""}
    assert world.db.read(egress_ports, ObjectKey(LOCAL, "linkerd-egress", "all")) == (80,)


def test_only_tables_that_a_controller_attends_can_be_listed() -> None:
    assert {each.table.name for each in ALL if each.table.listed is not None} == LISTED


# --------------------------------------------------------------------------------- costs


def test_an_edit_of_one_route_costs_one_route() -> None:
    def route(number: int, weight: int) -> Compact:
        path = {"matches": [{"path": {"type": "PathPrefix", "value": f"/p{number}"}}]}
        backends = [{"name": "cart", "port": 80, "weight": weight}, {"name": "gone", "port": 80}]
        return {
            "route": f"shop/r{number}",
            "service": "cart",
            "rules": [{**path, "backendRefs": backends}],
        }

    world = World({"ns": "shop"}, SERVICE, *(route(number, 1) for number in range(200)))
    with world.db.watch(lambda: None) as watch:
        watch.add(service_routes, OutboundName(CART, 80, ""))
        watch.take()
        costs = []
        for weight in (2, 3):
            before = world.db.stats.evaluations
            world.apply(route(7, weight))
            assert watch.take()
            costs.append(world.db.stats.evaluations - before)
        world.apply({**route(7, 3), "labels": {"of": "nobody's concern"}})
        assert not watch.take()
    assert max(costs) < 12, costs
