from __future__ import annotations

import pytest

from isthmus.mesh.names import (
    NO_TOKEN,
    Authority,
    BadAuthority,
    BadHost,
    InstanceName,
    IpName,
    ServiceName,
    Token,
    canonical_ip,
    parse_authority,
    parse_token,
)

CART = "cart.shop.svc.mesh.test"


def parse(path: str, domain: str = "mesh.test") -> Authority | BadAuthority | BadHost:
    return parse_authority(path, domain)


@pytest.mark.parametrize(
    ("path", "name", "port"),
    [
        (CART, ServiceName("shop", "cart"), 80),
        (f"{CART}:8080", ServiceName("shop", "cart"), 8080),
        (f"{CART}:08080", ServiceName("shop", "cart"), 8080),
        (f"cart-0.{CART}:1", InstanceName("shop", "cart", "cart-0"), 1),
        ("10.0.0.1", IpName("10.0.0.1"), 80),
        ("10.0.0.1:65535", IpName("10.0.0.1"), 65535),
        ("[10.0.0.1]:7", IpName("10.0.0.1"), 7),
        ("[2001:DB8:0:0::1]:8080", IpName("2001:db8::1"), 8080),
        ("[::ffff:10.0.0.1]:8080", IpName("10.0.0.1"), 8080),
    ],
)
def test_what_paths_mean(path: str, name: object, port: int) -> None:
    found = parse(path)
    assert isinstance(found, Authority)
    assert (found.name, found.port) == (name, port)


def test_a_cluster_domain_may_have_many_labels() -> None:
    path = "cart.shop.svc.k8s.corp.example:8080"
    found = parse(path, "k8s.corp.example")
    assert isinstance(found, Authority)
    assert found.name == ServiceName("shop", "cart")
    assert isinstance(parse("cart.shop.svc.corp.example", "k8s.corp.example"), BadHost)


@pytest.mark.parametrize(
    "path",
    [
        f"{CART}:0",
        f"{CART}:65536",
        f"{CART}:http",
        f"{CART}:",
        f"{CART}:-1",
        f"{CART}:+80",
        f"{CART}:٨٠",
        f"{CART}:80:80",
        f"{CART}:{'9' * 5000}",
        "2001:db8::1",
        "[2001:db8::1]",
        "[2001:db8::1:80",
        "[2001:db8::1]x:80",
        "[[2001:db8::1]]:80",
        "a]:80",
        ":",
    ],
)
def test_what_is_no_authority(path: str) -> None:
    assert isinstance(parse(path), BadAuthority)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ":80",
        "example.org:80",
        f"{CART}.:80",
        "Cart.shop.SVC.mesh.test",
        "shop.svc.mesh.test",
        "svc.mesh.test",
        ".svc.mesh.test",
        ".shop.svc.mesh.test",
        "cart..svc.mesh.test",
        f"b.a.{CART}",
        "cart.shop.svc.other.test",
        "cart.shop.svc.xmesh.test",
        "[fe80::1%eth0]:80",
        f"{'a' * 300}.shop.svc.mesh.test",
    ],
)
def test_what_is_no_host_of_ours(path: str) -> None:
    assert isinstance(parse(path), BadHost)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("", NO_TOKEN),
        ('{"ns":"pay", "nodeName":"n1", "pod":"p"}\n', Token("pay", "n1", "p")),
        ('{"NS":"pay","NodeName":"n1","later":[1,{}]}', Token("pay", "n1")),
        ('{"ns":null}', NO_TOKEN),
        ('{"ns":7}', NO_TOKEN),
        ("{}", NO_TOKEN),
        ('["pay"]', NO_TOKEN),
        ("ns:pay", Token("pay")),
        ("ns:pay:x", NO_TOKEN),
        ("pay", NO_TOKEN),
        ('{"ns":', NO_TOKEN),
        ("[" * 4000, NO_TOKEN),
        ('{"x":' * 800, NO_TOKEN),
        ('{"ns":"' + "a" * 5000 + '"}', NO_TOKEN),
    ],
)
def test_what_tokens_say(text: str, token: Token) -> None:
    assert parse_token(text) == token


def test_an_address_has_one_text() -> None:
    assert canonical_ip("2001:0DB8::0:1") == "2001:db8::1"
    assert canonical_ip("::ffff:10.0.0.1") == "10.0.0.1"
    assert canonical_ip("10.0.0.01") is None
    assert canonical_ip("web") is None
