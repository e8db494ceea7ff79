from __future__ import annotations

import pytest

from isthmus.mesh.asked import GetKey, Why
from isthmus.mesh.services import (
    LOCAL_MEMBER,
    REMOTE_CLUSTER,
    REMOTE_SERVICE,
    Absent,
    Federated,
    Local,
    PortState,
    Remote,
    SetKey,
    Topology,
    discovery,
    get_refusal,
    port_name,
    port_state,
)
from isthmus.mesh.sets import sets
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")
TILL = ObjectKey(LOCAL, "shop", "till")
EAST = ObjectKey("east", "shop", "cart")


def service(**said: object) -> dict[str, object]:
    return {"svc": "shop/cart", "ports": [8080], **said}


def seen(world: World, node: str = "") -> tuple[SetKey, ...]:
    return world.db.read(sets, GetKey(CART, 8080, "", node))


@pytest.mark.parametrize(
    ("labels", "annotations", "found"),
    [
        ({}, {}, Local()),
        ({REMOTE_SERVICE: "cart"}, {}, Local()),
        ({REMOTE_CLUSTER: "east", REMOTE_SERVICE: "cart"}, {}, Remote("east", EAST)),
        ({REMOTE_CLUSTER: "east"}, {}, Remote("east", None)),
        ({}, {LOCAL_MEMBER: " till "}, Federated((TILL,))),
        ({}, {LOCAL_MEMBER: ""}, Federated(())),
        ({}, {REMOTE_CLUSTER: ""}, Federated(())),
        (
            {},
            {REMOTE_CLUSTER: " cart @ east,cart,@east,cart@,cart@a@b,cart@east"},
            Federated((EAST,)),
        ),
        (
            {REMOTE_CLUSTER: "east", REMOTE_SERVICE: "cart"},
            {LOCAL_MEMBER: "till", REMOTE_CLUSTER: "cart@east"},
            Federated((TILL, EAST)),
        ),
    ],
)
def test_where_endpoints_are_found(
    labels: dict[str, str], annotations: dict[str, str], found: object
) -> None:
    world = World(service(labels=labels, annotations=annotations))
    assert world.db.read(discovery, CART) == found


def test_a_name_for_something_outside_has_no_endpoints() -> None:
    assert World().db.read(discovery, CART) == Absent()
    outside = World(service(type="ExternalName"))
    assert outside.db.read(discovery, CART) == Absent(external=True)
    assert seen(outside) == ()


def test_a_local_set_is_keyed_by_the_askers_zone_and_not_by_its_node() -> None:
    world = World(service(), {"node": "n1", "zone": "z1"}, {"node": "n2", "zone": "z1"})
    assert seen(world, "n1") == seen(world, "n2")
    assert seen(world, "n1") == (SetKey(CART, 8080, "", Topology.ZONE, "z1", ""),)
    assert seen(world, "unknown") == seen(world) == (SetKey(CART, 8080, "", Topology.ZONE, "", ""),)


def test_the_node_counts_where_the_service_keeps_to_it() -> None:
    world = World(service(local=True), {"node": "n1", "zone": "z1"})
    assert seen(world, "n1") == (SetKey(CART, 8080, "", Topology.NODE, "z1", "n1"),)


def test_members_elsewhere_are_seen_whole_and_unknown_clusters_are_skipped() -> None:
    notes = {LOCAL_MEMBER: "till", REMOTE_CLUSTER: "cart@east,cart@nowhere"}
    world = World(
        service(annotations=notes),
        {"node": "n1", "zone": "z1"},
        {"svc": "shop/till", "ports": [8080]},
        {"svc": "shop/cart", "in": "east", "ports": [8080]},
        {"svc": "shop/cart", "in": "nowhere", "ports": [8080]},
    )
    assert [each.service for each in seen(world, "n1")] == [TILL]
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    assert seen(world, "n1") == (
        SetKey(TILL, 8080, "", Topology.ZONE, "z1", ""),
        SetKey(EAST, 8080, "", Topology.NONE, "z1", ""),
    )
    world.link("east")
    assert [each.service for each in seen(world, "n1")] == [TILL]


def test_members_without_the_port_give_nothing_and_do_no_harm() -> None:
    notes = {LOCAL_MEMBER: "till", REMOTE_CLUSTER: "cart@east"}
    world = World(
        service(annotations=notes),
        {"svc": "shop/till", "ports": [80]},
        {"svc": "shop/cart", "in": "east", "ports": [8080]},
    )
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    assert [each.service for each in seen(world)] == [EAST]


def test_a_cluster_that_is_dead_is_not_sent_to() -> None:
    notes = {REMOTE_CLUSTER: "cart@east"}
    east = {"svc": "shop/cart", "in": "east", "ports": [8080]}
    link = {"link": "east", "trust": "east.test", "domain": "mesh.test"}
    world = World(service(annotations=notes), east, link)
    assert [each.service for each in seen(world)] == [EAST]
    world.apply({**link, "dead": True})
    assert seen(world) == ()


def test_what_a_linked_cluster_says_of_further_clusters_leads_nowhere() -> None:
    notes = {REMOTE_CLUSTER: "cart@west", LOCAL_MEMBER: "till"}
    world = World({"svc": "shop/cart", "in": "east", "ports": [8080], "annotations": notes})
    assert world.db.read(discovery, EAST) == Local()


def test_why_a_question_is_refused() -> None:
    world = World()

    def why() -> object:
        found = world.db.read(get_refusal, CART)
        return found and (found.why, found.text)

    assert why() == (Why.MISSING, "Service cart.shop not found")
    world.apply(service(type="ExternalName"))
    assert why() == (Why.EXTERNAL_NAME, "Service cart.shop is of type ExternalName")
    world.apply(service(labels={REMOTE_CLUSTER: "east"}))
    assert why() == (Why.NO_REMOTE_SERVICE, "Remote discovery service missing remote service")
    world.apply(service(labels={REMOTE_CLUSTER: "east", REMOTE_SERVICE: "cart"}))
    assert why() == (Why.NO_CLUSTER, "Remote cluster not found: east")
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    assert why() is None
    world.apply(service(annotations={REMOTE_CLUSTER: "cart@nowhere"}))
    assert why() is None


def test_ports() -> None:
    world = World()
    assert world.db.read(port_state, CART, 8080) is PortState.ABSENT
    world.apply(service(type="ExternalName"))
    assert world.db.read(port_state, CART, 8080) is PortState.ABSENT
    world.apply(service(ports=[{"port": 8080, "name": "web"}, {"port": 9090, "name": "adm"}]))
    assert world.db.read(port_state, CART, 9090) is PortState.DECLARED
    assert world.db.read(port_state, CART, 80) is PortState.UNDECLARED
    assert world.db.read(port_name, CART, 9090) == "adm"
    assert world.db.read(port_name, CART, 80) is None
    world.apply(service(ports=[8080]))
    assert world.db.read(port_name, CART, 8080) == ""


def test_of_a_number_that_tcp_and_udp_share_tcp_is_meant() -> None:
    world = World()
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    world.write("svc shop/cart", {"spec": {"ports": ports}})
    assert world.db.read(port_name, CART, 53) == "dns-tcp"
