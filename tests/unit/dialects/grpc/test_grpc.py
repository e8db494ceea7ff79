from __future__ import annotations

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2
from google.protobuf.message import Message

from isthmus.dialects.grpc import Asker, GrpcDialect, asker, faults, inbound_faults
from isthmus.dialects.grpc.servers import TEMPLATE, listens
from isthmus.dialects.grpc.tls import PROVIDER
from isthmus.ir.proxy import InboundName, OutboundName
from isthmus.mesh.outbound import parent_ref
from isthmus.model.key import ObjectKey
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.meshworld import DOMAIN, LOCAL, TRUST, World

KEY = f"p80.cart.shop.here.internal.{TRUST}"
ME = Asker(pod("shop/me"))
TYPES: dict[str, type[Message]] = {
    CLUSTER: cluster_pb2.Cluster,
    ENDPOINTS: endpoint_pb2.ClusterLoadAssignment,
    LISTENER: listener_pb2.Listener,
    ROUTES: route_pb2.RouteConfiguration,
}


def cart(*objects: Compact, **said: object) -> World:
    service: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", **said}
    me: Compact = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy"}
    return World({"ns": "shop"}, {"ports": [80], **service}, me, *objects)


def find(world: World, type_url: str, name: str) -> Message | None:
    cell = GrpcDialect().resource_query(ME, type_url, name)
    found = world.db.read(*cell) if cell is not None else None
    if found is None:
        return None
    assert found.name == name
    return TYPES[type_url].FromString(found.value)


@pytest.mark.parametrize(
    "authority",
    ["cart.shop:80", "cart.shop", f"cart.shop.svc.{DOMAIN}:80", f"cart.shop.svc.{DOMAIN}"],
)
def test_a_client_may_call_a_service_by_any_of_its_names(authority: str) -> None:
    wire = find(cart(), LISTENER, authority)
    assert isinstance(wire, listener_pb2.Listener)
    manager = hcm.HttpConnectionManager()
    assert wire.api_listener.api_listener.Unpack(manager)
    assert manager.rds.route_config_name == authority
    routes = find(cart(), ROUTES, authority)
    assert isinstance(routes, route_pb2.RouteConfiguration)
    (route,) = routes.virtual_hosts[0].routes
    assert route.route.cluster == KEY
    assert not route.match.HasField("grpc")


@pytest.mark.parametrize(
    "authority",
    ["", "cart", "cart.shop:81", "till.shop:80", "cart.shop:x", "10.1.0.1:80", "a.b.c:80"],
)
def test_other_names_are_nobodys(authority: str) -> None:
    assert find(cart(), LISTENER, authority) is None
    assert find(cart(), ROUTES, authority) is None


def test_an_opaque_port_cannot_be_called() -> None:
    assert find(cart(opaque="80"), LISTENER, "cart.shop:80") is None


def test_every_locality_has_a_name_and_a_weight() -> None:
    eps = [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}, {"ip": "10.1.0.3"}]
    world = cart({"slice": "shop/c", "svc": "cart", "ports": [80], "eps": eps})
    wire = find(world, ENDPOINTS, KEY)
    assert isinstance(wire, endpoint_pb2.ClusterLoadAssignment)
    (locality,) = wire.endpoints
    assert locality.locality.zone == "unknown"
    assert locality.load_balancing_weight.value == 3
    assert len(locality.lb_endpoints) == 3


def test_a_cluster_is_plaintext_and_for_declared_ports() -> None:
    wire = find(cart(), CLUSTER, KEY)
    assert isinstance(wire, cluster_pb2.Cluster)
    assert wire.type == cluster_pb2.Cluster.EDS
    assert not wire.HasField("transport_socket")
    assert find(cart(), CLUSTER, KEY.replace("p80", "p81")) is None
    assert find(cart(), CLUSTER, f"tcp~{KEY}") is None


