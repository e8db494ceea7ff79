from __future__ import annotations

import json

from envoy.config.bootstrap.v3 import bootstrap_pb2
from envoy.config.core.v3 import config_source_pb2 as source
from google.protobuf import json_format

from isthmus.dialects.envoy import Bootstrap, bootstrap
from isthmus.dialects.envoy.stats import (
    ANY_PORT,
    INBOUND_HTTP,
    INBOUND_LOST,
    INBOUND_TCP,
    OUTBOUND,
)


def read(**said: object) -> bootstrap_pb2.Bootstrap:
    base = {"id": "me.shop", "workload": "me", "ads": "ads.sock", "admin": "admin.sock"}
    text = bootstrap(Bootstrap(**{**base, **said}))  # type: ignore[arg-type]  # its fields
    return json_format.Parse(text, bootstrap_pb2.Bootstrap())


def test_everything_else_comes_by_deltas_through_a_unix_socket() -> None:
    wire = read()
    ads = wire.dynamic_resources.ads_config
    assert ads.api_type == source.ApiConfigSource.DELTA_GRPC
    assert ads.set_node_on_first_message_only
    (control,) = wire.static_resources.clusters
    assert ads.grpc_services[0].envoy_grpc.cluster_name == control.name
    (locality,) = control.load_assignment.endpoints
    assert locality.lb_endpoints[0].endpoint.address.pipe.path == "ads.sock"


def test_the_admin_interface_is_a_private_unix_socket() -> None:
    assert read().admin.address.pipe.path == "admin.sock"
    assert read().admin.address.pipe.mode == 0o600


def test_it_is_back_within_a_second() -> None:
    (service,) = read().dynamic_resources.ads_config.grpc_services
    backoff = service.envoy_grpc.retry_policy.retry_back_off
    assert backoff.max_interval.ToMilliseconds() <= 1_000


def test_who_it_is() -> None:
    node = read(zone="east", metadata={"pod": "me"}).node
    assert (node.id, node.cluster, node.locality.zone) == ("me.shop", "me", "east")
    assert node.metadata["pod"] == "me"
    assert not read().node.HasField("locality")


def test_only_what_is_read_is_counted() -> None:
    patterns = read().stats_config.stats_matcher.inclusion_list.patterns
    allowed = tuple(each.prefix for each in patterns)
    assert "isthmus_" in allowed
    for logger in (*OUTBOUND, *ANY_PORT, INBOUND_HTTP, INBOUND_LOST, INBOUND_TCP):
        config = json_format.MessageToDict(logger)["typedConfig"]["value"]
        scope = config["stats_scope"]
        assert 0 < scope["max_histograms"] < scope["max_counters"] <= 20_000
        for stat in (*config["counters"], *config.get("histograms", ())):
            assert stat["stat"]["name"].startswith(allowed)
    assert read().deferred_stat_options.enable_deferred_creation_stats


def test_connections_are_marked_only_where_the_user_does_not_tell() -> None:
    assert not read().cluster_manager.HasField("upstream_bind_config")
    (mark,) = read(mark=77).cluster_manager.upstream_bind_config.socket_options
    assert (mark.level, mark.name, mark.int_value) == (1, 36, 77)


def test_it_is_json_and_the_same_each_time() -> None:
    said = Bootstrap(id="a", workload="b", ads="c", admin="d", metadata={"x": "1", "y": "2"})
    assert bootstrap(said) == bootstrap(said)
    assert json.loads(bootstrap(said))["node"]["id"] == "a"


def test_expressions_that_admission_takes_are_not_too_long_for_the_proxy() -> None:
    (layer,) = read().layered_runtime.layers
    said = layer.static_layer["re2.max_program_size.error_level"]
    assert isinstance(said, float)
    assert said >= 100_000
