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
from envoy.extensions.load_balancing_policies.least_request.v3 import (
    least_request_pb2 as least_request,
)
from envoy.extensions.transport_sockets.internal_upstream.v3 import internal_upstream_pb2
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as http
from envoy.type.v3 import percent_pb2 as percent
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.envoy import names, stats, tls
from isthmus.engine import View, query
from isthmus.ir.names import Dns, Identity, TargetId
from isthmus.ir.target import Balance, Ejection, Target, Via
from isthmus.mesh.queries import service_of, service_ref, settings, target, target_named
from isthmus.proto.xds import Resource, duration, packed, resource

HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
ADS: Final = source.ConfigSource(
    ads=source.AggregatedConfigSource(), resource_api_version=source.V3
)

MATCH: Final = "envoy.transport_socket_match"
MODE: Final = "mode"
NATIVE: Final = "mesh"
FOREIGN: Final = "foreign"
LINKERD: Final = "linkerd"
"""What an endpoint's metadata says of how it is reached.

FOREIGN is one of our own sidecars too, under another trust domain: it knows its own name only.
"""

LOOPBACK: Final = "127.0.0.6"
"""Where connections to the application come from, so that redirection lets them pass."""

_UNLIMITED: Final = UInt32Value(value=2**32 - 1)
_IDLE_HTTP1: Final = 3_000
"""Milliseconds; servers close idle HTTP/1 connections, and a request must not meet that."""

_IDLE_MESH: Final = 600_000
_IDLE_REMOTE: Final = 10_000
"""Between clusters, connections that only a peak needed are not kept for long."""
_CHECK: Final = 500
"""Milliseconds between looks at who may come back from rest."""

_SILENT: Final = 3
"""Failures to reach an endpoint of another cluster, in a row, after which it rests."""

_REST: Final = 2_000
_LONGEST_REST: Final = 10_000
"""Milliseconds of that rest, the first and the longest."""

_CHOICES: Final = 4
"""Endpoints of which the least busy is taken."""

_SHORT: Final = 2_000
_FEW: Final = 100
"""Milliseconds and requests of a connection through a gateway, which leads to one endpoint of many:
a new one is a new choice, and none is left when a gateway that was announced to leave does."""

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
    if wire.lb_policy == pb.Cluster.LEAST_REQUEST:
        _least_busy(wire, remote=found.remote)
    if found.ejection is not None or found.remote:
        wire.outlier_detection.CopyFrom(_outlier(found.ejection, remote=found.remote))
    if found.id.variant not in (names.PLAIN, names.FORWARDED):
        wire.transport_socket_matches.extend(_transports(found))
    return wire


def _least_busy(wire: pb.Cluster, *, remote: bool) -> None:
    """Of a few endpoints the least busy; of all where some are in other clusters.

    One that says nothing any more looks busy, and is avoided before anybody knows why.
    """
    if not remote:
        wire.least_request_lb_config.choice_count.value = _CHOICES
        return
    of_all = least_request.LeastRequest(selection_method=least_request.LeastRequest.FULL_SCAN)
    policy = wire.load_balancing_policy.policies.add()
    policy.typed_extension_config.name = "envoy.load_balancing_policies.least_request"
    policy.typed_extension_config.typed_config.CopyFrom(packed(of_all))


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


def _outlier(said: Ejection | None, *, remote: bool) -> outlier.OutlierDetection:
    """Who rests: after failures that a Service counts, and in other clusters after silence."""
    zero = UInt32Value(value=0)
    base, longest = (said.base, said.maximum) if said is not None else (_REST, _LONGEST_REST)
    wire = outlier.OutlierDetection(
        consecutive_5xx=UInt32Value(value=said.failures if said is not None else 0),
        interval=duration(_CHECK),
        base_ejection_time=duration(base),
        max_ejection_time=duration(max(longest, base)),
        max_ejection_time_jitter=duration(base * said.jitter // 1000 if said is not None else 0),
        max_ejection_percent=UInt32Value(value=said.share if said is not None else 100),
        enforcing_success_rate=zero,
        enforcing_consecutive_gateway_failure=zero,
    )
    if said is None:
        wire.consecutive_5xx.value = 5
        wire.enforcing_consecutive_5xx.value = 0
    if remote:
        wire.split_external_local_origin_errors = True
        wire.consecutive_local_origin_failure.value = _SILENT
        wire.enforcing_local_origin_success_rate.value = 0
    return wire


def _http(found: Target) -> http.HttpProtocolOptions:
    """One HTTP/2 connection to each of our own sidecars; else what the client speaks."""
    if not found.http2 or found.id.variant in (names.PLAIN, names.FORWARDED):
        return _options(_IDLE_HTTP1, remote=found.remote)
    idle = _IDLE_REMOTE if found.remote else _IDLE_MESH
    wire = _options(idle, explicit=True, remote=found.remote)
    if found.via is Via.REMOTE_GATEWAY:
        common = wire.common_http_protocol_options
        common.max_connection_duration.CopyFrom(duration(_SHORT))
        common.max_requests_per_connection.value = _FEW
    return wire


def _options(
    idle: int, *, explicit: bool = False, remote: bool = False
) -> http.HttpProtocolOptions:
    common = protocol.HttpProtocolOptions(idle_timeout=duration(idle))
    http2 = _http2(remote=remote)
    if explicit:
        config = http.HttpProtocolOptions.ExplicitHttpConfig(http2_protocol_options=http2)
        return http.HttpProtocolOptions(
            common_http_protocol_options=common, explicit_http_config=config
        )
    same = http.HttpProtocolOptions.UseDownstreamHttpConfig(
        http_protocol_options=protocol.Http1ProtocolOptions(), http2_protocol_options=http2
    )
    return http.HttpProtocolOptions(
        common_http_protocol_options=common, use_downstream_protocol_config=same
    )


_SLOW: Final = protocol.KeepaliveSettings(interval=duration(30_000), timeout=duration(5_000))
_QUICK: Final = protocol.KeepaliveSettings(interval=duration(1_000), timeout=duration(2_500))
"""Who is cut off says nothing and refuses nothing: only pings find it out. Between clusters that
must not take long."""

_ABREAST: Final = 3
"""Requests at once on one connection to another cluster. So many are lost with an endpoint that is
cut off: the next one finds no connection that it could be lost on, and goes elsewhere."""


def _http2(*, remote: bool) -> protocol.Http2ProtocolOptions:
    """Extended CONNECT carries websockets; pings find a peer that is gone without a word."""
    alive = _QUICK if remote else _SLOW
    wire = protocol.Http2ProtocolOptions(allow_connect=True, connection_keepalive=alive)
    if remote:
        wire.max_concurrent_streams.value = _ABREAST
    return wire


def _transports(found: Target) -> Iterable[pb.Cluster.TransportSocketMatch]:
    raw = found.id.variant in (names.RAW, names.THROUGH_RAW)
    alpn = tls.TCP if raw else tls.HTTP
    sni = found.server_name or found.id.sni(found.trust_domain)
    yield transport(NATIVE, tls.upstream(sni, found.peers, alpn))
    if found.foreign:
        yield transport(FOREIGN, tls.upstream("", found.peers, alpn))
    if found.via is Via.DIRECT:
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
    found = [target_named(db, each) for each in members]
    if None in found:
        return None
    wire = aggregated(names.failover(members), members)
    if found[0] is not None:
        # Metrics name it by its first member: that is the backend that somebody wrote.
        wire.metadata.CopyFrom(labelled(backend_labels(found[0])))
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
        metadata=labelled(stats.SOMEBODY),
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