def behind(*proxies: str, **said: object) -> World:
    """A Service of pods with these proxies; "" for one without."""
    pods: list[Compact] = [
        {"pod": f"shop/p{at}", "ip": f"10.1.0.{at}", "sa": f"a{at}"}
        | ({"meshed": True, "proxy": proxy} if proxy else {})
        for at, proxy in enumerate(proxies)
    ]
    eps = [{"ip": f"10.1.0.{at}", "pod": f"p{at}"} for at in range(len(proxies))]
    return cart(*pods, {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": eps}, **said)


def test_what_is_all_behind_our_own_sidecars_is_called_by_mesh_tls() -> None:
    wire = find(behind("envoy", "envoy"), CLUSTER, KEY)
    assert isinstance(wire, cluster_pb2.Cluster)
    context = tls_pb2.UpstreamTlsContext()
    assert wire.transport_socket.typed_config.Unpack(context)
    assert context.sni == KEY
    common = context.common_tls_context
    assert common.tls_certificate_provider_instance.instance_name == PROVIDER
    trusted = common.validation_context
    assert trusted.ca_certificate_provider_instance.instance_name == PROVIDER
    assert [each.exact for each in trusted.match_subject_alt_names] == [
        f"a{at}.shop.serviceaccount.identity.isthmus.{TRUST}" for at in range(2)
    ]


@pytest.mark.parametrize("proxies", [("envoy", ""), ("envoy", "linkerd"), ("",), ()])
def test_where_not_all_are_calls_are_plaintext(proxies: tuple[str, ...]) -> None:
    wire = find(behind(*proxies), CLUSTER, KEY)
    assert isinstance(wire, cluster_pb2.Cluster)
    assert not wire.HasField("transport_socket")


def test_what_a_sidecar_wraps_by_itself_is_not_wrapped_twice() -> None:
    wire = find(behind("envoy", ip="None"), CLUSTER, KEY)
    assert isinstance(wire, cluster_pb2.Cluster)
    assert not wire.HasField("transport_socket")


def test_limits_are_told() -> None:
    notes = {"timeout.linkerd.io/request": "3s"}
    wire = find(cart(annotations=notes), ROUTES, "cart.shop:80")
    assert isinstance(wire, route_pb2.RouteConfiguration)
    (route,) = wire.virtual_hosts[0].routes
    assert route.route.max_stream_duration.max_stream_duration.ToMilliseconds() == 3_000


# -------------------------------------------------------------------------- linked clusters

SHARE = "multicluster.isthmus.dev/member."
FEDERATED = {"multicluster.linkerd.io/remote-discovery": "cart@east,cart@west"}


def linked(**shares: str) -> World:
    notes = FEDERATED | {f"{SHARE}{name}": said for name, said in shares.items()}
    east: dict[str, object] = {"in": "east"}
    return cart(
        {"link": "east", "trust": "east.test", "domain": "x"},
        {"link": "west", "trust": "west.test", "domain": "x"},
        {"svc": "shop/cart", "ports": [80], **east},
        {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": [{"ip": "10.2.0.1"}], **east},
        annotations=notes,
        ports=[{"port": 80, "app": "grpc"}],
    )


def test_endpoints_of_linked_clusters_are_places_of_their_own() -> None:
    wire = find(linked(), ENDPOINTS, KEY)
    assert isinstance(wire, endpoint_pb2.ClusterLoadAssignment)
    (locality,) = wire.endpoints
    assert (locality.locality.region, locality.locality.zone) == ("east", "unknown")


def test_members_with_shares_are_clusters_that_fall_back_to_others() -> None:
    world = linked(east="weight=3", west="weight=1")
    routes = find(world, ROUTES, "cart.shop:80")
    assert isinstance(routes, route_pb2.RouteConfiguration)
    weights = routes.virtual_hosts[0].routes[0].route.weighted_clusters.clusters
    assert [one.weight.value for one in weights] == [3, 1]
    members = [f"member-east.{KEY}", f"member-west.{KEY}"]
    assert weights[0].name == "|".join(("failover", *members))
    wire = find(world, CLUSTER, weights[0].name)
    assert isinstance(wire, cluster_pb2.Cluster)
    assert wire.lb_policy == cluster_pb2.Cluster.ROUND_ROBIN  # gRPC refuses any other word
    config = aggregate.ClusterConfig()
    assert wire.cluster_type.typed_config.Unpack(config)
    assert list(config.clusters) == members
    east = find(world, ENDPOINTS, members[0])
    assert isinstance(east, endpoint_pb2.ClusterLoadAssignment)
    assert len(east.endpoints) == 1
    assert find(world, CLUSTER, f"failover|{KEY}|x") is None
    assert find(world, CLUSTER, f"other|{KEY}") is None


def test_a_gateway_is_out_of_reach_and_that_is_told() -> None:
    world = cart(
        labels={
            "mirror.linkerd.io/mirrored-service": "true",
            "mirror.linkerd.io/cluster-name": "east",
        },
        annotations={"mirror.linkerd.io/remote-svc-fq-name": "till.shop.svc.x"},
    )
    world.apply({"link": "east", "trust": "east.test", "domain": "x"})
    name = OutboundName(parent_ref(ObjectKey(LOCAL, "shop", "cart")), 80, "")
    told = [one.feature for one in world.db.read(faults, name)]
    assert "GatewayProtocol" in told


# ---------------------------------------------------------------------------------- servers


def server(*objects: Compact, **said: object) -> hcm.HttpConnectionManager:
    me = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}, **said}
    world = World(me, *objects)
    wire = find(world, LISTENER, f"{TEMPLATE}0.0.0.0:8080")
    assert isinstance(wire, listener_pb2.Listener)
    assert wire.address.socket_address.port_value == 8080
    manager = hcm.HttpConnectionManager()
    assert wire.filter_chains[0].filters[0].typed_config.Unpack(manager)
    strict = "config.isthmus.dev/inbound-tls" in str(said)
    assert wire.filter_chains[0].HasField("transport_socket") is strict
    return manager


def test_a_server_is_told_who_may_call() -> None:
    assert [each.name for each in server().http_filters] == ["envoy.filters.http.router"]
    notes = {"config.linkerd.io/default-inbound-policy": "deny"}
    filters = [each.name for each in server(annotations=notes).http_filters]
    assert filters == ["envoy.filters.http.rbac", "envoy.filters.http.router"]
    (host,) = server().route_config.virtual_hosts
    assert host.routes[0].HasField("non_forwarding_action")


RPC: Compact = {"server": "shop/rpc", "pods": {"app": "me"}, "port": 8080, "protocol": "gRPC"}
WEB: Compact = {"server": "shop/web", "pods": {"app": "me"}, "port": 8080}
FORBIDDEN: dict[str, object] = {
    "type": "ExtensionRef",
    "extensionRef": {"group": "g", "kind": "K", "name": "n"},
}


def judged(manager: hcm.HttpConnectionManager) -> dict[str, list[str] | None]:
    """By path, the names of the policies; None where nothing is asked."""
    found: dict[str, list[str] | None] = {}
    for host in manager.route_config.virtual_hosts:
        for each in host.routes:
            rules = http_rbac.RBACPerRoute()
            assert each.typed_per_filter_config["envoy.filters.http.rbac"].Unpack(rules)
            match = each.match
            assert not match.HasField("grpc")
            path = match.path or match.prefix or match.safe_regex.regex
            asked = sorted(rules.rbac.rules.policies)
            found[path] = asked if rules.rbac.HasField("rules") else None
    return found


def test_calls_are_judged_by_their_routes() -> None:
    def rule(method: str, *filters: dict[str, object]) -> dict[str, object]:
        match = {"method": {"service": "shop.Till", "method": method}}
        return {"matches": [match], "filters": list(filters)}

    manager = server(
        RPC,
        {"gr": "shop/pay", "for": "rpc", "rules": [rule("Pay"), rule("Odd", FORBIDDEN)]},
        {"gr": "shop/look", "for": "rpc", "rules": [rule("Look")]},
        {"az": "shop/pay", "for": ["GRPCRoute", "pay"], "needs": ["ServiceAccount face"]},
        {"az": "shop/look", "for": ["GRPCRoute", "look"]},
    )
    assert [each.name for each in manager.http_filters] == [
        "envoy.filters.http.rbac",
        "envoy.filters.http.router",
    ]
    assert judged(manager) == {
        "/shop.Till/Pay": ["authorizationpolicy/shop/pay", "default/localhost"],
        "/shop.Till/Odd": [],
        "/shop.Till/Look": None,
    }


def test_paths_of_http_routes_are_those_of_calls() -> None:
    def rule(path: str, **said: object) -> dict[str, object]:
        return {"matches": [{"path": {"type": "PathPrefix", "value": path}, **said}]}

    query = [{"name": "q", "value": "1"}]
    manager = server(
        {**WEB, "access": "all-unauthenticated"},
        {"hr": "shop/r", "for": "web", "rules": [
            rule("/"), rule("/shop.Till"), rule("/get", method="GET"),
            rule("/post", method="POST"), rule("/query", queryParams=query),
        ]},
    )  # fmt: skip
    assert judged(manager) == {
        r"/shop\.Till(?:/.*)?": None, r"/post(?:/.*)?": None, "/": None,
    }  # fmt: skip


def test_a_strict_server_speaks_mesh_tls() -> None:
    server(annotations={"config.isthmus.dev/inbound-tls": "strict"})


@pytest.mark.parametrize(
    ("name", "where"),
    [
        (f"{TEMPLATE}0.0.0.0:8080", ("0.0.0.0", 8080)),
        (f"{TEMPLATE}[::]:8080", ("::", 8080)),
        (f"{TEMPLATE}:8080", None),
        (f"{TEMPLATE}0.0.0.0:0", None),
        ("0.0.0.0:8080", None),
    ],
)
def test_where_a_server_listens(name: str, where: tuple[str, int] | None) -> None:
    assert listens(name) == where


# ----------------------------------------------------------------------------------- faults


def test_what_a_server_does_not_do() -> None:
    world = World(
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}},
        WEB,
        {"limit": "shop/lim", "for": "web", "total": 5},
        {"hr": "shop/r", "for": "web", "rules": [{"filters": [FORBIDDEN]}]},
    )
    found = world.db.read(inbound_faults, InboundName(ME.workload, 8080))
    assert [each.feature for each in found] == ["rate limits", "filters"]


