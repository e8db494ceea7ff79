from __future__ import annotations

import pytest
from envoy.config.core.v3 import health_check_pb2 as health
from envoy.config.endpoint.v3 import endpoint_components_pb2 as component
from envoy.config.endpoint.v3 import endpoint_pb2 as pb

from isthmus.dialects.envoy.endpoints import assignment
from isthmus.proto.xds import ENDPOINTS
from tests.support.compact import Compact
from tests.support.meshworld import TRUST, World

KEY = f"p80.cart.shop.here.internal.{TRUST}"
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]}
A: Compact = {"ip": "10.1.0.1", "pod": "a"}
B: Compact = {"ip": "10.1.0.2", "pod": "b"}


def pod(name: str, at: int, **said: object) -> Compact:
    return {"pod": f"shop/{name}", "ip": f"10.1.0.{at}", "sa": name, **said}


def ours(name: str, at: int, **said: object) -> Compact:
    return pod(name, at, meshed=True, proxy="envoy", **said)


def part(*eps: Compact, **said: object) -> Compact:
    return {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": eps, **said}


def told(world: World, key: str = KEY, node: str = "") -> pb.ClusterLoadAssignment:
    found = world.db.read(assignment, key, node)
    assert found is not None
    wire = pb.ClusterLoadAssignment.FromString(found.value)
    assert wire.cluster_name == found.name == key
    return wire


def endpoints(wire: pb.ClusterLoadAssignment) -> dict[str, component.LbEndpoint]:
    listed = [one for some in wire.endpoints for one in some.lb_endpoints]
    return {one.endpoint.address.socket_address.address: one for one in listed}


def mode(one: component.LbEndpoint) -> str:
    said = one.metadata.filter_metadata["envoy.transport_socket_match"]
    return str(said["mode"]) if "mode" in said else ""


def test_what_is_joined_from_parts_is_what_would_be_built_whole() -> None:
    world = World(SERVICE, ours("a", 1), part({**A, "zone": "east"}))
    found = world.db.read(assignment, KEY, "")
    assert found is not None
    wire = told(world)
    assert wire.SerializeToString(deterministic=True) == found.value
    assert wire.DESCRIPTOR.full_name == ENDPOINTS.partition("/")[2]


def test_a_service_without_endpoints_has_an_empty_assignment() -> None:
    assert endpoints(told(World(SERVICE))) == {}
    assert told(World(SERVICE)).policy.overprovisioning_factor.value == 100_000


def test_endpoints_stand_by_zone() -> None:
    world = World(
        SERVICE, pod("a", 1), pod("b", 2), part({**A, "zone": "west"}, {**B, "zone": "east"})
    )
    assert [each.locality.zone for each in told(world).endpoints] == ["east", "west"]


@pytest.mark.parametrize(
    ("who", "how", "host"),
    [
        (ours("a", 1), "mesh", ""),
        (pod("a", 1, meshed=True), "linkerd", f"a.shop.serviceaccount.identity.isthmus.{TRUST}"),
        (pod("a", 1, meshed=True, opaque="80"), "", ""),
        (pod("a", 1), "", ""),
        (ours("a", 1, skip="80"), "", ""),
        (pod("a", 1, meshed="elsewhere"), "", ""),
    ],
)
@pytest.mark.parametrize("transport_header", [False, True])
def test_each_endpoint_says_how_it_is_reached(
    who: Compact, how: str, host: str, transport_header: bool
) -> None:
    world = World(SERVICE, who, part(A), transport_header=transport_header)
    one = endpoints(told(world))["10.1.0.1"]
    assert (mode(one), one.endpoint.hostname) == (how, host)
    assert one.endpoint.address.socket_address.port_value == 80


def test_the_plain_variant_reaches_everybody_plainly() -> None:
    world = World(SERVICE, ours("a", 1), part(A))
    assert mode(endpoints(told(world, f"plain~{KEY}"))["10.1.0.1"]) == ""


def test_who_is_leaving_takes_nothing_new() -> None:
    leaving = {"ready": False, "serving": True, "terminating": True}
    world = World(SERVICE, ours("a", 1), ours("b", 2), part(A, {**B, **leaving}))
    found = {ip: one.health_status for ip, one in endpoints(told(world)).items()}
    assert found == {"10.1.0.1": health.HEALTHY, "10.1.0.2": health.DRAINING}
    world.apply(part(A, {**B, "ready": False}))
    assert list(endpoints(told(world))) == ["10.1.0.1"]
    world.apply(part(A, {**B, **leaving, "serving": False}))
    assert list(endpoints(told(world))) == ["10.1.0.1"]


def test_who_is_ready_in_one_slice_is_not_leaving_in_another() -> None:
    leaving = {"ready": False, "serving": True, "terminating": True}
    other = {**part({**A, **leaving}), "slice": "shop/cart-0"}
    found = endpoints(told(World(SERVICE, ours("a", 1), part(A), other)))
    assert found["10.1.0.1"].health_status == health.HEALTHY


def test_a_gateway_that_wants_to_be_told_a_name_is_left_out() -> None:
    notes = {
        "mirror.linkerd.io/remote-gateway-identity": "gw.west",
        "mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.west",
    }
    world = World(SERVICE, part({"ip": "192.0.2.1"}, annotations=notes))
    assert endpoints(told(world)) == {}
    world.apply(part({"ip": "192.0.2.1"}))
    assert list(endpoints(told(world))) == ["192.0.2.1"]


def test_all_that_see_the_same_share_the_bytes() -> None:
    world = World(SERVICE, ours("a", 1), part(A))
    one, other = (world.db.read(assignment, KEY, node) for node in ("n1", "n2"))
    assert one is other


def test_a_service_that_keeps_to_the_node_is_seen_differently() -> None:
    world = World({**SERVICE, "local": True}, ours("a", 1, node="n1"), part(A))
    assert list(endpoints(told(world, node="n1"))) == ["10.1.0.1"]
    assert list(endpoints(told(world, node="n2"))) == []


def test_only_targets_have_assignments() -> None:
    world = World(SERVICE)
    for key in ("app", KEY.replace("p80", "p81"), f"odd~{KEY}", "p80.cart.shop.here.internal.td"):
        assert world.db.read(assignment, key, "") is None
