"""What a node's Envoy is told: Services' addresses, and endpoints without mesh TLS."""

from __future__ import annotations

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2

from isthmus.dialects.envoy import NodeAsker, NodeDialect
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Resource
from tests.support.meshworld import LOCAL, World

NODE = NodeDialect()
ASKER = NodeAsker(LOCAL, "n1")
KEY = "plain~p80.cart.shop.here.internal.trust.mesh.test"
POD = {"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "cart"}
A = {"ip": "10.1.0.1", "pod": "a"}


def world() -> World:
    return World(
        {"ns": "shop"},
        {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]},
        {"svc": "shop/db", "ip": "None", "ports": [5432]},
        POD,
        {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": [A]},
        {"slice": "shop/db-1", "svc": "db", "ports": [5432], "eps": [A]},
    )


def names(held: World, type_url: str) -> tuple[str, ...]:
    view = held.db.read(*NODE.view_query(ASKER))
    return tuple(view.types[type_url])


def one(held: World, type_url: str, name: str) -> Resource | None:
    cell = NODE.resource_query(ASKER, type_url, name)
    found: Resource | None = held.db.read(*cell) if cell is not None else None
    return found


def value(held: World, type_url: str, name: str) -> bytes:
    found = one(held, type_url, name)
    assert found is not None
    assert found.name == name
    return found.value


def test_it_is_told_of_services_that_have_an_address() -> None:
    held = world()
    assert names(held, CLUSTER) == (KEY, "refused")
    assert names(held, ENDPOINTS) == (KEY,)
    assert names(held, LISTENER) == ("outbound", "svc|shop/cart:80")
    assert names(held, ROUTES) == ()


def test_every_name_leads_to_its_resource_and_sends_to_what_is_in_sight() -> None:
    held = world()
    for type_url in (CLUSTER, ENDPOINTS, LISTENER):
        for name in names(held, type_url):
            found = one(held, type_url, name)
            assert found is not None
            assert set(found.clusters or ()) <= set(names(held, CLUSTER))


def test_bytes_go_to_endpoints_as_they_are() -> None:
    held = world()
    cluster = cluster_pb2.Cluster.FromString(value(held, CLUSTER, KEY))
    assert not cluster.transport_socket_matches
    assigned = endpoint_pb2.ClusterLoadAssignment.FromString(value(held, ENDPOINTS, KEY))
    [only] = [each for some in assigned.endpoints for each in some.lb_endpoints]
    assert only.endpoint.address.socket_address.address == "10.1.0.1"
    assert not only.metadata.filter_metadata
    wire = listener_pb2.Listener.FromString(value(held, LISTENER, "svc|shop/cart:80"))
    assert not wire.listener_filters
    assert not wire.bind_to_port.value
    [carry] = wire.default_filter_chain.filters
    assert KEY.encode() in carry.typed_config.value


def test_what_no_service_is_behind_is_closed() -> None:
    wire = listener_pb2.Listener.FromString(value(world(), LISTENER, "outbound"))
    assert wire.use_original_dst.value
    assert wire.address.socket_address.port_value == 4140
    assert "refuse" in str(wire.default_filter_chain)
    assert not wire.filter_chains


def test_it_can_have_nothing_else() -> None:
    held = world()
    sidecars = [
        (CLUSTER, "p80.cart.shop.here.internal.trust.mesh.test"), (CLUSTER, "passthrough"),
        (ENDPOINTS, "p80.cart.shop.here.internal.trust.mesh.test"), (LISTENER, "inbound"),
        (LISTENER, "detect"), (LISTENER, "ip|10.1.0.1|5432"), (LISTENER, "svc|shop/none:80"),
        (LISTENER, "svc|shop/db:5432"), (ROUTES, "svc|shop/cart:80"), (CLUSTER, "x" * 3_000),
    ]  # fmt: skip
    for type_url, name in sidecars:
        assert one(held, type_url, name) is None, name
