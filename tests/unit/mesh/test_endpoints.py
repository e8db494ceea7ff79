from __future__ import annotations

import pytest

from isthmus.ir.endpoint import Endpoint, EndpointSet, SetState, Speaks
from isthmus.ir.names import Dns
from isthmus.mesh.asked import GetKey
from isthmus.mesh.endpoints import endpoint_sets
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")
SERVICE: Compact = {"svc": "shop/cart", "ports": [8080]}


def pods(*names: str, **said: object) -> list[Compact]:
    return [
        {"pod": f"shop/{name}", "ip": f"10.1.0.{at}", **said} for at, name in enumerate(names, 1)
    ]


def part(*eps: Compact, name: str = "cart-1", **said: object) -> Compact:
    return {"slice": f"shop/{name}", "svc": "cart", "ports": [8080], "eps": eps, **said}


def sets(
    world: World, port: int = 8080, *, instance: str = "", node: str = ""
) -> tuple[EndpointSet, ...]:
    return world.db.read(endpoint_sets, GetKey(CART, port, instance, node))


def endpoints(
    world: World, port: int = 8080, *, instance: str = "", node: str = ""
) -> dict[str, Endpoint]:
    found = sets(world, port, instance=instance, node=node)
    return {f"{one.address}:{one.port}": one for each in found for one in each.endpoints}


A: Compact = {"ip": "10.1.0.1", "pod": "a"}
B: Compact = {"ip": "10.1.0.2", "pod": "b"}


def test_a_set_is_absent_empty_or_has_somebody() -> None:
    world = World()
    assert sets(world) == (EndpointSet(state=SetState.ABSENT),)
    world.apply(SERVICE)
    assert sets(world) == (EndpointSet(state=SetState.EMPTY),)
    world.apply(*pods("a"), part(A))
    (found,) = sets(world)
    assert found.state is SetState.SOME
    assert found.labels == (("namespace", "shop"), ("service", "cart"))
    world.delete("svc shop/cart")
    assert sets(world) == (EndpointSet(state=SetState.ABSENT),)


@pytest.mark.parametrize(
    ("service_ports", "slice_ports", "asked", "found"),
    [
        ([8080], [8443], 8080, 8443),
        ([8080], [8443], 9000, 9000),
        ([{"port": 80, "name": "web"}], [{"port": 8443, "name": "web"}], 80, 8443),
        ([{"port": 80, "name": "web"}], [{"port": 8443, "name": "adm"}], 80, None),
        ([{"port": 80, "name": "web"}], [8443], 80, None),
        ([8080], [], 8080, None),
        ([8080], [], 9000, 9000),
        ([8080], [{"port": 0}], 8080, None),
        ([8080], [{"port": None}], 8080, None),
    ],
)
def test_a_port_is_found_by_the_name_of_the_services_port(
    service_ports: list[object], slice_ports: list[object], asked: int, found: int | None
) -> None:
    world = World({**SERVICE, "ports": service_ports}, *pods("a"), part(A, ports=slice_ports))
    assert list(endpoints(world, asked)) == ([f"10.1.0.1:{found}"] if found else [])


def test_a_service_port_that_leads_elsewhere_replaces_the_address() -> None:
    web, adm = {"port": 1, "name": "web"}, {"port": 2, "name": "adm"}
    world = World(
        {**SERVICE, "ports": [{"port": 80, "name": "web"}]}, *pods("a"), part(A, ports=[web, adm])
    )
    assert list(endpoints(world, 80)) == ["10.1.0.1:1"]
    world.apply({**SERVICE, "ports": [{"port": 80, "name": "adm"}]})
    assert list(endpoints(world, 80)) == ["10.1.0.1:2"]


def test_only_what_is_ready_counts_and_unset_is_ready() -> None:
    terminating = {**B, "ready": False, "serving": True, "terminating": True}
    world = World(SERVICE, *pods("a", "b"), part(A, terminating))
    assert list(endpoints(world)) == ["10.1.0.1:8080"]
    world.apply(part({**A, "ready": True}, {**B, "ready": True, "terminating": True}))
    assert list(endpoints(world)) == ["10.1.0.1:8080", "10.1.0.2:8080"]


def test_what_is_behind_an_address_must_be_known() -> None:
    ghost = {"ip": "10.1.0.9", "pod": "ghost"}
    vm = {"ip": "198.51.100.1", "ew": "vm"}
    world = World(SERVICE, *pods("a"), part(A, ghost, vm, {"ip": "192.0.2.1"}))
    assert list(endpoints(world)) == ["10.1.0.1:8080", "192.0.2.1:8080"]
    world.apply({"ew": "shop/vm", "id": "spiffe://r/vm", "sni": "vm"})
    assert "198.51.100.1:8080" in endpoints(world)


