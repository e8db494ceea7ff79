from __future__ import annotations

import pytest
from envoy.config.cluster.v3 import cluster_pb2 as pb
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate_pb
from envoy.extensions.load_balancing_policies.least_request.v3 import (
    least_request_pb2 as least_request,
)
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as http
from google.protobuf.message import Message

from isthmus.dialects.envoy.clusters import FIXED, HTTP_OPTIONS, of_target
from isthmus.dialects.envoy.tls import NOBODY
from isthmus.ir.names import Dns, Spiffe, TargetId
from isthmus.ir.target import Balance, Breaking, Ejection, Target, Via
from isthmus.proto.xds import CLUSTER
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import TRUST, World

CART = TargetId("here", "shop", "cart", 80)
KEY = f"p80.cart.shop.here.internal.{TRUST}"


def target(name: TargetId = CART, **said: object) -> Target:
    return Target(name, trust_domain=TRUST, **said)  # type: ignore[arg-type]  # its fields


def context(wire: pb.Cluster, mode: str) -> tls_pb2.UpstreamTlsContext:
    (socket,) = (one for one in wire.transport_socket_matches if one.name == mode)
    found = tls_pb2.UpstreamTlsContext()
    assert socket.transport_socket.typed_config.Unpack(found)
    return found


def expected(found: tls_pb2.UpstreamTlsContext) -> list[str]:
    common = found.common_tls_context.combined_validation_context.default_validation_context
    return [each.matcher.exact for each in common.match_typed_subject_alt_names]


def options(wire: pb.Cluster) -> http.HttpProtocolOptions:
    found = http.HttpProtocolOptions()
    assert wire.typed_extension_protocol_options[HTTP_OPTIONS].Unpack(found)
    return found


def sidecar(*objects: dict[str, object], **settings: object) -> Sidecar:
    me = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
    return Sidecar(World({"ns": "shop"}, me, *objects, **settings), pod("shop/me"))


def test_a_cluster_is_named_by_its_sni_and_variants_stand_before_it() -> None:
    assert of_target(target()).name == KEY
    raw = TargetId("here", "shop", "cart", 80, variant="tcp")
    assert of_target(target(raw)).name == f"tcp~{KEY}"
    assert context(of_target(target(raw)), "mesh").sni == KEY


def test_mesh_tls_is_1_3_with_the_hybrid_exchange_first_and_files_of_keys() -> None:
    found = context(of_target(target(peers=frozenset({Dns("a.b")}))), "mesh").common_tls_context
    low, high = (found.tls_params.tls_minimum_protocol_version,
                 found.tls_params.tls_maximum_protocol_version)  # fmt: skip
    assert low == high == found.tls_params.TLSv1_3
    assert found.tls_params.ecdh_curves[0] == "X25519MLKEM768"
    (secret,) = found.tls_certificate_sds_secret_configs
    files = secret.sds_config.path_config_source
    assert (files.path, files.watched_directory.path) == ("identity/default.yaml", "identity")
    trust = found.combined_validation_context.validation_context_sds_secret_config
    assert trust.sds_config.path_config_source.path == "identity/ROOTCA.yaml"


def test_sessions_are_kept_for_many_connections() -> None:
    assert context(of_target(target()), "mesh").max_session_keys.value >= 64


def test_exactly_the_peers_may_answer_and_without_any_nobody() -> None:
    peers = frozenset({Spiffe("td", ("vm",)), Dns("b.ns"), Dns("a.ns")})
    for mode in ("mesh", "linkerd"):
        assert expected(context(of_target(target(peers=peers)), mode)) == [
            "a.ns",
            "b.ns",
            "spiffe://td/vm",
        ]
        assert expected(context(of_target(target()), mode)) == [NOBODY]


def test_a_linkerd2_proxy_is_asked_for_its_own_name_and_offered_no_alpn() -> None:
    found = context(of_target(target()), "linkerd")
    assert (found.sni, found.auto_host_sni) == ("", True)
    assert not found.common_tls_context.alpn_protocols


