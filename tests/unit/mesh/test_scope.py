from __future__ import annotations

import pytest

from isthmus.ir.proxy import OutboundName
from isthmus.mesh.outbound import parent_ref
from isthmus.mesh.scope import (
    EVERYTHING,
    in_scope,
    instances,
    out_of_scope,
    refused_networks,
    scope,
)
from isthmus.mesh.workloads import pod_ref
from isthmus.model.annotations import Upstream
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, World

ME = pod_ref(ObjectKey(LOCAL, "shop", "me"))
KEY = "config.isthmus.dev/upstreams"

SHOPS = (
    {"ns": "shop"},
    {"ns": "pay"},
    {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80, 8080]},
    {"svc": "pay/till", "ip": "10.96.0.20", "ports": [80]},
    {"svc": "pay/far", "type": "ExternalName", "ports": [80]},
    {"pod": "shop/me", "ip": "10.1.0.9"},
)


def name(path: str, port: int) -> OutboundName:
    namespace, _, service = path.partition("/")
    return OutboundName(parent_ref(ObjectKey(LOCAL, namespace, service)), port, "")


CART80, CART8080, TILL = name("shop/cart", 80), name("shop/cart", 8080), name("pay/till", 80)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shop/*, pay/till,shop/*", (Upstream("pay", "till"), Upstream("shop", "*"))),
        ("*/*", EVERYTHING),
        ("", ()),
        ("cart", EVERYTHING),
    ],
)
def test_a_scope_is_what_is_written_and_everything_if_it_cannot_be_read(
    text: str, found: tuple[Upstream, ...]
) -> None:
    world = World({"pod": "shop/me", "ip": "10.1.0.9", "annotations": {KEY: text}})
    assert world.db.read(scope, ME) == found


def test_a_workload_beats_its_namespace() -> None:
    world = World(*SHOPS)
    assert world.db.read(scope, ME) == EVERYTHING
    world.apply({"ns": "shop", "annotations": {KEY: "shop/*"}})
    assert world.db.read(scope, ME) == (Upstream("shop", "*"),)
    world.apply({"pod": "shop/me", "ip": "10.1.0.9", "annotations": {KEY: "pay/*"}})
    assert world.db.read(scope, ME) == (Upstream("pay", "*"),)


@pytest.mark.parametrize(
    ("wanted", "within", "without"),
    [
        (EVERYTHING, (TILL, CART80, CART8080), ()),
        ((), (), (TILL, CART80, CART8080)),
        ((Upstream("shop", "*"),), (CART80, CART8080), (TILL,)),
        ((Upstream("*", "till"),), (TILL,), (CART80, CART8080)),
        ((Upstream("pay", "cart"),), (), (TILL, CART80, CART8080)),
    ],
)
def test_every_port_of_every_service_is_in_scope_or_out_of_it(
    wanted: tuple[Upstream, ...],
    within: tuple[OutboundName, ...],
    without: tuple[OutboundName, ...],
) -> None:
    world = World(*SHOPS)
    assert world.db.read(in_scope, LOCAL, wanted) == within
    assert world.db.read(out_of_scope, LOCAL, wanted) == without


def test_the_names_in_a_scope_are_one_value_that_endpoints_do_not_touch() -> None:
    world = World(*SHOPS)
    with world.db.watch(lambda: None) as watch:
        watch.add(in_scope, LOCAL, EVERYTHING)
        watch.take()
        world.apply({"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": []})
        world.apply({"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80, 8080], "opaque": "80"})
        assert watch.take() == {}
        world.apply({"svc": "shop/new", "ip": "10.96.0.11", "ports": [1]})
        assert len(watch.take()) == 1


def test_addresses_of_services_are_refused_by_network_and_strays_one_by_one() -> None:
    world = World(*SHOPS, service_networks=("10.96.0.0/16",))
    assert world.db.read(refused_networks, LOCAL) == ("10.96.0.0/16",)
    world.apply({"svc": "pay/stray", "ips": ["172.20.0.1", "fd00::1"], "ports": [80]})
    assert world.db.read(refused_networks, LOCAL) == (
        "10.96.0.0/16",
        "172.20.0.1/32",
        "fd00::1/128",
    )


def test_who_is_dialled_by_an_own_address() -> None:
    part = {"ports": [80], "eps": [{"ip": "10.1.0.1", "pod": "a"}]}
    world = World(
        *SHOPS,
        {"svc": "shop/db", "ip": "None", "ports": [80]},
        {"pod": "shop/a", "ip": "10.1.0.1"},
        {"slice": "shop/db-1", "svc": "db", **part},
        {"slice": "shop/cart-1", "svc": "cart", **part},
    )
    assert [one.ip for one in world.db.read(instances, name("shop/db", 80))] == ["10.1.0.1"]
    assert world.db.read(instances, CART80) == ()