def features(world: World) -> list[str]:
    name = OutboundName(parent_ref(ObjectKey(LOCAL, "shop", "cart")), 80, "")
    return [each.feature for each in world.db.read(faults, name)]


def test_what_grpc_cannot_be_told() -> None:
    assert features(cart()) == []
    assert features(cart(opaque="80")) == ["ports that are no HTTP"]
    notes = {
        "retry.linkerd.io/http": "5xx",
        "timeout.linkerd.io/idle": "1s",
        "balancer.linkerd.io/failure-accrual": "consecutive",
    }
    assert features(cart(annotations=notes)) == [
        "timeouts of silence and of one attempt",
        "retries by HTTP status",
        "failure accrual",
    ]
    assert features(behind("envoy")) == []
    assert features(behind("linkerd")) == features(behind("envoy", "")) == ["mesh TLS"]


def test_an_asker_is_a_workload_and_its_node() -> None:
    assert cart().db.read(asker, pod("shop/me")) == ME


def test_routes_of_a_clients_own_namespace_are_its_own() -> None:
    own: Compact = {"route": "shop/r", "service": "bank", "of": "pay", "backends": [["cart", 80]]}
    bank: Compact = {"svc": "pay/bank", "ip": "10.96.0.20", "ports": [80]}
    wire = find(cart(bank, own), ROUTES, "bank.pay:80")
    assert isinstance(wire, route_pb2.RouteConfiguration)
    assert wire.virtual_hosts[0].routes[0].route.cluster == KEY
