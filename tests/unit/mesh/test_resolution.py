from __future__ import annotations

import pytest

from isthmus.ir.names import Default
from isthmus.mesh.census import Place
from isthmus.mesh.outbound import INSIDE, UNMANAGED
from isthmus.mesh.resolution import (
    Asked,
    Dialled,
    Named,
    is_known,
    outbound_for,
    resolved,
    service_named,
)
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

MILL = Place(LOCAL, "mill")
CART = ObjectKey(LOCAL, "shop", "cart")
SERVICE: Compact = {"svc": "shop/cart", "ips": ["10.96.0.1", "fd00:96::1"], "ports": [80]}


def world(*objects: Compact) -> World:
    return World(SERVICE, *objects, cluster_networks=("10.0.0.0/8", "fd00::/8"))


def name(world: World, asked: Asked) -> str:
    found = world.db.read(resolved, asked)
    if found is None:
        return "none"
    parent = found.parent
    return f"{parent.kind} {parent.namespace}/{parent.name}:{found.port} for {found.namespace}"


@pytest.mark.parametrize(
    ("ip", "found"),
    [
        ("10.96.0.1", "Service shop/cart:7 for mill"),
        ("fd00:96::1", "Service shop/cart:7 for mill"),
        ("fd00:96:0::0:1", "Service shop/cart:7 for mill"),
        ("::ffff:10.96.0.1", "Service shop/cart:7 for mill"),
        ("10.1.2.3", "none"),
        ("203.0.113.1", "EgressNetwork linkerd-egress/out:7 for mill"),
        ("2001:db8::1", "EgressNetwork linkerd-egress/out:7 for mill"),
    ],
)
def test_an_address_is_a_services_then_a_networks(ip: str, found: str) -> None:
    assert name(world({"egress": "linkerd-egress/out"}), Dialled(MILL, ip, 7)) == found


def test_no_network_takes_a_services_address_but_a_pods_if_it_says_so() -> None:
    mesh = world({"egress": "linkerd-egress/out", "networks": ["10.0.0.0/8"]})
    assert name(mesh, Dialled(MILL, "10.96.0.1", 80)).startswith("Service")
    assert name(mesh, Dialled(MILL, "10.1.2.3", 80)).startswith("EgressNetwork")


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (Dialled(MILL, "10.96.0.1", 80), True),
        (Dialled(MILL, "10.96.0.1", 81), True),
        (Dialled(MILL, "10.9.9.9", 80), False),
        (Dialled(MILL, "fd00::9", 80), False),
        (Dialled(MILL, "203.0.113.1", 80), True),
        (Named(MILL, ObjectKey(LOCAL, "shop", "ghost"), 80), True),
    ],
)
def test_only_addresses_of_the_cluster_may_be_nobodys(asked: Asked, *, known: bool) -> None:
    assert world().db.read(is_known, asked) is known


def test_an_address_whose_service_goes_does_not_become_one_outside() -> None:
    mesh, asked = world(), Dialled(MILL, "10.96.0.1", 80)
    assert mesh.db.read(outbound_for, asked).parent is not None
    mesh.delete("svc shop/cart")
    found = mesh.db.read(outbound_for, asked)
    assert (found.source, found.port) == (INSIDE, 80)
    outside = mesh.db.read(outbound_for, Dialled(MILL, "203.0.113.1", 80))
    assert outside.source == UNMANAGED


def test_a_name_is_a_service_that_may_come_later() -> None:
    mesh, asked = world(), Named(MILL, ObjectKey(LOCAL, "shop", "late"), 80)
    [route] = mesh.db.read(outbound_for, asked).protocol.routes  # type: ignore[union-attr]
    assert route.source == Default("undefined-port")
    mesh.apply({"svc": "shop/late", "ip": "10.96.0.2", "ports": [80]})
    assert type(mesh.db.read(outbound_for, asked).protocol).__name__ == "Detect"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("cart.shop.svc.mesh.test", ("shop", "cart")),
        ("cart.shop.svc.mesh.test..", ("shop", "cart")),
        ("cart.shop.svc", ("shop", "cart")),
        ("cart.shop.svc.other.example", ("shop", "cart")),
        ("cart.shop", None),
        ("cart.shop.pod", None),
        ("cart..svc", None),
        (".shop.svc", None),
        ("203.0.113.1", None),
        ("svc", None),
        ("", None),
    ],
)
def test_names_of_services(host: str, found: tuple[str, str] | None) -> None:
    assert service_named(host, "mesh.test") == found
