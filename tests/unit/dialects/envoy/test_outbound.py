from __future__ import annotations

import pytest
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.extensions.filters.network.set_filter_state.v3 import set_filter_state_pb2 as state
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2 as tcp
from google.protobuf.message import Message

from isthmus.ir.names import Origin
from isthmus.proto.xds import LISTENER, ROUTES
from tests.support.compact import Compact
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import TRUST, World

KEY = f"p80.cart.shop.here.internal.{TRUST}"
ME: Compact = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
Kinds = (hcm.HttpConnectionManager, tcp.TcpProxy, state.Config)


def sidecar(*objects: Compact, **settings: object) -> Sidecar:
    return Sidecar(World({"ns": "shop"}, ME, *objects, **settings), pod("shop/me"))


def cart(**said: object) -> Compact:
    return {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80], **said}


def filters(chain: component.FilterChain) -> list[Message]:
    found: list[Message] = []
    for each in chain.filters:
        for kind in Kinds:
            wire = kind()
            if each.typed_config.Unpack(wire):
                found.append(wire)
    assert len(found) == len(chain.filters)
    return found


def manager(chain: component.FilterChain) -> hcm.HttpConnectionManager:
    (found,) = filters(chain)
    assert isinstance(found, hcm.HttpConnectionManager)
    return found


def carried(chain: component.FilterChain) -> str:
    last = filters(chain)[-1]
    assert isinstance(last, tcp.TcpProxy)
    return last.cluster


def listener(said: Sidecar, name: str = "svc|shop/cart:80") -> pb.Listener:
    return said.listener(name)


def test_a_service_has_a_listener_that_binds_nothing() -> None:
    wire = listener(sidecar(cart(ips=["10.96.0.10", "fd00:0::10"])))
    assert not wire.bind_to_port.value
    assert wire.HasField("bind_to_port")
    assert wire.address.socket_address.address == "10.96.0.10"
    (more,) = wire.additional_addresses
    assert more.address.socket_address.address == "fd00::10"


def test_a_port_that_nobody_declared_is_looked_at_and_has_both_chains() -> None:
    wire = listener(sidecar(cart()))
    assert [each.name for each in wire.listener_filters] == [
        "envoy.filters.listener.http_inspector"
    ]
    assert wire.listener_filters_timeout.ToMilliseconds() == 10_000
    assert wire.continue_on_listener_filters_timeout
    (http,) = wire.filter_chains
    assert "h2c" in http.filter_chain_match.application_protocols
    assert manager(http).rds.route_config_name == "svc|shop/cart:80"
    told, _ = filters(wire.default_filter_chain)
    assert isinstance(told, state.Config)
    assert told.on_new_connection[0].object_key == "envoy.network.application_protocols"
    assert carried(wire.default_filter_chain) == KEY


@pytest.mark.parametrize(
    ("app", "codec"),
    [("http", "HTTP1"), ("kubernetes.io/h2c", "HTTP2"), ("grpc", "HTTP2")],
)
def test_a_declared_port_waits_for_nothing(app: str, codec: str) -> None:
    wire = listener(sidecar(cart(ports=[{"port": 80, "app": app}])))
    assert not wire.listener_filters
    (chain,) = wire.filter_chains
    assert hcm.HttpConnectionManager.CodecType.Name(manager(chain).codec_type) == codec
    assert not wire.HasField("default_filter_chain")


def test_an_opaque_port_is_bytes_and_has_no_routes() -> None:
    said = sidecar(cart(opaque="80"))
    wire = listener(said)
    assert not wire.listener_filters
    assert not wire.filter_chains
    assert carried(wire.default_filter_chain) == KEY
    assert "svc|shop/cart:80" not in said.names(ROUTES)
    assert said.find(ROUTES, "svc|shop/cart:80") is None


