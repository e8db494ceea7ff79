"""Clusters: one per target, and the few that every sidecar has.

A target's cluster has one transport per kind of endpoint, chosen by what the assignment says of
each: our own sidecars, linkerd2-proxies, and those without a mesh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from envoy.config.cluster.v3 import circuit_breaker_pb2 as breaker
from envoy.config.cluster.v3 import cluster_pb2 as pb
from envoy.config.cluster.v3 import outlier_detection_pb2 as outlier
from envoy.config.core.v3 import address_pb2 as address
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import config_source_pb2 as source
from envoy.config.core.v3 import protocol_pb2 as protocol
from envoy.config.endpoint.v3 import endpoint_components_pb2 as component
from envoy.config.endpoint.v3 import endpoint_pb2 as endpoint
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate
from envoy.extensions.transport_sockets.internal_upstream.v3 import internal_upstream_pb2
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as http
from envoy.type.v3 import percent_pb2 as percent
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.envoy import names, tls
from isthmus.engine import View, query
from isthmus.ir.names import Dns, Identity, TargetId
from isthmus.ir.target import Balance, Ejection, Target
from isthmus.mesh.queries import service_of, service_ref, settings, target, target_named
from isthmus.proto.xds import Resource, duration, packed, resource

HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
ADS: Final = source.ConfigSource(
    ads=source.AggregatedConfigSource(), resource_api_version=source.V3
)

MATCH: Final = "envoy.transport_socket_match"
MODE: Final = "mode"
NATIVE: Final = "mesh"
LINKERD: Final = "linkerd"
"""What an endpoint's metadata says of how it is reached."""

LOOPBACK: Final = "127.0.0.6"
"""Where connections to the application come from, so that redirection lets them pass."""

_UNLIMITED: Final = UInt32Value(value=2**32 - 1)
_IDLE_HTTP1: Final = 3_000
"""Milliseconds; servers close idle HTTP/1 connections, and a request must not meet that."""

_IDLE_MESH: Final = 600_000
_CHECK: Final = 500
"""Milliseconds between looks at who may come back from rest."""

_BALANCE: Final[Mapping[Balance, pb.Cluster.LbPolicy.ValueType]] = {
    # There is no peak EWMA in this Envoy; of two, the one with fewer requests comes closest.
    Balance.EWMA: pb.Cluster.LEAST_REQUEST,
    Balance.LEAST_REQUEST: pb.Cluster.LEAST_REQUEST,
    Balance.ROUND_ROBIN: pb.Cluster.ROUND_ROBIN,
    Balance.RANDOM: pb.Cluster.RANDOM,
    Balance.RING_HASH: pb.Cluster.RING_HASH,
    Balance.MAGLEV: pb.Cluster.MAGLEV,
}


# ------------------------------------------------------------------------------- targets


@query
def target_cluster(db: View, key: str) -> Resource | None:
    """The cluster of a target by its key; None where there is no such port of a Service."""
    name = target_named(db, key)
    if name is None or name.variant not in names.VARIANTS:
        return None
    return resource(of_target(target(db, name)), key, origin=service_ref(service_of(name)))


def of_target(found: Target) -> pb.Cluster:
    """A target in Envoy's words. Endpoints come by EDS, under the cluster's own name."""
    wire = pb.Cluster(
        name=found.id.key(found.trust_domain),
        type=pb.Cluster.EDS,
        eds_cluster_config=pb.Cluster.EdsClusterConfig(eds_config=ADS),
        connect_timeout=duration(found.connect_timeout),
        lb_policy=_BALANCE[found.balance],
        common_lb_config=_common(),
        circuit_breakers=_breakers(found),
        typed_extension_protocol_options={HTTP_OPTIONS: packed(_http(found))},
        metadata=labelled(backend_labels(found.id)),
    )
    if found.ejection is not None:
        wire.outlier_detection.CopyFrom(_outlier(found.ejection))
    if found.id.variant != names.PLAIN:
        wire.transport_socket_matches.extend(_transports(found))
    return wire


def _common() -> pb.Cluster.CommonLbConfig:
    """Nobody unhealthy is ever sent to, and what EDS says counts at once (decision 6)."""
    return pb.Cluster.CommonLbConfig(
        healthy_panic_threshold=percent.Percent(value=0), update_merge_window=Duration()
    )