@pytest.mark.parametrize(("variant", "alpn"), [("", "isthmus/http"), ("tcp", "isthmus/tcp")])
def test_what_is_inside_is_told_in_alpn(variant: str, alpn: str) -> None:
    name = TargetId("here", "shop", "cart", 80, variant=variant)
    found = context(of_target(target(name)), "mesh")
    assert list(found.common_tls_context.alpn_protocols) == [alpn]


def test_the_plain_variant_has_no_mesh_tls() -> None:
    wire = of_target(target(TargetId("here", "shop", "cart", 80, variant="plain"), http2=True))
    assert not wire.transport_socket_matches
    assert options(wire).HasField("use_downstream_protocol_config")


def test_our_own_sidecars_share_one_http2_connection() -> None:
    assert options(of_target(target(http2=True))).HasField("explicit_http_config")
    plain = options(of_target(target()))
    assert plain.HasField("use_downstream_protocol_config")
    assert plain.common_http_protocol_options.idle_timeout.seconds == 3


def test_nobody_unhealthy_is_sent_to_and_what_is_told_counts_at_once() -> None:
    common = of_target(target()).common_lb_config
    assert common.healthy_panic_threshold.value == 0
    assert common.HasField("update_merge_window")
    assert common.update_merge_window.ToMilliseconds() == 0


def test_there_are_no_limits_but_those_that_somebody_set() -> None:
    (limits,) = of_target(target(breaking=Breaking(requests=7))).circuit_breakers.thresholds
    assert limits.max_requests.value == 7
    assert limits.max_connections.value == 2**32 - 1
    assert limits.max_retries.value == 2**32 - 1


def test_endpoints_rest_after_failures_in_a_row() -> None:
    found = of_target(target(ejection=Ejection(3, 2_000, 1_000, 500, 50))).outlier_detection
    assert found.consecutive_5xx.value == 3
    assert found.base_ejection_time.ToMilliseconds() == 2_000
    assert found.max_ejection_time.ToMilliseconds() == 2_000
    assert found.max_ejection_time_jitter.ToMilliseconds() == 1_000
    assert found.max_ejection_percent.value == 50
    assert found.enforcing_success_rate.value == 0
    assert not of_target(target()).HasField("outlier_detection")


def test_who_says_nothing_any_more_in_another_cluster_is_found_out_and_rests() -> None:
    wire = of_target(target(remote=True, http2=True))
    found = wire.outlier_detection
    assert found.split_external_local_origin_errors
    assert found.consecutive_local_origin_failure.value == 3
    assert found.enforcing_consecutive_5xx.value == 0
    http2 = options(wire).explicit_http_config.http2_protocol_options
    alive = http2.connection_keepalive
    assert alive.interval.ToMilliseconds() + alive.timeout.ToMilliseconds() < 5_000
    assert http2.max_concurrent_streams.value == 3
    near = options(of_target(target(http2=True))).explicit_http_config.http2_protocol_options
    assert not near.HasField("max_concurrent_streams")


def test_failures_that_a_service_counts_are_counted_beside_silence() -> None:
    found = of_target(target(remote=True, ejection=Ejection(7, 1_000, 9_000, 500, 50)))
    assert found.outlier_detection.consecutive_5xx.value == 7
    assert not found.outlier_detection.HasField("enforcing_consecutive_5xx")
    assert found.outlier_detection.consecutive_local_origin_failure.value == 3


def test_of_endpoints_in_other_clusters_the_least_busy_of_all_is_taken() -> None:
    near, far = of_target(target()), of_target(target(remote=True))
    assert near.least_request_lb_config.choice_count.value == 4
    assert not near.HasField("load_balancing_policy")
    (policy,) = far.load_balancing_policy.policies
    said = least_request.LeastRequest()
    assert policy.typed_extension_config.typed_config.Unpack(said)
    assert said.selection_method == least_request.LeastRequest.FULL_SCAN
    hashed = of_target(target(remote=True, balance=Balance.RING_HASH))
    assert not hashed.HasField("load_balancing_policy")


