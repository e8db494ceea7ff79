from __future__ import annotations

import pytest

from isthmus.dialects.linkerd import Fault, addresses, get_question, profile_bytes, profile_question
from isthmus.mesh.asked import AddressHost, GetKey, InstanceHost, ProfileKey, ServiceHost
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import destination_pb2 as pb
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")
NAME = "cart.shop.svc.mesh.test"
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [8080]}
PART: Compact = {"slice": "shop/c", "svc": "cart", "ports": [8080]}
MULTI = "multicluster.linkerd.io/"
INVALID, MISSING, PRECONDITION = "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"


def test_a_get_is_keyed_by_the_service_and_where_it_is_asked_from() -> None:
    world = World(SERVICE)
    token = '{"ns":"pay", "nodeName":"n1", "pod":"p"}\n'
    assert world.get_key(f"{NAME}:8080", token) == GetKey(CART, 8080, "", "n1")
    assert world.get_key(f"a-0.{NAME}:8080") == GetKey(CART, 8080, "a-0", "")
    assert world.get_key(NAME, "garbage") == GetKey(CART, 80, "", "")


def test_a_profile_is_keyed_by_the_host_and_the_clients_namespace() -> None:
    eps = [{"ip": "10.1.0.1", "host": "a-0"}]
    world = World(SERVICE, {**PART, "eps": eps})
    key = ProfileKey(ServiceHost(CART), 8080, "pay")
    assert world.profile_key(f"{NAME}:8080", '{"ns":"pay","nodeName":"n1"}') == key
    instance = ProfileKey(InstanceHost(CART, "a-0"), 8080, "")
    assert world.profile_key(f"a-0.{NAME}:8080") == instance
    address = ProfileKey(AddressHost(LOCAL, "2001:db8::1"), 8080, "")
    assert world.profile_key("[2001:DB8::0:1]:8080") == address


REMOTE = {f"{MULTI}remote-discovery": "east"}

GETS: list[tuple[str, Compact, Fault]] = [
    ("foo", SERVICE, Fault(INVALID, "Invalid authority: foo")),
    ("", SERVICE, Fault(INVALID, "Invalid authority: ")),
    (f"{NAME}:0", SERVICE, Fault(INVALID, f"Invalid authority: {NAME}:0")),
    (
        "10.96.0.10:8080",
        SERVICE,
        Fault(INVALID, "IP queries not supported by Get API: host=10.96.0.10"),
    ),
    ("till.shop.svc.mesh.test", SERVICE, Fault(MISSING, "Service till.shop not found")),
    (
        NAME,
        {"svc": "shop/cart", "type": "ExternalName"},
        Fault(INVALID, f"Invalid authority: {NAME}"),
    ),
    (
        NAME,
        {**SERVICE, "labels": REMOTE},
        Fault(PRECONDITION, f"Remote discovery service missing remote service name {NAME}"),
    ),
    (
        NAME,
        {**SERVICE, "labels": {**REMOTE, f"{MULTI}remote-service": "cart"}},
        Fault(MISSING, "Remote cluster not found: east"),
    ),
]


@pytest.mark.parametrize(("path", "service", "fault"), GETS)
def test_what_get_refuses(path: str, service: Compact, fault: Fault) -> None:
    assert World(service).get_key(path) == fault


PROFILES: list[tuple[str, list[Compact], Fault]] = [
    (
        f"{NAME}:x",
        [SERVICE],
        Fault(INVALID, f'invalid authority: "{NAME}:x": "invalid port \'x\'"'),
    ),
    (
        "example.org:80",
        [SERVICE],
        Fault(INVALID, 'invalid service "example.org": "not a name under svc.mesh.test"'),
    ),
    (NAME, [], Fault(MISSING, "Service cart.shop not found")),
    (
        f"{NAME}:9090",
        [{"svc": "shop/cart", "type": "ExternalName", "ports": [80]}],
        Fault(INVALID, f'invalid service "{NAME}": "Service cart.shop is of type ExternalName"'),
    ),
    (
        f"a-0.{NAME}",
        [SERVICE],
        Fault(MISSING, "no pod found in EndpointSlices of Service shop/cart for hostname a-0"),
    ),
    (
        "10.96.0.10:80",
        [SERVICE, {**SERVICE, "svc": "pay/b"}],
        Fault(PRECONDITION, "found 2 services with conflicting cluster IP 10.96.0.10"),
    ),
    (
        "10.1.0.1:80",
        [{"pod": "shop/a", "ip": "10.1.0.1"}, {"pod": "pay/b", "ip": "10.1.0.1"}],
        Fault(PRECONDITION, "found 2 pods with a conflicting pod network IP 10.1.0.1"),
    ),
]


