"""Names and what they stand for: the specification's examples, and what lies between them."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.engine import Put
from isthmus.mesh.dns import HOSTS, Foreign, Found, Missing, Node, Server, lookup, resolve
from tests.support.compact import Compact, Name
from tests.support.meshworld import DOMAIN, World

SVC = f"svc.{DOMAIN}"


def world(*objects: Compact) -> World:
    made = World(*objects, cluster_networks=("10.0.0.0/8", "fd00::/8"))
    for name in ("shop", "bare"):
        made.write(Name(None, "namespaces", "", name), {"metadata": {"name": name}})
    return made


CART: dict[str, Any] = {
    "svc": "shop/cart",
    "ip": "10.96.0.7",
    "ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "tls"}],
}
DB: dict[str, Any] = {"svc": "shop/db", "ip": "None", "ports": [{"port": 5432, "name": "pg"}]}
DB_1: dict[str, Any] = {
    "slice": "shop/db-1",
    "svc": "db",
    "ports": [{"name": "pg", "port": 5433}],
    "eps": [
        {"ip": "10.0.0.1", "host": "db-0"},
        {"ip": "10.0.0.2", "host": "db-1", "ready": False},
        {"ip": "10.0.0.3"},
    ],
}


def find(made: World, name: str) -> Found:
    return made.db.read(lookup, name)


def node(made: World, name: str) -> Node:
    found = find(made, name)
    assert isinstance(found, Node), found
    return found


# ----------------------------------------------------------------------- Services with addresses


def test_a_service_is_its_own_address() -> None:
    assert node(world(CART), f"cart.shop.{SVC}").ips == ("10.96.0.7",)


def test_a_service_with_two_families_has_both() -> None:
    made = world(CART | {"ips": ["10.96.0.7", "fd00::7"]})
    assert node(made, f"cart.shop.{SVC}").ips == ("10.96.0.7", "fd00::7")


def test_a_service_without_address_yet_is_there() -> None:
    made = world({"svc": "shop/new", "ports": [80]})
    assert node(made, f"new.shop.{SVC}").ips == ()


def test_a_named_port_says_where_it_answers() -> None:
    name = f"cart.shop.{SVC}"
    (found,) = node(world(CART), f"_http._tcp.{name}").servers
    assert found == Server(80, name, ("10.96.0.7",))


@pytest.mark.parametrize("label", ["_http._udp", "_ftp._tcp", "http._tcp", "_http.tcp", "_._tcp"])
def test_another_port_is_missing(label: str) -> None:
    assert find(world(CART), f"{label}.cart.shop.{SVC}") == Missing(DOMAIN)


def test_a_protocol_is_there_if_a_named_port_has_it() -> None:
    made = world(CART, {"svc": "shop/plain", "ip": "10.96.0.8", "ports": [80]})
    assert node(made, f"_tcp.cart.shop.{SVC}") == Node(DOMAIN)
    assert find(made, f"_udp.cart.shop.{SVC}") == Missing(DOMAIN)
    assert find(made, f"_tcp.plain.shop.{SVC}") == Missing(DOMAIN)


def test_endpoints_of_a_service_with_an_address_have_no_names() -> None:
    part = {"slice": "shop/cart-1", "svc": "cart", "eps": [{"ip": "10.0.0.9", "host": "cart-0"}]}
    assert find(world(CART, part), f"cart-0.cart.shop.{SVC}") == Missing(DOMAIN)


# ----------------------------------------------------------------------- headless Services


def test_a_headless_service_is_its_ready_endpoints() -> None:
    made = world(DB, DB_1)
    assert node(made, f"db.shop.{SVC}").ips == ("10.0.0.3", "10.0.0.1")


def test_it_follows_the_slices() -> None:
    made = world(DB, DB_1)
    assert len(node(made, f"db.shop.{SVC}").ips) == 2
    made.apply({**DB_1, "slice": "shop/db-2", "eps": [{"ip": "10.0.0.4"}]})
    assert "10.0.0.4" in node(made, f"db.shop.{SVC}").ips
    made.delete("slice shop/db-1", "slice shop/db-2")
    assert node(made, f"db.shop.{SVC}").ips == ()
    made.delete("svc shop/db")
    assert find(made, f"db.shop.{SVC}") == Missing(DOMAIN)


def test_an_endpoint_has_its_host_name_or_its_address_as_name() -> None:
    made = world(DB, DB_1)
    assert node(made, f"db-0.db.shop.{SVC}").ips == ("10.0.0.1",)
    assert node(made, f"10-0-0-3.db.shop.{SVC}").ips == ("10.0.0.3",)
    assert find(made, f"10-0-0-1.db.shop.{SVC}") == Missing(DOMAIN)
    assert find(made, f"db-1.db.shop.{SVC}") == Missing(DOMAIN)


def test_endpoints_in_slices_of_different_ports_all_have_names() -> None:
    # istio 61038: only those in the slice of the first port had.
    ports = [{"name": "pg", "port": 5432}, {"name": "web", "port": 80}]
    db = {"svc": "shop/two", "ip": "None", "ports": ports}
    parts = [
        {"slice": f"shop/two-{at}", "svc": "two", "ports": [port], "eps": [
            {"ip": f"10.0.1.{at}", "host": f"two-{at}"}
        ]} for at, port in ((1, {"name": "pg", "port": 5432}), (2, {"name": "web", "port": 80}))
    ]  # fmt: skip
    made = world(db, *parts)
    for at in (1, 2):
        assert node(made, f"two-{at}.two.shop.{SVC}").ips == (f"10.0.1.{at}",)


def test_peers_that_are_not_ready_are_told_where_the_service_wants_it() -> None:
    made = world(DB, DB_1)
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True}
    metadata = {"name": "db", "namespace": "shop"}
    made.write("svc shop/db", {"metadata": metadata, "spec": spec})
    assert node(made, f"db-1.db.shop.{SVC}").ips == ("10.0.0.2",)


def test_each_endpoint_answers_at_its_own_port() -> None:
    name = f"db.shop.{SVC}"
    found = node(world(DB, DB_1), f"_pg._tcp.{name}").servers
    assert found == (
        Server(5433, f"10-0-0-3.{name}", ("10.0.0.3",)),
        Server(5433, f"db-0.{name}", ("10.0.0.1",)),
    )


def test_an_endpoint_of_two_families_is_one_server() -> None:
    six = {
        **DB_1,
        "slice": "shop/db-6",
        "family": "IPv6",
        "eps": [{"ip": "fd00::1", "host": "db-0"}],
    }
    name = f"db.shop.{SVC}"
    found = node(world(DB, DB_1, six), f"_pg._tcp.{name}").servers
    assert Server(5433, f"db-0.{name}", ("10.0.0.1", "fd00::1")) in found


# ----------------------------------------------------------------------- what lies between


@pytest.mark.parametrize(
    "name", [DOMAIN, SVC, f"pod.{DOMAIN}", f"shop.{SVC}", f"bare.{SVC}", f"bare.pod.{DOMAIN}"]
)
def test_names_above_others_are_there(name: str) -> None:
    assert node(world(CART), name) == Node(DOMAIN)


@pytest.mark.parametrize(
    "name",
    [
        f"none.{SVC}", f"cart.none.{SVC}", f"none.shop.{SVC}", f"x.{DOMAIN}", f"a.b.c.d.{DOMAIN}",
        f"cart.shop.{SVC}.shop.{SVC}", f"cart.shop.{DOMAIN}", f".{SVC}", f"cart\\.shop.{SVC}",
        f"a.b.cart.shop.{SVC}",
    ],
)  # fmt: skip
def test_a_name_of_ours_that_nobody_has(name: str) -> None:
    assert find(world(CART), name) == Missing(DOMAIN)


@pytest.mark.parametrize("name", ["example.org", f"x{DOMAIN}", "", "cart.shop.svc.cluster.local"])
def test_a_name_of_somebody_else(name: str) -> None:
    assert find(world(CART), name) == Foreign()


def test_a_short_name_that_no_search_path_completed_is_nobodys() -> None:
    assert find(world(CART), "cart") == Missing("")


def test_the_version_of_the_specification() -> None:
    assert node(world(), f"dns-version.{DOMAIN}").texts == ("1.1.0",)


# ----------------------------------------------------------------------- aliases and hosts


def external(name: str, target: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"type": "ExternalName", "externalName": target},
    }


def test_an_external_name_is_an_alias() -> None:
    made = world({"svc": "shop/out", "type": "ExternalName"})
    assert node(made, f"out.shop.{SVC}").alias == "outside.example.org"
    found = made.db.read(resolve, f"out.shop.{SVC}")
    assert (found.aliases, found.found) == (("outside.example.org",), Foreign())
    assert find(made, f"x.out.shop.{SVC}") == Missing(DOMAIN)


def test_an_alias_of_our_own_is_followed() -> None:
    made = world(CART)
    made.write("svc shop/near", external("near", f"CART.shop.{SVC}."))
    found = made.db.read(resolve, f"near.shop.{SVC}")
    assert found.aliases == (f"cart.shop.{SVC}",)
    assert isinstance(found.found, Node)
    assert found.found.ips == ("10.96.0.7",)


def test_aliases_in_a_circle_end() -> None:
    made = world()
    made.write("svc shop/a", external("a", f"b.shop.{SVC}"))
    made.write("svc shop/b", external("b", f"a.shop.{SVC}"))
    assert len(made.db.read(resolve, f"a.shop.{SVC}").aliases) <= 8
    for number in range(20):
        made.write(f"svc shop/l{number}", external(f"l{number}", f"l{number + 1}.shop.{SVC}"))
    assert len(made.db.read(resolve, f"l0.shop.{SVC}").aliases) == 8


@pytest.mark.parametrize("target", ["10.0.0.1", "", "a..b", "x" * 64, "bücher.example"])
def test_an_external_name_that_is_no_name_leads_nowhere(target: str) -> None:
    made = world()
    made.write("svc shop/bad", external("bad", target))
    assert node(made, f"bad.shop.{SVC}") == Node(DOMAIN)


def test_hosts_that_the_operator_wrote_down() -> None:
    made = world()
    made.db.commit([Put(HOSTS, "color", ("198.51.100.2",))])
    assert node(made, "color") == Node("color", ips=("198.51.100.2",))
    made.write("svc shop/out", external("out", "color"))
    assert made.db.read(resolve, f"out.shop.{SVC}").found == node(made, "color")


# ----------------------------------------------------------------------- pods and addresses

POD: dict[str, Any] = {"pod": "shop/db-0", "ip": "10.0.0.1", "labels": {"app": "db"}}


def test_a_pod_by_its_address() -> None:
    made = world(POD, {"pod": "shop/six", "ip": "fd00::5"})
    assert node(made, f"10-0-0-1.shop.pod.{DOMAIN}").ips == ("10.0.0.1",)
    assert node(made, f"fd00--5.shop.pod.{DOMAIN}").ips == ("fd00::5",)
    for name in ("10-0-0-1.bare", "10-0-0-2.shop", "10-00-0-1.shop", "x.shop"):
        assert find(made, f"{name}.pod.{DOMAIN}") == Missing(DOMAIN)


def test_the_name_of_a_service_address() -> None:
    assert node(world(CART), "7.0.96.10.in-addr.arpa").pointers == (f"cart.shop.{SVC}",)


def test_the_name_of_an_ipv6_address() -> None:
    made = world(CART | {"ip": "fd00::7"})
    name = f"7.{'0.' * 27}0.0.d.f.ip6.arpa"
    assert node(made, name).pointers == (f"cart.shop.{SVC}",)


def test_a_pod_is_named_by_its_headless_services() -> None:
    made = world(DB | {"selector": {"app": "db"}}, DB_1, CART | {"selector": {"app": "db"}}, POD)
    assert node(made, "1.0.0.10.in-addr.arpa").pointers == (f"db-0.db.shop.{SVC}",)
    made.apply({**POD, "hostNetwork": True})
    assert find(made, "1.0.0.10.in-addr.arpa") == Missing("in-addr.arpa")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("9.9.9.10.in-addr.arpa", Missing("in-addr.arpa")),
        ("4.3.2.1.in-addr.arpa", Foreign()),
        ("10.in-addr.arpa", Node("in-addr.arpa")),
        ("in-addr.arpa", Node("in-addr.arpa")),
        ("256.0.0.10.in-addr.arpa", Missing("in-addr.arpa")),
        ("01.0.0.10.in-addr.arpa", Missing("in-addr.arpa")),
        ("5.4.3.2.1.in-addr.arpa", Missing("in-addr.arpa")),
        ("x.ip6.arpa", Missing("ip6.arpa")),
        ("f.ip6.arpa", Node("ip6.arpa")),
    ],
)
def test_other_names_of_addresses(name: str, found: Found) -> None:
    assert find(world(), name) == found


# ----------------------------------------------------------------------- cost


def test_unknown_names_leave_nothing_behind() -> None:
    made = world(CART)
    made.db.read(resolve, f"cart.shop.{SVC}")
    for number in range(5_000):
        made.db.read(resolve, f"n{number}.shop.{SVC}")
    assert made.db.stats.cells < 6_000
    made.db.forget()
    assert made.db.stats.cells == 0