def test_through_a_gateway_only_whoever_is_behind_it_is_believed() -> None:
    name = TargetId("east", "shop", "cart", 80, variant="gateway")
    said = {"server_name": "p80.cart.shop.own.internal.x", "via": Via.REMOTE_GATEWAY}
    wire = of_target(target(name, peers=frozenset({Dns("a.b")}), http2=True, **said))
    assert [one.name for one in wire.transport_socket_matches] == ["mesh"]
    found = context(wire, "mesh")
    assert found.sni == "p80.cart.shop.own.internal.x"
    assert expected(found) == ["a.b"]
    common = options(wire).common_http_protocol_options
    assert common.max_connection_duration.ToMilliseconds() == 2_000
    assert common.max_requests_per_connection.value == 100


def test_raw_bytes_pass_a_gateway_as_what_they_are() -> None:
    name = TargetId("east", "shop", "cart", 80, variant="gateway-tcp")
    wire = of_target(target(name, via=Via.REMOTE_GATEWAY))
    assert list(context(wire, "mesh").common_tls_context.alpn_protocols) == ["isthmus/tcp"]


def test_a_gateway_itself_terminates_nothing() -> None:
    wire = of_target(target(TargetId("here", "shop", "cart", 80, variant="sni"), http2=True))
    assert not wire.transport_socket_matches
    assert not wire.HasField("transport_socket")


def test_of_another_trust_domain_each_is_asked_for_by_its_own_name() -> None:
    found = context(of_target(target(foreign=True)), "foreign")
    assert (found.sni, found.auto_host_sni) == ("", True)
    assert list(found.common_tls_context.alpn_protocols) == ["isthmus/http"]


@pytest.mark.parametrize("balance", Balance)
def test_every_way_to_balance_is_said(balance: Balance) -> None:
    assert of_target(target(balance=balance)).lb_policy is not None


def test_an_aggregate_takes_the_first_that_is_healthy() -> None:
    said = sidecar(
        {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]},
        {"svc": "shop/till", "ip": "10.96.0.11", "ports": [80]},
    )
    other = KEY.replace("cart", "till")
    found = said.find(CLUSTER, f"failover|{KEY}|{other}")
    assert found is not None
    assert found.clusters == (KEY, other)
    wire = pb.Cluster.FromString(found.value)
    members = aggregate_pb.ClusterConfig()
    assert wire.cluster_type.typed_config.Unpack(members)
    assert list(members.clusters) == [KEY, other]
    assert wire.lb_policy == pb.Cluster.CLUSTER_PROVIDED
    assert said.find(CLUSTER, f"failover|{KEY}|{other}x") is None


def test_every_sidecar_has_the_same_few() -> None:
    said = sidecar()
    assert set(FIXED) == set(said.names(CLUSTER))
    app = said.cluster("app")
    assert app.type == pb.Cluster.ORIGINAL_DST
    assert app.upstream_bind_config.source_address.address == "127.0.0.6"
    assert not app.upstream_bind_config.extra_source_addresses
    assert options(said.cluster("app-http1")).HasField("explicit_http_config")
    assert said.cluster("passthrough").type == pb.Cluster.ORIGINAL_DST
    assert not said.cluster("refused").load_assignment.endpoints
    assert sidecar(ipv6=True).cluster("app").upstream_bind_config.extra_source_addresses


def test_equal_messages_have_equal_bytes() -> None:
    one: Message = of_target(target(peers=frozenset({Dns("a.b"), Dns("c.d")})))
    two: Message = of_target(target(peers=frozenset({Dns("c.d"), Dns("a.b")})))
    assert one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True)