def test_a_target_of_another_kind_does_not_count() -> None:
    world = World(SERVICE)
    odd = {"addresses": ["10.1.0.1"], "targetRef": {"kind": "Node", "name": "n1"}}
    labels = {"kubernetes.io/service-name": "cart"}
    document = {"metadata": {"labels": labels}, "endpoints": [odd], "ports": [{"port": 1}]}
    world.write("slice shop/cart-1", document)
    assert not endpoints(world)


def test_an_unreadable_pod_is_left_out_alone() -> None:
    world = World(SERVICE, *pods("a", meshed=True, noenv=True), part(A, {"ip": "192.0.2.1"}))
    assert list(endpoints(world)) == ["192.0.2.1:8080"]


def test_slices_belong_to_the_service_of_their_label_or_owner() -> None:
    world = World(SERVICE, *pods("a", "b"))
    world.apply({"slice": "shop/nobody", "ports": [8080], "eps": [A]})
    assert not endpoints(world)
    world.apply({"slice": "shop/own", "ports": [8080], "eps": [A], "owner": ["Service", "cart"]})
    (found,) = sets(world)
    assert found.labels == (("namespace", "shop"), ("service", "cart"))
    other = {"slice": "shop/own", "svc": "x", "ports": [8080], "owner": ["Service", "cart"]}
    world.apply({**other, "eps": [A]})
    assert not endpoints(world)


def test_addresses_that_are_none_do_not_count() -> None:
    world = World(SERVICE, part({"ip": "web.example.org"}, {"ip": "10.1.0.01"}))
    assert not endpoints(world)
    world.apply(part({"ip": "10.1.0.1"}, family="FQDN"))
    assert not endpoints(world)


def test_an_instance_is_an_endpoint_with_that_host_name() -> None:
    world = World(SERVICE, *pods("a", "b"), part({**A, "host": "a-0"}, B))
    assert list(endpoints(world, instance="a-0")) == ["10.1.0.1:8080"]
    assert not endpoints(world, instance="b")


# ------------------------------------------------------------------------------ topology

ZONES: list[Compact] = [{"node": "n1", "zone": "z1"}, {"node": "n3", "zone": "z3"}, {"node": "n9"}]


@pytest.mark.parametrize(
    ("first", "second", "node", "found"),
    [
        (["z1"], ["z2"], "n1", "a"),
        (["z1"], ["z2", "z1"], "n1", "ab"),
        (["z1"], ["z2"], "n3", "ab"),
        (["z1"], ["z2"], "n9", "ab"),
        (["z1"], ["z2"], "", "ab"),
        (["z1"], ["z2"], "gone", "ab"),
        (["z1"], [], "n1", "ab"),
    ],
)
def test_hints_count_if_all_have_some_and_some_are_for_this_zone(
    first: list[str], second: list[str], node: str, found: str
) -> None:
    world = World(SERVICE, *ZONES, *pods("a", "b"), part({**A, "hints": first}))
    world.apply(part({**B, "hints": second} if second else B, name="cart-2"))
    names = {"a": "10.1.0.1:8080", "b": "10.1.0.2:8080"}
    assert list(endpoints(world, instance="", node=node)) == [names[one] for one in found]


def test_hints_of_what_nobody_knows_do_not_count() -> None:
    world = World(SERVICE, *ZONES, *pods("a"), part({**A, "hints": ["z2"]}, B))
    world.apply(part({"ip": "192.0.2.1", "hints": ["z1"]}, name="cart-2"))
    assert list(endpoints(world, node="n1")) == ["192.0.2.1:8080"]


def test_a_service_that_keeps_to_the_node_has_its_pods_alone() -> None:
    world = World(
        {**SERVICE, "local": True}, *ZONES, {"ew": "shop/vm"},
        {"pod": "shop/a", "node": "n1"}, {"pod": "shop/b", "node": "n3"},
        part({**A, "hints": ["z3"]}, B, {"ip": "192.0.2.1"}, {"ip": "198.51.100.1", "ew": "vm"}),
    )  # fmt: skip
    assert list(endpoints(world, node="n1")) == ["10.1.0.1:8080"]
    assert not endpoints(world, node="n9")
    assert not endpoints(world)
    world.apply(SERVICE)
    assert len(endpoints(world, node="n1")) == 4


