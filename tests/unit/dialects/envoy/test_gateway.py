from __future__ import annotations

import pytest
from envoy.config.listener.v3 import listener_pb2 as pb

from isthmus.dialects.envoy import faults
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.outbound import parent_ref
from isthmus.model.key import ObjectKey
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from tests.support.compact import Compact
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import LOCAL, TRUST, World

ENABLED = {"config.linkerd.io/enable-gateway": "true"}
OURS = {"meshed": True, "proxy": "envoy", "sa": "cart"}
SNI = f"p80.cart.shop.here.internal.{TRUST}"
LABELS = {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "east"}
NAMED = {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.x"}
MIRROR: Compact = {
    "svc": "shop/cart-east", "ip": "10.96.0.9", "ports": [80],
    "labels": LABELS, "annotations": NAMED,
}  # fmt: skip


def gateway(*objects: Compact, **settings: object) -> Sidecar:
    me: Compact = {"pod": "mc/gate", "ip": "10.1.0.8", **OURS, "annotations": ENABLED}
    return Sidecar(World(me, *objects, **settings), pod("mc/gate"))


def cart(exported: str = "true", *ports: int) -> Compact:
    labels = {"mirror.linkerd.io/exported": exported}
    return {"svc": "shop/cart", "ip": "10.96.0.1", "ports": ports or (80,), "labels": labels}


def test_one_chain_for_each_name_and_nothing_for_others() -> None:
    said = gateway(cart("true", 80, 90))
    wire = said.listener("gateway")
    assert wire.address.socket_address.port_value == 4143
    assert [one.name.split(".")[0] for one in wire.filter_chains] == ["p80", "p90"]
    assert not wire.HasField("default_filter_chain")
    chain = wire.filter_chains[0]
    assert list(chain.filter_chain_match.server_names) == [SNI]
    assert chain.filter_chain_match.transport_protocol == "tls"
    assert not chain.HasField("transport_socket")  # whose TLS it is, it does not end here


def test_a_gateway_is_told_no_more_than_it_forwards() -> None:
    said = gateway(cart(), {"svc": "shop/till", "ip": "10.96.0.2", "ports": [80]})
    assert said.names(CLUSTER) == ("refused", f"sni~{SNI}")
    assert said.names(ENDPOINTS) == (f"sni~{SNI}",)
    assert said.names(LISTENER) == ("gateway",)
    assert said.names(ROUTES) == ()


def test_a_gateway_that_exports_nothing_refuses_everybody() -> None:
    wire = gateway(cart("false")).listener("gateway")
    assert not wire.filter_chains
    assert wire.HasField("default_filter_chain")


def test_a_name_that_comes_disturbs_no_connection_of_another() -> None:
    """A chain is drained when it changes; the rest of the listener must not."""
    before = gateway(cart("true", 80)).listener("gateway")
    after = gateway(cart("true", 80, 90)).listener("gateway")
    assert before.filter_chains[0] == after.filter_chains[0]
    for wire in (before, after):
        wire.ClearField("filter_chains")
    assert before == after


def test_both_families_come_in() -> None:
    wire: pb.Listener = gateway(cart(), ipv6=True).listener("gateway")
    assert wire.address.socket_address.address == "::"
    assert wire.address.socket_address.ipv4_compat


def test_only_our_own_sidecars_are_found_by_name() -> None:
    eps = [{"ip": "10.1.0.1", "pod": "a"}, {"ip": "10.1.0.2", "pod": "b"}, {"ip": "192.0.2.1"}]
    part: Compact = {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": eps}
    ours: Compact = {"pod": "shop/a", "ip": "10.1.0.1", **OURS}
    linkerd: Compact = {"pod": "shop/b", "ip": "10.1.0.2", "meshed": True, "sa": "b"}
    wire = gateway(cart(), part, ours, linkerd).endpoints(f"sni~{SNI}")
    found = [one.endpoint.address for some in wire.endpoints for one in some.lb_endpoints]
    assert [one.socket_address.address for one in found] == ["10.1.0.1"]


@pytest.mark.parametrize(
    ("pods", "features"),
    [
        ([], []),
        ([{"pod": "mc/gate", "annotations": ENABLED, **OURS}], []),
        ([{"pod": "mc/gate", "annotations": ENABLED, "meshed": True}], ["GatewayProtocol"]),
        ([{"pod": "shop/a", "ip": "10.1.0.1", **OURS}], []),
        ([{"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "sa": "a"}], ["GatewayProtocol"]),
    ],
)
def test_where_client_gateway_and_server_do_not_understand_each_other(
    pods: list[Compact], features: list[str]
) -> None:
    eps = [{"ip": "10.1.0.1", "pod": "a"}]
    east: list[Compact] = [
        {"svc": "shop/cart", "ports": [80]},
        {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": eps},
        *pods,
    ]
    link: Compact = {"link": "east", "trust": "east.test", "domain": "x"}
    world = World(MIRROR, link, *({**one, "in": "east"} for one in east))
    name = OutboundName(parent_ref(ObjectKey(LOCAL, "shop", "cart-east")), 80, "")
    assert [one.feature for one in world.db.read(faults, name)] == features