def test_bytes_to_linkerd_proxies_have_a_cluster_of_their_own() -> None:
    said = sidecar(
        cart(),
        {"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "sa": "a"},
        {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": [{"ip": "10.1.0.1", "pod": "a"}]},
    )
    wire = listener(said)
    assert carried(wire.default_filter_chain) == f"tcp~{KEY}"
    assert len(wire.default_filter_chain.filters) == 1
    assert f"tcp~{KEY}" in said.names("type.googleapis.com/envoy.config.cluster.v3.Cluster")


def test_the_way_out_hides_the_proxy_and_normalises_paths() -> None:
    (chain,) = listener(sidecar(cart(ports=[{"port": 80, "app": "http"}]))).filter_chains
    found = manager(chain)
    assert found.normalize_path.value
    assert found.merge_slashes
    assert found.path_with_escaped_slashes_action == hcm.HttpConnectionManager.REJECT_REQUEST
    assert not found.generate_request_id.value
    assert found.skip_xff_append
    assert [each.upgrade_type for each in found.upgrade_configs] == ["websocket"]
    assert found.stream_idle_timeout.ToMilliseconds() == 0


# ------------------------------------------------------------------ endpoints by their addresses

HEADLESS: Compact = {"svc": "shop/db", "ip": "None", "ports": [80]}


def instance(**said: object) -> tuple[Compact, ...]:
    eps = [{"ip": "10.1.0.1", "pod": "a"}]
    return (
        HEADLESS,
        {"pod": "shop/a", "ip": "10.1.0.1", "sa": "db", **said},
        {"slice": "shop/db-1", "svc": "db", "ports": [80], "eps": eps},
    )


def test_an_endpoint_of_a_headless_service_is_dialled_by_its_identity() -> None:
    said = sidecar(*instance(meshed=True, proxy="envoy"))
    to = f"direct|db.shop.serviceaccount.identity.isthmus.{TRUST}"
    wire = listener(said, "ip|10.1.0.1|80")
    (chain,) = wire.filter_chains
    assert manager(chain).rds.route_config_name == to
    assert carried(wire.default_filter_chain) == to
    (route,) = said.routes(to).virtual_hosts[0].routes
    assert route.route.cluster == to
    assert [each.header.key for each in route.request_headers_to_add] == ["isthmus-protocol"]
    assert not any(name.startswith("svc|shop/db") for name in said.names(LISTENER))


def test_behind_linkerd_too_but_opaque_ports_there_are_dialled_as_they_are() -> None:
    said = sidecar(*instance(meshed=True))
    to = f"direct-linkerd|db.shop.serviceaccount.identity.isthmus.{TRUST}"
    assert carried(listener(said, "ip|10.1.0.1|80").default_filter_chain) == to
    opaque = sidecar(*instance(meshed=True, opaque="80"))
    assert not any(name.startswith("ip|") for name in opaque.names(LISTENER))


def test_opaque_ports_of_our_own_are_bytes() -> None:
    wire = listener(sidecar(*instance(meshed=True, proxy="envoy", opaque="80")), "ip|10.1.0.1|80")
    assert not wire.listener_filters
    assert not wire.filter_chains


def test_an_unmeshed_endpoint_is_like_any_unmeshed_address() -> None:
    said = sidecar(*instance())
    assert not any(name.startswith("ip|") for name in said.names(LISTENER))
    assert said.find(LISTENER, "ip|10.1.0.1|80") is None


# -------------------------------------------------------------------------------- everything


def test_the_listener_that_everything_is_redirected_to_looks_at_nothing() -> None:
    wire = listener(sidecar(), "outbound")
    assert wire.use_original_dst.value
    assert [each.name for each in wire.listener_filters] == ["envoy.filters.listener.original_dst"]
    assert wire.address.socket_address.port_value == 4140
    told, carry = filters(wire.default_filter_chain)
    assert isinstance(told, state.Config)
    assert isinstance(carry, tcp.TcpProxy)
    assert carry.cluster == "detect"


def chains(said: Sidecar) -> dict[str, component.FilterChain]:
    return {each.name: each for each in listener(said, "detect").filter_chains}


def test_addresses_of_services_never_pass() -> None:
    said = sidecar(cart(ip="172.20.0.1"), service_networks=("10.96.0.0/16",))
    found = chains(said)["refused"]
    ranges = [
        (each.address_prefix, each.prefix_len.value)
        for each in found.filter_chain_match.prefix_ranges
    ]
    assert ranges == [("10.96.0.0", 16), ("172.20.0.1", 32)]
    assert carried(found) == "refused"
    assert "refused" not in chains(sidecar())


def test_the_proxys_own_ports_are_refused() -> None:
    found = chains(sidecar())
    for port in (4140, 4143):
        one = found[f"own-{port}"]
        assert one.filter_chain_match.destination_port.value == port
        assert carried(one) == "refused"


def test_what_is_not_meshed_passes_as_it_is() -> None:
    said = sidecar()
    assert carried(listener(said, "detect").default_filter_chain) == "passthrough"
    found = manager(chains(said)["egress-fallback|http"]).route_config
    assert found.virtual_hosts[0].routes[0].route.cluster == "passthrough"


def test_an_endpoint_out_of_scope_is_refused() -> None:
    me: Compact = {**ME, "annotations": {"config.isthmus.dev/upstreams": "pay/*"}}
    said = sidecar(me, *instance(meshed=True, proxy="envoy"))
    assert carried(listener(said, "refuse|10.1.0.1|80").default_filter_chain) == "refused"
    assert not any(name.startswith("ip|") for name in said.names(LISTENER))


def test_an_endpoint_that_is_in_scope_by_one_service_is_not_refused_for_another() -> None:
    me: Compact = {**ME, "annotations": {"config.isthmus.dev/upstreams": "shop/db"}}
    eps = [{"ip": "10.1.0.1", "pod": "a"}]
    said = sidecar(
        me,
        *instance(meshed=True, proxy="envoy"),
        {"svc": "shop/other", "ip": "None", "ports": [80]},
        {"slice": "shop/other-1", "svc": "other", "ports": [80], "eps": eps},
    )
    names = [name for name in said.names(LISTENER) if "10.1.0.1" in name]
    assert names == ["ip|10.1.0.1|80"]


def test_routes_say_which_part_of_them_comes_from_whom() -> None:
    def parts(path: str) -> dict[str, str]:
        one = {"route": "shop/one", "service": "cart", "rules": [ruled("/one")]}
        two = {"route": "shop/two", "service": "cart", "rules": [ruled(path)]}
        found = sidecar(cart(), one, two).find(ROUTES, "svc|shop/cart:80")
        assert found is not None
        return {origin.ref.name: mark for origin, mark in found.parts if isinstance(origin, Origin)}

    before, after = parts("/two"), parts("/other")
    assert before.keys() == after.keys() == {"one", "two"}
    assert before["one"] == after["one"]
    assert before["two"] != after["two"]
    alone = sidecar(cart()).find(ROUTES, "svc|shop/cart:80")
    assert alone is not None
    assert [origin.ref.kind for origin, _ in alone.parts if isinstance(origin, Origin)] == [
        "Service"
    ]


def ruled(path: str) -> Compact:
    match = {"path": {"type": "PathPrefix", "value": path}}
    return {"matches": [match], "backendRefs": [{"name": "cart", "port": 80}]}