def test_zones_are_labels_and_with_the_setting_weights() -> None:
    world = World(SERVICE, *ZONES, *pods("a", "b", "c"))
    world.apply(part({**A, "zone": "z1"}, {**B, "zone": "z2"}, {"ip": "10.1.0.3", "pod": "c"}))
    found = [(dict(one.labels), one.zone) for one in endpoints(world, node="n1").values()]
    assert [(labels["zone"], labels["zone_locality"], zone) for labels, zone in found] == [
        ("z1", "local", "z1"), ("z2", "remote", "z2"), ("", "unknown", ""),
    ]  # fmt: skip
    assert {one.weight for one in endpoints(world, node="n1").values()} == {1}
    weighted = World(SERVICE, *ZONES, *pods("a", "b"), zone_weights=True)
    weighted.apply(part({**A, "zone": "z1"}, {**B, "zone": "z2"}))
    assert [one.weight for one in endpoints(weighted, node="n1").values()] == [10, 1]
    assert [one.weight for one in endpoints(weighted).values()] == [1, 1]


# ------------------------------------------------------------------------------ families


def dual(*, ipv6: bool) -> World:
    world = World(
        SERVICE, *ZONES, {"pod": "shop/a", "ips": ["10.1.0.1", "2001:db8::a"]},
        {"pod": "shop/b", "ip": "2001:db8::b"}, {"ew": "shop/vm"}, {"ew": "shop/vm6"},
        ipv6=ipv6,
    )  # fmt: skip
    world.apply(part(A, {"ip": "198.51.100.1", "ew": "vm"}, {"ip": "192.0.2.1"}))
    six: list[Compact] = [
        {"ip": "2001:db8::a", "pod": "a"},
        {"ip": "2001:db8::b", "pod": "b"},
        {"ip": "2001:db8::c", "ew": "vm"},
        {"ip": "2001:db8::d", "ew": "vm6"},
        {"ip": "2001:db8::e"},
    ]
    world.apply(part(*six, name="cart-6", family="IPv6"))
    return world


def test_with_ipv6_each_is_dialled_by_ipv6_where_it_can() -> None:
    found = {one.address for one in endpoints(dual(ipv6=True)).values()}
    assert found == {"192.0.2.1", *(f"2001:db8::{end}" for end in "abcde")}


def test_without_ipv6_pods_have_none_of_it_and_workloads_in_need_only() -> None:
    found = {one.address for one in endpoints(dual(ipv6=False)).values()}
    assert found == {"10.1.0.1", "198.51.100.1", "192.0.2.1", "2001:db8::d", "2001:db8::e"}


def test_the_family_is_chosen_among_what_the_zone_leaves() -> None:
    world = World(SERVICE, *ZONES, {"pod": "shop/a", "ips": ["10.1.0.1", "2001:db8::a"]}, ipv6=True)
    world.apply(part({**A, "hints": ["z1"]}))
    world.apply(part({"ip": "2001:db8::a", "pod": "a", "hints": ["z2"]}, name="cart-6"))
    assert list(endpoints(world, node="n1")) == ["10.1.0.1:8080"]
    assert list(endpoints(world)) == ["2001:db8::a:8080"]


def test_of_two_addresses_that_slices_give_a_pod_its_own_counts() -> None:
    world = World(SERVICE, {"pod": "shop/a", "ip": "10.1.0.7"}, part(A))
    world.apply(part({"ip": "10.1.0.7", "pod": "a"}, name="cart-2"))
    assert list(endpoints(world)) == ["10.1.0.7:8080"]
    world.apply({"pod": "shop/a", "ip": "10.1.0.1"})
    assert list(endpoints(world)) == ["10.1.0.1:8080"]
    world.delete("slice shop/cart-2")
    assert list(endpoints(world)) == ["10.1.0.1:8080"]


def test_a_slice_that_outlives_its_pod_leaves_nothing_behind() -> None:
    world = World(SERVICE, *pods("a"), part(A))
    world.delete("pod shop/a")
    assert not endpoints(world)
    world.apply(*pods("a"))
    world.delete("pod shop/a", "slice shop/cart-1")
    assert not endpoints(world)


# -------------------------------------------------------------------------------- mirrors

IDENTITY = "mirror.linkerd.io/remote-gateway-identity"
NAME = "mirror.linkerd.io/remote-svc-fq-name"
CLUSTER = "mirror.linkerd.io/cluster-name"


def mirror(labels: Compact, annotations: Compact) -> World:
    bare = part({"ip": "203.0.113.5", "zone": "z1"}, labels=labels, annotations=annotations)
    return World(SERVICE, bare)


