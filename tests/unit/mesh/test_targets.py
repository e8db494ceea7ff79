from __future__ import annotations

import pytest

from isthmus.ir.names import Dns, TargetId
from isthmus.ir.target import Balance, Target, Tls
from isthmus.mesh.targets import (
    Answerers,
    accrues_by_rate,
    answerers,
    load_bias,
    read_key,
    target,
    target_id,
    target_named,
    vips,
)
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, TRUST, World

CART = ObjectKey(LOCAL, "shop", "cart")
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]}
A: Compact = {"ip": "10.1.0.1", "pod": "a"}
B: Compact = {"ip": "10.1.0.2", "pod": "b"}


def identity(account: str, trust: str = TRUST) -> Dns:
    return Dns(f"{account}.shop.serviceaccount.identity.isthmus.{trust}")


def part(*eps: Compact, **said: object) -> Compact:
    return {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": eps, **said}


def pod(name: str, at: int, **said: object) -> Compact:
    return {"pod": f"shop/{name}", "ip": f"10.1.0.{at}", "sa": name, **said}


def ours(name: str, at: int, **said: object) -> Compact:
    return pod(name, at, meshed=True, proxy="envoy", **said)


def who(world: World) -> Answerers:
    return world.db.read(answerers, CART, 80)


def found(world: World) -> Target:
    return world.db.read(target, target_id(CART, 80))


def test_peers_are_all_whom_slices_name_ready_or_not() -> None:
    eps = [{**A, "ready": False}, {**B, "ready": False, "serving": True, "terminating": True}]
    world = World(SERVICE, ours("a", 1), ours("b", 2), part(*eps))
    assert who(world).peers == {identity("a"), identity("b")}


def test_nobody_is_expected_where_nobody_is() -> None:
    assert who(World(SERVICE)) == Answerers(homes=frozenset({LOCAL}))
    assert found(World(SERVICE)).tls is Tls.NONE


@pytest.mark.parametrize(
    ("others", "native", "linkerd"),
    [
        ([ours("b", 2)], True, False),
        ([pod("b", 2, meshed=True)], False, True),
        ([pod("b", 2)], False, False),
        ([ours("b", 2, skip="80")], False, False),
    ],
)
def test_one_that_is_not_ours_is_enough_to_be_not_all_ours(
    others: list[Compact], native: bool, linkerd: bool
) -> None:
    world = World(SERVICE, ours("a", 1), *others, part(A, B))
    assert who(world).native is native
    assert who(world).linkerd is linkerd
    assert found(world).http2 is native


def test_http2_is_for_our_own_only_and_where_it_is_wanted() -> None:
    objects = (SERVICE, ours("a", 1), part(A))
    assert found(World(*objects)).http2
    assert not found(World(*objects, h2_upgrade=False)).http2
    assert not found(World(SERVICE)).http2


def test_opaque_ports_behind_linkerd_are_told_apart() -> None:
    plain = World(SERVICE, pod("a", 1, meshed=True), part(A), transport_header=True)
    opaque = World(SERVICE, pod("a", 1, meshed=True, opaque="80"), part(A))
    assert not who(plain).opaque_linkerd
    assert who(opaque).opaque_linkerd


def test_members_of_linked_clusters_bring_their_own_trust_domain() -> None:
    notes = {"multicluster.linkerd.io/remote-discovery": "cart@east"}
    world = World(
        {**SERVICE, "annotations": notes},
        {"link": "east", "trust": "east.test", "domain": "cluster.local"},
        {"svc": "shop/cart", "in": "east", "ports": [80]},
        {**ours("e", 7), "in": "east"},
        {**part({"ip": "10.1.0.7", "pod": "e"}), "in": "east"},
    )
    assert who(world).peers == {identity("e", "east.test")}


def test_gateways_are_told() -> None:
    notes = {
        "mirror.linkerd.io/remote-gateway-identity": "gw.west",
        "mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.west",
    }
    world = World(SERVICE, part({"ip": "192.0.2.1"}, annotations=notes))
    assert who(world).gateways


def test_a_target_is_balanced_and_known_to_linkerd_by_its_authority() -> None:
    one = found(World(SERVICE))
    assert one.balance is Balance.EWMA
    assert one.authority == "cart.shop.svc.mesh.test:80"
    assert one.trust_domain == TRUST


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (f"p80.cart.shop.here.internal.{TRUST}", TargetId("here", "shop", "cart", 80)),
        (f"v2.p80.cart.shop.here.internal.{TRUST}", None),
        (f"tcp~p80.cart.shop.here.internal.{TRUST}", target_id(CART, 80, "tcp")),
        (f"p81.cart.shop.here.internal.{TRUST}", None),
        (f"p080.cart.shop.here.internal.{TRUST}", None),
        ("p80.cart.shop.here.internal.elsewhere", None),
        (f"cart.shop.here.internal.{TRUST}", None),
        (f"p80.till.shop.here.internal.{TRUST}", None),
        ("p80.cart.shop.here", None),
        ("", None),
    ],
)
def test_a_key_leads_back_to_its_target(key: str, name: TargetId | None) -> None:
    assert World(SERVICE).db.read(target_named, key) == name


@pytest.mark.parametrize("port", ["", "p", "p-1", "p1e3", "p123456", "q80", "p\u0668\u0668"])
def test_a_port_is_written_in_one_way(port: str) -> None:
    read = read_key(f"{port}.cart.shop.here.internal.td")
    assert read is None or read.port is None


def test_what_annotations_ask_for_beyond_failures_in_a_row() -> None:
    notes = {
        "balancer.linkerd.io/failure-accrual": "unified",
        "balancer.alpha.linkerd.io/penalize-failures": "true",
    }
    world = World({**SERVICE, "annotations": notes})
    assert world.db.read(accrues_by_rate, CART)
    assert world.db.read(load_bias, CART) is not None
    assert not World(SERVICE).db.read(accrues_by_rate, CART)
    assert World(SERVICE).db.read(load_bias, CART) is None


def test_a_name_for_something_outside_has_no_address() -> None:
    world = World({"svc": "shop/cart", "type": "ExternalName", "ports": [80]})
    assert world.db.read(vips, CART) == ()