@pytest.mark.parametrize(("path", "objects", "fault"), PROFILES)
def test_what_getprofile_refuses(path: str, objects: list[Compact], fault: Fault) -> None:
    assert World(*objects).profile_key(path) == fault


def test_texts_are_short_whatever_was_asked() -> None:
    world = World()
    for path in ("x" * 100_000, f"{'x' * 100_000}:80", "x:" + "9" * 100_000, ":" * 100_000):
        for found in (world.get_key(path), world.profile_key(path)):
            assert isinstance(found, Fault)
            assert len(found.text) < 512


def test_bytes_that_are_no_message_are_refused() -> None:
    world = World()
    for body in (b"\xff", b"\x12\xff\xff\xff\xff\x0f", b"\x12\x02\xff\xfe", b"\x12"):
        for ask in (get_question, profile_question):
            found = ask(world.db.read, body)
            assert isinstance(found, Fault)
            assert found.status == INVALID


# -------------------------------------------------------------------------------- answers


def test_nodes_of_one_zone_share_one_book() -> None:
    world = World(SERVICE, {"pod": "shop/a"}, {**PART, "eps": [{"ip": "10.1.0.1", "pod": "a"}]})
    world.apply({"node": "n1", "zone": "z1"}, {"node": "n2", "zone": "z1"}, {"node": "n3"})
    books = [world.book(f"{NAME}:8080", f'{{"nodeName":"n{at}"}}') for at in (1, 2, 3)]
    assert books[0] is books[1]
    assert books[1] is not books[2]


def test_an_unchanged_address_keeps_its_bytes() -> None:
    world = World(SERVICE, {"pod": "shop/a"}, {"pod": "shop/b"})
    a, b = {"ip": "10.1.0.1", "pod": "a"}, {"ip": "10.1.0.2", "pod": "b"}
    world.apply({**PART, "eps": [a]})
    (before,) = world.book(f"{NAME}:8080").entries
    world.apply({**PART, "eps": [a, b]})
    assert world.book(f"{NAME}:8080").entries[0].encoded is before.encoded


def test_an_address_that_several_members_have_is_told_once() -> None:
    notes = {f"{MULTI}local-discovery": "till", f"{MULTI}remote-discovery": "till@east"}
    world = World({**SERVICE, "annotations": notes}, {"svc": "shop/till", "ports": [8080]})
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    part = {"slice": "shop/t", "svc": "till", "ports": [8080], "eps": [{"ip": "10.1.0.1"}]}
    world.apply(part, {"in": "east", "svc": "shop/till", "ports": [8080]}, {"in": "east", **part})
    assert len(world.book(f"{NAME}:8080").entries) == 1
    world.delete("slice shop/t")
    assert len(world.book(f"{NAME}:8080").entries) == 1


def test_an_open_stream_outlives_its_service() -> None:
    world = World(SERVICE, {**PART, "eps": [{"ip": "10.1.0.1"}]})
    get, profile = world.get_key(f"{NAME}:8080"), world.profile_key(f"{NAME}:8080")
    assert isinstance(get, GetKey)
    assert isinstance(profile, ProfileKey)
    assert world.db.read(addresses, get).entries
    told = world.db.read(profile_bytes, profile)
    world.delete("svc shop/cart")
    assert not world.db.read(addresses, get).entries
    assert world.db.read(profile_bytes, profile) == told
    assert isinstance(world.get_key(f"{NAME}:8080"), Fault)
    assert isinstance(world.profile_key(f"{NAME}:8080"), Fault)


def test_a_profile_is_one_message() -> None:
    world = World({**SERVICE, "opaque": "8080"})
    found = world.profile(f"{NAME}:8080")
    assert isinstance(found, pb.DestinationProfile)
    assert (found.fully_qualified_name, found.opaque_protocol) == (NAME, True)
    assert world.profile("10.96.0.10:8080") == found
