"""Which EgressNetwork an address is of: one by one, and as a map of all addresses."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ir.names import Ref
from isthmus.ir.proxy import OutboundName
from isthmus.mesh import egress
from isthmus.mesh.census import Place
from isthmus.mesh.egress import EGRESS_NETWORKS, Region, network_of, overlaps, regions
from isthmus.mesh.outside import egress_names, opaque_somewhere, outside, unseen_ports
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import DEFAULT_OPAQUE, LOCAL, World

SHOP = Place(LOCAL, "shop")
INSIDE = ("10.0.0.0/8", "fd00::/8")


def world(*objects: Compact) -> World:
    return World(
        {"ns": "shop"}, *objects, cluster_networks=INSIDE, service_networks=("10.96.0.0/16",)
    )


def owner(world: World, ip: str) -> str | None:
    found = world.db.read(network_of, SHOP, ip)
    return found.name if found is not None else None


def on_map(found: tuple[Region, ...], ip: str) -> Region:
    """The region of the longest prefix that holds an address."""
    address = ip_address(ip)
    fitting = [one for one in found if address in ip_network(one.prefix)]
    return max(fitting, key=lambda one: ip_network(one.prefix).prefixlen)


def test_without_networks_the_map_tells_inside_from_outside() -> None:
    found = world().db.read(outside, SHOP)
    assert found == (
        Region("0.0.0.0/0"),
        Region("10.0.0.0/8", inside=True),
        Region("10.96.0.0/16", refused=True),
        Region("::/0"),
        Region("fd00::/8", inside=True),
    )


def test_addresses_of_services_are_refused_whoever_claims_them() -> None:
    greedy = world({"egress": "shop/net", "networks": ["10.0.0.0/8", "10.96.7.0/24"]})
    found = greedy.db.read(outside, SHOP)
    assert on_map(found, "10.96.7.1").refused
    assert on_map(found, "10.1.0.1").network == ObjectKey(LOCAL, "shop", "net")


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        (None, False),
        (["203.0.113.0/24"], False),
        (["10.0.0.0/8"], True),
        (["10.1.0.0/16"], True),
        (["0.0.0.0/0"], True),
        ([{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}], False),
        ([{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/9", "10.128.0.0/9"]}], True),
        (["fd00::1/128"], True),
    ],
)
def test_overlaps_with_the_cluster(networks: list[object] | None, expected: bool) -> None:
    said = {} if networks is None else {"networks": networks}
    key = ObjectKey(LOCAL, "shop", "net")
    assert world({"egress": "shop/net", **said}).db.read(overlaps, key) is expected


def test_sizes_are_counted_exactly() -> None:
    mesh = world(
        {
            "egress": "shop/a",
            "networks": [{"cidr": "198.51.100.0/23", "except": ["198.51.100.0/25"]}],
        },
        {"egress": "shop/b", "networks": ["198.51.101.0/24"]},
        {"egress": "shop/c", "networks": ["2001:db8::/64"]},
        {"egress": "shop/d", "networks": ["2001:db8::/48"]},
    )
    assert owner(mesh, "198.51.101.9") == "b"
    assert owner(mesh, "198.51.100.200") == "a"
    assert owner(mesh, "2001:db8::1") == "c"
    assert owner(mesh, "2001:db8:0:1::1") == "d"
    assert owner(mesh, "198.51.100.7") is None
    assert owner(mesh, "nonsense") is None


BLOCKS = (
    "0.0.0.0/0",
    "198.0.0.0/8",
    "198.51.0.0/16",
    "198.51.100.0/24",
    "198.51.100.128/25",
    "10.0.0.0/9",
)
ADDRESSES = ("198.51.100.7", "198.51.100.200", "198.51.1.1", "198.1.1.1", "10.1.1.1", "203.0.113.1")
NETWORK = st.builds(
    lambda cidr, excepts: {"cidr": cidr, "except": excepts},
    st.sampled_from(BLOCKS),
    st.lists(st.sampled_from(BLOCKS[1:]), max_size=2),
)
NETWORKS = st.lists(st.lists(NETWORK, min_size=1, max_size=3), max_size=4)


@given(NETWORKS)
def test_the_map_says_of_every_address_what_the_search_says(networks: list[list[object]]) -> None:
    some: list[Compact] = [
        {"egress": f"shop/n{at}", "networks": one, "created": f"2024-01-0{at % 2 + 1}T00:00:00Z"}
        for at, one in enumerate(networks)
    ]
    mesh = world(*some)
    found = mesh.db.read(outside, SHOP)
    for ip in ADDRESSES:
        network = mesh.db.read(network_of, SHOP, ip)
        assert on_map(found, ip).network == network, ip


def test_prefixes_that_say_nothing_new_are_left_out() -> None:
    assert regions((), ("10.96.0.0/16", "10.96.1.0/24"), ()) == (
        Region("0.0.0.0/0"),
        Region("10.96.0.0/16", refused=True),
        Region("::/0"),
    )


def test_a_port_with_routes_at_one_network_is_told_of_all() -> None:
    mesh = world(
        {"egress": "shop/a"},
        {"egress": "shop/b", "networks": ["198.51.100.0/24"]},
        {"route": "shop/r", "egress": "a", "port": 80},
    )
    names = mesh.db.read(egress_names, SHOP)
    assert [(one.parent.name, one.port) for one in names] == [
        ("a", 80),
        ("a", 0),
        ("b", 80),
        ("b", 0),
    ]
    assert names[0] == OutboundName(
        Ref(LOCAL, "policy.linkerd.io", "EgressNetwork", "shop", "a"), 80, "shop"
    )


def unseen(*objects: Compact) -> str:
    ranges = world(*objects).db.read(unseen_ports, SHOP).ranges
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def test_ports_that_are_opaque_everywhere_are_not_looked_at() -> None:
    assert unseen() == DEFAULT_OPAQUE
    assert unseen({"egress": "shop/a", "opaque": "3000-3306,25"}) == "25,3306"
    route: Compact = {"route": "shop/r", "egress": "a", "port": 3306}
    assert "3306" not in unseen({"egress": "shop/a"}, route)
    raw: Compact = {"tcproute": "shop/r", "egress": "a", "port": 9999}
    assert unseen({"egress": "shop/a"}, raw).endswith("9300,9999,11211")


def test_a_network_whose_opaque_ports_are_looked_at_for_anothers_sake() -> None:
    mesh = world({"egress": "shop/a", "opaque": "25,9000"}, {"egress": "shop/b"})
    key = ObjectKey(LOCAL, "shop", "a")
    assert mesh.db.read(opaque_somewhere, key, SHOP)
    mesh.apply({"egress": "shop/a", "opaque": "25"})
    assert not mesh.db.read(opaque_somewhere, key, SHOP)


def test_only_what_a_controller_attends_can_be_listed() -> None:
    assert EGRESS_NETWORKS.listed is not None
    assert {EGRESS_NETWORKS.name} == egress.LISTED
