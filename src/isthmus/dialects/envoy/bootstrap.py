"""What a sidecar is started with: who it is, where it is told everything else, and little more.

Control and admin go through unix sockets, which no redirection touches. Envoy is started in the
workload's own directory (`tls` has relative paths), with `--concurrency 1 --disable-hot-restart`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from envoy.config.bootstrap.v3 import bootstrap_pb2 as pb
from envoy.config.cluster.v3 import cluster_pb2 as cluster
from envoy.config.core.v3 import address_pb2 as address
from envoy.config.core.v3 import backoff_pb2 as backoff
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import config_source_pb2 as source
from envoy.config.core.v3 import extension_pb2 as extension
from envoy.config.core.v3 import grpc_service_pb2 as grpc
from envoy.config.core.v3 import protocol_pb2 as protocol
from envoy.config.core.v3 import socket_option_pb2 as option
from envoy.config.endpoint.v3 import endpoint_components_pb2 as component
from envoy.config.endpoint.v3 import endpoint_pb2 as endpoint
from envoy.config.metrics.v3 import stats_pb2 as stats_pb
from envoy.config.overload.v3 import overload_pb2 as overload
from envoy.extensions.bootstrap.internal_listener.v3 import internal_listener_pb2
from envoy.extensions.resource_monitors.downstream_connections.v3 import (
    downstream_connections_pb2 as connections,
)
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as http
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from isthmus.dialects.envoy import stats
from isthmus.dialects.envoy.clusters import HTTP_OPTIONS
from isthmus.proto.xds import duration, packed

ADS: Final = "xds"
"""The cluster of the control plane."""

_PRIVATE: Final = 0o600
_PROGRAM: Final = 200_000
"""Steps of a compiled expression: more than fit into what admission lets one take."""

_SO_MARK: Final = 36
_SOL_SOCKET: Final = 1


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent knows of a sidecar.

    `ads` and `admin` are paths of unix sockets. `mark` is put on all connections to elsewhere, so
    that redirection lets them pass (0 = it knows the proxy by its user). `connections` is the most
    that may be open at once.
    """

    id: str
    workload: str
    ads: str
    admin: str
    zone: str = ""
    mark: int = 0
    connections: int = 50_000
    metadata: Mapping[str, str] = {}


def bootstrap(said: Bootstrap) -> str:
    """The configuration file, as JSON."""
    wire = pb.Bootstrap(
        node=_node(said),
        dynamic_resources=_dynamic(),
        static_resources=pb.Bootstrap.StaticResources(clusters=[_control(said.ads)]),
        admin=pb.Admin(address=_pipe(said.admin)),
        stats_config=_stats(),
        stats_flush_interval=duration(5_000),
        stats_eviction_interval=duration(600_000),
        deferred_stat_options=_deferred(),
        bootstrap_extensions=[_internal_listeners()],
        overload_manager=_limits(said.connections),
        layered_runtime=_runtime(),
    )
    if said.mark:
        wire.cluster_manager.upstream_bind_config.CopyFrom(_marked(said.mark))
    return json_format.MessageToJson(wire, preserving_proto_field_name=True, indent=1)


def _runtime() -> pb.LayeredRuntime:
    """Admission bounds regular expressions (RE2, of linear time); Envoy's own bound is far below.

    It would refuse a whole configuration for an expression of some hundred characters.
    """
    layer = Struct()
    layer.update({"re2.max_program_size.error_level": _PROGRAM})
    return pb.LayeredRuntime(layers=[pb.RuntimeLayer(name="isthmus", static_layer=layer)])


def _node(said: Bootstrap) -> base.Node:
    metadata = Struct()
    metadata.update(dict(said.metadata))
    where = base.Locality(zone=said.zone) if said.zone else None
    return base.Node(id=said.id, cluster=said.workload, locality=where, metadata=metadata)


def _dynamic() -> pb.Bootstrap.DynamicResources:
    """Deltas over one stream; back within a second after an outage."""
    quick = backoff.BackoffStrategy(base_interval=duration(200), max_interval=duration(1_000))
    service = grpc.GrpcService(
        envoy_grpc=grpc.GrpcService.EnvoyGrpc(
            cluster_name=ADS, retry_policy=base.RetryPolicy(retry_back_off=quick)
        )
    )
    ads = source.ApiConfigSource(
        api_type=source.ApiConfigSource.DELTA_GRPC,
        transport_api_version=source.V3,
        set_node_on_first_message_only=True,
        grpc_services=[service],
    )
    aggregated = source.ConfigSource(
        ads=source.AggregatedConfigSource(), resource_api_version=source.V3
    )
    return pb.Bootstrap.DynamicResources(
        ads_config=ads, cds_config=aggregated, lds_config=aggregated
    )


def _control(path: str) -> cluster.Cluster:
    alive = protocol.KeepaliveSettings(interval=duration(30_000), timeout=duration(5_000))
    http2 = protocol.Http2ProtocolOptions(connection_keepalive=alive)
    explicit = http.HttpProtocolOptions.ExplicitHttpConfig(http2_protocol_options=http2)
    options = http.HttpProtocolOptions(explicit_http_config=explicit)
    only = component.LbEndpoint(endpoint=component.Endpoint(address=_pipe(path)))
    return cluster.Cluster(
        name=ADS,
        type=cluster.Cluster.STATIC,
        connect_timeout=duration(1_000),
        typed_extension_protocol_options={HTTP_OPTIONS: packed(options)},
        load_assignment=endpoint.ClusterLoadAssignment(
            cluster_name=ADS, endpoints=[component.LocalityLbEndpoints(lb_endpoints=[only])]
        ),
    )


def _pipe(path: str) -> address.Address:
    return address.Address(pipe=address.Pipe(path=path, mode=_PRIVATE))


def _stats() -> stats_pb.StatsConfig:
    """Only the statistics that are read: a thousand services would have made megabytes."""
    wanted = [string.StringMatcher(prefix=each) for each in stats.ALLOWED]
    matcher = stats_pb.StatsMatcher(inclusion_list=string.ListStringMatcher(patterns=wanted))
    bounds = stats_pb.HistogramBucketSettings(
        match=string.StringMatcher(prefix="isthmus_"), buckets=stats.BUCKETS
    )
    return stats_pb.StatsConfig(stats_matcher=matcher, histogram_bucket_settings=[bounds])


def _deferred() -> pb.Bootstrap.DeferredStatOptions:
    return pb.Bootstrap.DeferredStatOptions(enable_deferred_creation_stats=True)


def _internal_listeners() -> extension.TypedExtensionConfig:
    return extension.TypedExtensionConfig(
        name="envoy.bootstrap.internal_listener",
        typed_config=packed(internal_listener_pb2.InternalListener()),
    )


def _limits(most: int) -> overload.OverloadManager:
    config = connections.DownstreamConnectionsConfig(max_active_downstream_connections=most)
    monitor = overload.ResourceMonitor(
        name="envoy.resource_monitors.global_downstream_max_connections",
        typed_config=packed(config),
    )
    return overload.OverloadManager(resource_monitors=[monitor])


def _marked(mark: int) -> address.BindConfig:
    said = option.SocketOption(
        description="SO_MARK",
        level=_SOL_SOCKET,
        name=_SO_MARK,
        int_value=mark,
        state=option.SocketOption.STATE_PREBIND,
    )
    anywhere = address.SocketAddress(address="0.0.0.0", port_value=0)  # noqa: S104
    return address.BindConfig(source_address=anywhere, socket_options=[said])