def _breakers(found: Target) -> breaker.CircuitBreakers:
    """Envoy's own limits are for an edge; a mesh has none unless somebody sets them."""
    said = found.breaking
    limits = breaker.CircuitBreakers.Thresholds(
        max_connections=_limit(said.connections),
        max_pending_requests=_limit(said.pending),
        max_requests=_limit(said.requests),
        max_retries=_limit(said.retries),
    )
    return breaker.CircuitBreakers(thresholds=[limits])


def _limit(said: int | None) -> UInt32Value:
    return _UNLIMITED if said is None else UInt32Value(value=said)


def _outlier(said: Ejection) -> outlier.OutlierDetection:
    zero = UInt32Value(value=0)
    return outlier.OutlierDetection(
        consecutive_5xx=UInt32Value(value=said.failures),
        interval=duration(_CHECK),
        base_ejection_time=duration(said.base),
        max_ejection_time=duration(max(said.maximum, said.base)),
        max_ejection_time_jitter=duration(said.base * said.jitter // 1000),
        max_ejection_percent=UInt32Value(value=said.share),
        enforcing_success_rate=zero,
        enforcing_consecutive_gateway_failure=zero,
    )


def _http(found: Target) -> http.HttpProtocolOptions:
    """One HTTP/2 connection to each of our own sidecars; else what the client speaks."""
    if found.http2 and found.id.variant != names.PLAIN:
        return _options(_IDLE_MESH, explicit=True)
    return _options(_IDLE_HTTP1)


def _options(idle: int, *, explicit: bool = False) -> http.HttpProtocolOptions:
    common = protocol.HttpProtocolOptions(idle_timeout=duration(idle))
    if explicit:
        config = http.HttpProtocolOptions.ExplicitHttpConfig(http2_protocol_options=_http2())
        return http.HttpProtocolOptions(
            common_http_protocol_options=common, explicit_http_config=config
        )
    same = http.HttpProtocolOptions.UseDownstreamHttpConfig(
        http_protocol_options=protocol.Http1ProtocolOptions(), http2_protocol_options=_http2()
    )
    return http.HttpProtocolOptions(
        common_http_protocol_options=common, use_downstream_protocol_config=same
    )


def _http2() -> protocol.Http2ProtocolOptions:
    """Extended CONNECT carries websockets; pings find a peer that is gone without a word."""
    alive = protocol.KeepaliveSettings(interval=duration(30_000), timeout=duration(5_000))
    return protocol.Http2ProtocolOptions(allow_connect=True, connection_keepalive=alive)


def _transports(found: Target) -> Iterable[pb.Cluster.TransportSocketMatch]:
    alpn = tls.TCP if found.id.variant == names.RAW else tls.HTTP
    native = tls.upstream(found.id.sni(found.trust_domain), found.peers, alpn)
    yield transport(NATIVE, native)
    yield transport(LINKERD, tls.upstream("", found.peers, ""))
    yield transport("", tls.PLAIN)


def transport(mode: str, socket: base.TransportSocket) -> pb.Cluster.TransportSocketMatch:
    """What endpoints of this mode are dialled with; "" is the rest."""
    match = Struct()
    if mode:
        match.update({MODE: mode})
    return pb.Cluster.TransportSocketMatch(
        name=mode or "plain", match=match, transport_socket=socket
    )


def labelled(labels: str) -> base.Metadata:
    """Metadata with the packed metric labels (see `stats`)."""
    said = Struct()
    said.update({"labels": labels})
    return base.Metadata(filter_metadata={"isthmus": said})


def backend_labels(name: TargetId) -> str:
    """Linkerd's labels of a backend, in their order."""
    return f"core|Service|{name.namespace}|{name.service}|{name.port or ''}|"


# ---------------------------------------------------------------------------- aggregates


@query
def failover_cluster(db: View, members: tuple[str, ...]) -> Resource | None:
    """An aggregate: the first member that has a healthy endpoint is sent to (decision 6)."""
    if not all(target_named(db, each) for each in members):
        return None
    wire = aggregated(names.failover(members), members)
    return resource(wire, wire.name, clusters=members)


def aggregated(name: str, members: Iterable[str]) -> pb.Cluster:
    """An aggregate of clusters that are told as well."""
    kind = pb.Cluster.CustomClusterType(
        name="envoy.clusters.aggregate",
        typed_config=packed(aggregate.ClusterConfig(clusters=members)),
    )
    return pb.Cluster(
        name=name,
        cluster_type=kind,
        connect_timeout=duration(1_000),
        lb_policy=pb.Cluster.CLUSTER_PROVIDED,
    )


# -------------------------------------------------------------- original destinations


@query
def direct_cluster(db: View, name: str, identity: str, linkerd: str) -> Resource:
    """Whoever was dialled by its own address, if it proves `identity` (a DNS name).

    `linkerd` is "" for our own sidecars.
    """
    upgrade = settings(db).h2_upgrade and not linkerd
    wire = _original(name, _options(_IDLE_MESH if upgrade else _IDLE_HTTP1, explicit=upgrade))
    proof: Identity = Dns(identity)
    wire.transport_socket.CopyFrom(tls.upstream(identity, [proof], "" if linkerd else tls.HTTP))
    return resource(wire, name)


def _original(name: str, options: http.HttpProtocolOptions | None) -> pb.Cluster:
    wire = pb.Cluster(
        name=name,
        type=pb.Cluster.ORIGINAL_DST,
        lb_policy=pb.Cluster.CLUSTER_PROVIDED,
        connect_timeout=duration(1_000),
        circuit_breakers=_breakers(Target(TargetId("", "", ""))),
    )
    if options is not None:
        wire.typed_extension_protocol_options[HTTP_OPTIONS].CopyFrom(packed(options))
    return wire


@query
def fixed_cluster(db: View, name: str) -> Resource:
    """A cluster that every sidecar has."""
    match name:
        case names.APP:
            wire = _application(name, _options(_IDLE_HTTP1), ipv6=settings(db).ipv6)
        case names.APP_HTTP1:
            common = protocol.HttpProtocolOptions(idle_timeout=duration(_IDLE_HTTP1))
            config = http.HttpProtocolOptions.ExplicitHttpConfig(
                http_protocol_options=protocol.Http1ProtocolOptions()
            )
            only = http.HttpProtocolOptions(
                common_http_protocol_options=common, explicit_http_config=config
            )
            wire = _application(name, only, ipv6=settings(db).ipv6)
        case names.PASSTHROUGH:
            wire = _original(name, _options(_IDLE_HTTP1))
        case names.DETECT:
            wire = _internal(name)
        case _:
            # Nobody is behind it: connections are closed, requests answered 503.
            nobody = endpoint.ClusterLoadAssignment(cluster_name=name)
            wire = pb.Cluster(name=name, type=pb.Cluster.STATIC, load_assignment=nobody)
    return resource(wire, name)


FIXED: Final = (names.APP, names.APP_HTTP1, names.DETECT, names.PASSTHROUGH, names.REFUSED)
"""The names of those, sorted."""


def _application(name: str, options: http.HttpProtocolOptions, *, ipv6: bool) -> pb.Cluster:
    """The application beside the proxy, at the address that the client dialled."""
    wire = _original(name, options)
    wire.upstream_bind_config.source_address.address = LOOPBACK
    wire.upstream_bind_config.source_address.port_value = 0
    if ipv6:
        more = wire.upstream_bind_config.extra_source_addresses.add()
        more.address.address = "::6"
        more.address.port_value = 0
    return wire


def _internal(name: str) -> pb.Cluster:
    """Into the listener of that name, the original destination carried along."""
    where = address.Address(
        envoy_internal_address=address.EnvoyInternalAddress(server_listener_name=name)
    )
    lb = component.LbEndpoint(endpoint=component.Endpoint(address=where))
    only = component.LocalityLbEndpoints(lb_endpoints=[lb])
    socket = internal_upstream_pb2.InternalUpstreamTransport(transport_socket=tls.PLAIN)
    return pb.Cluster(
        name=name,
        type=pb.Cluster.STATIC,
        circuit_breakers=_breakers(Target(TargetId("", "", ""))),
        load_assignment=endpoint.ClusterLoadAssignment(cluster_name=name, endpoints=[only]),
        transport_socket=base.TransportSocket(
            name="envoy.transport_sockets.internal_upstream", typed_config=packed(socket)
        ),
    )