def test_a_bare_address_is_plain_and_has_no_zone() -> None:
    (found,) = endpoints(mirror({}, {})).values()
    assert (found.identity, found.authority, found.meshed) == (None, None, False)
    assert found.labels == (("zone_locality", "unknown"),)
    assert found.speaks is Speaks.UNKNOWN


def test_a_gateway_has_an_identity_and_leads_to_a_name() -> None:
    world = mirror({}, {IDENTITY: "gw.west", NAME: "cart.shop.svc.west"})
    (found,) = endpoints(world).values()
    assert found.identity == Dns("gw.west")
    assert (found.server_name, found.authority) == ("", "cart.shop.svc.west:8080")
    assert (found.speaks, found.meshed) == (Speaks.HTTP2, True)
    (odd,) = endpoints(mirror({}, {IDENTITY: "", NAME: "x"})).values()
    assert (odd.identity, odd.authority, odd.speaks) == (None, "x:8080", Speaks.UNKNOWN)


@pytest.mark.parametrize(
    ("labels", "annotations", "more"),
    [
        ({}, {NAME: "cart.shop.svc.west"}, {}),
        ({CLUSTER: "west"}, {}, {"target_cluster": "west"}),
        ({CLUSTER: "west"}, {NAME: "cart"}, {"target_cluster": "west"}),
        (
            {CLUSTER: "west"},
            {NAME: "cart.far.svc.west"},
            {
                "target_cluster": "west",
                "target_service": "cart",
                "target_service_namespace": "far",
            },
        ),
    ],
)
def test_what_a_mirror_stands_for_is_told(
    labels: Compact, annotations: Compact, more: dict[str, str]
) -> None:
    (found,) = sets(mirror(labels, annotations))
    assert dict(found.labels) == {"service": "cart", "namespace": "shop", **more}


def test_a_pod_is_not_a_gateway() -> None:
    world = World(SERVICE, *pods("a"), part(A, annotations={IDENTITY: "gw", NAME: "x.y"}))
    (found,) = endpoints(world).values()
    assert (found.identity, found.authority) == (None, None)


# ------------------------------------------------------------------------------ federated


def federated() -> World:
    notes = {
        "multicluster.linkerd.io/local-discovery": "till",
        "multicluster.linkerd.io/remote-discovery": "till@east",
    }
    world = World({**SERVICE, "annotations": notes}, {"svc": "shop/till", "ports": [8080]})
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    world.apply(*pods("a"), {"slice": "shop/t", "svc": "till", "ports": [8080], "eps": [A]})
    world.apply({"in": "east", "svc": "shop/till", "ports": [{"port": 8080, "name": "web"}]})
    world.apply({"in": "east", "pod": "shop/e", "ip": "10.2.0.1", "meshed": True})
    ports = [{"port": 9000, "name": "web"}]
    eps = [{"ip": "10.2.0.1", "pod": "e"}]
    world.apply({"in": "east", "slice": "shop/t", "svc": "till", "ports": ports, "eps": eps})
    return world


def test_a_federated_service_is_the_union_of_its_members() -> None:
    world = federated()
    here, there = sets(world)
    assert here.labels == there.labels == (("namespace", "shop"), ("service", "till"))
    assert list(endpoints(world)) == ["10.1.0.1:8080", "10.2.0.1:9000"]
    assert there.endpoints[0].server_name.endswith(".isthmus.east.test")
    assert dict(there.endpoints[0].labels)["pod"] == "e"


def test_an_address_of_two_members_stays_until_the_last_of_them_leaves() -> None:
    world = federated()
    world.apply({"in": "east", "svc": "shop/till", "ports": [8080]})
    shared = {"in": "east", "slice": "shop/t", "svc": "till", "ports": [8080]}
    world.apply({**shared, "eps": [{"ip": "10.1.0.1"}]})
    assert list(endpoints(world)) == ["10.1.0.1:8080"]
    assert dict(endpoints(world)["10.1.0.1:8080"].labels)["pod"] == "a"
    world.delete("slice shop/t")
    assert list(endpoints(world)) == ["10.1.0.1:8080"]
    world.delete("east: slice shop/t")
    assert sets(world) == (EndpointSet(state=SetState.EMPTY),)


def test_a_member_that_is_not_there_has_no_endpoints() -> None:
    world = federated()
    world.delete("east: svc shop/till")
    assert list(endpoints(world)) == ["10.1.0.1:8080"]
