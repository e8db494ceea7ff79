"""What a gRPC client is told: a listener and routes per authority, clusters, endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from envoy.config.cluster.v3 import cluster_pb2 as cluster
from envoy.config.core.v3 import address_pb2 as address
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import config_source_pb2 as source
from envoy.config.core.v3 import health_check_pb2 as health
from envoy.config.endpoint.v3 import endpoint_components_pb2 as component
from envoy.config.listener.v3 import api_listener_pb2 as api
from envoy.config.listener.v3 import listener_pb2 as listener
from envoy.config.route.v3 import route_components_pb2 as route
from envoy.config.route.v3 import route_pb2
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.grpc import tls
from isthmus.dialects.xds.hosts import Way, by_host
from isthmus.dialects.xds.matches import grpc_match, http_match
from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, Health
from isthmus.ir.names import Ref, TargetId
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    GrpcRoute,
    GrpcRule,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    Outbound,
    Spread,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import HttpMatch, Retry, Timeouts
from isthmus.ir.target import Balance, To
from isthmus.mesh.queries import (
    Authority,
    GetKey,
    ServiceName,
    SetKey,
    endpoint,
    groups,
    headless,
    is_local,
    leaving,
    outbound,
    parse_authority,
    service_of,
    service_ref,
    sets,
    settings,
    target,
    target_named,
    trust_domain,
)
from isthmus.mesh.queries import Place as Home
from isthmus.proto.xds import ENDPOINTS, Resource, duration, encoded, field, packed, resource
from isthmus.proto.xds import number_field as number

ADS: Final = source.ConfigSource(
    ads=source.AggregatedConfigSource(), resource_api_version=source.V3
)

ROUTER: Final = hcm.HttpFilter(
    name="envoy.filters.http.router", typed_config=packed(router_pb2.Router())
)

_RETRIED: Final = {
    1: "cancelled",
    4: "deadline-exceeded",
    8: "resource-exhausted",
    13: "internal",
    14: "unavailable",
}
_HEALTH: Final = {
    Health.HEALTHY: health.HEALTHY,
    Health.DRAINING: health.DRAINING,
    Health.UNHEALTHY: health.UNHEALTHY,
}


@query
def upstream(db: View, where: Home, authority: str) -> OutboundName | None:
    """The port of a Service that an authority means to clients in a namespace; without one, 80."""
    host, colon, port = authority.partition(":")
    said = authority
    if host.count(".") == 1:
        said = f"{host}.svc.{settings(db).cluster_domain}{colon}{port}"
    match parse_authority(said, settings(db).cluster_domain):
        case Authority(ServiceName(namespace, service), number_):
            parent = Ref(where.cluster, "", "Service", namespace, service)
            return OutboundName(parent, number_, where.namespace)
        case _:
            return None


@query
def client_listener(db: View, where: Home, authority: str) -> Resource | None:
    """The listener of an authority; None where there is no such port of a Service."""
    found = _found(db, where, authority)
    if found is None:
        return None
    rds = hcm.Rds(config_source=ADS, route_config_name=authority)
    manager = hcm.HttpConnectionManager(rds=rds, http_filters=[ROUTER])
    wire = listener.Listener(
        name=authority, api_listener=api.ApiListener(api_listener=packed(manager))
    )
    return resource(wire, authority, origin=found.source)


@query
def client_routes(db: View, where: Home, authority: str) -> Resource | None:
    """The routes of an authority."""
    found = _found(db, where, authority)
    if found is None:
        return None
    wire = route_pb2.RouteConfiguration(
        name=authority,
        virtual_hosts=[
            route.VirtualHost(
                name=domain,
                domains=[domain],
                routes=[wire for way in ways for wire in _way(way)],
            )
            for domain, ways in by_host(http_routes(found))
        ],
    )
    return resource(wire, authority, clusters=_clusters(found), origin=found.source)


def _found(db: View, where: Home, authority: str) -> Outbound | None:
    name = upstream(db, where, authority)
    if name is None:
        return None
    found = outbound(db, name)
    return found if http_routes(found) else None


def http_routes(found: Outbound) -> tuple[HttpRoute | GrpcRoute, ...]:
    """The part that gRPC is: HTTP/2, whatever else the port may speak."""
    match found.protocol:
        case Http2(routes=routes) | Http1(routes=routes):
            return routes
        case Grpc(routes=calls):
            return calls
        case Detect(http=routes):
            return routes
        case _:
            return ()


def _clusters(found: Outbound) -> Iterator[str]:
    for each in http_routes(found):
        for rule in each.rules:
            yield from (_key(one) for one in rule.backends if isinstance(one, To))


FAILOVER: Final = "failover"
"""The kind of a cluster that is several others, the first that has somebody taken."""


def _key(one: To) -> str:
    keys = [each.id.key(each.trust_domain) for each in (one.target, *one.failover)]
    return "|".join((FAILOVER, *keys)) if one.failover else keys[0]


# -------------------------------------------------------------------------------- routes


def _way(way: Way) -> Iterator[route.Route]:
    """A match of a rule; without a backend that can be, calls find no route and fail."""
    rule = way.rule
    if not isinstance(rule, HttpRule | GrpcRule):
        return
    backends = [one for one in rule.backends if isinstance(one, To) and one.weight]
    if rule.spread is Spread.FIRST:
        backends = backends[:1]
    if not backends:
        return
    match = http_match(way.match) if isinstance(way.match, HttpMatch) else grpc_match(way.match)
    # gRPC knows no match on there being gRPC: there is nothing else.
    match.ClearField("grpc")
    action = route.RouteAction()
    _limit(action, rule.timeouts)
    _retry(action, rule.retry)
    if len(backends) == 1:
        action.cluster = _key(backends[0])
    else:
        weights = [
            route.WeightedCluster.ClusterWeight(
                name=_key(one), weight=UInt32Value(value=one.weight)
            )
            for one in backends
        ]
        action.weighted_clusters.CopyFrom(route.WeightedCluster(clusters=weights))
    wire = route.Route(match=match)
    wire.route.CopyFrom(action)
    yield wire


def _limit(action: route.RouteAction, said: Timeouts) -> None:
    limits = [each for each in (said.request, said.response) if each]
    if limits:
        action.max_stream_duration.max_stream_duration.CopyFrom(duration(min(limits)))


def _retry(action: route.RouteAction, said: Retry | None) -> None:
    words = [_RETRIED[code] for code in said.grpc if code in _RETRIED] if said is not None else []
    if said is None or not words:
        return
    policy = route.RetryPolicy(
        retry_on=",".join(words), num_retries=UInt32Value(value=max(1, said.limit))
    )
    policy.retry_back_off.base_interval.CopyFrom(duration(said.backoff_min))
    policy.retry_back_off.max_interval.CopyFrom(duration(said.backoff_max))
    action.retry_policy.CopyFrom(policy)


# ---------------------------------------------------------------------------- clusters


@query
def client_cluster(db: View, key: str) -> Resource | None:
    """The cluster of a target by its key; None if there is no such Service's port."""
    kind, bar, rest = key.partition("|")
    if bar:
        return _aggregate(db, key, rest.split("|")) if kind == FAILOVER else None
    name = target_named(db, key)
    if name is None or name.variant:
        return None
    found = target(db, name)
    ring = found.balance in (Balance.RING_HASH, Balance.MAGLEV)
    wire = cluster.Cluster(
        name=key,
        type=cluster.Cluster.EDS,
        eds_cluster_config=cluster.Cluster.EdsClusterConfig(eds_config=ADS),
        lb_policy=cluster.Cluster.RING_HASH if ring else cluster.Cluster.ROUND_ROBIN,
    )
    # What is dialled by its own address is wrapped in mesh TLS by the sidecar that it passes.
    if tls.joins(found) and not headless(db, service_of(name)):
        sni = found.server_name or found.id.sni(found.trust_domain)
        wire.transport_socket.CopyFrom(tls.upstream(sni, found.peers))
    return resource(wire, wire.name, origin=service_ref(service_of(name)))


def _aggregate(db: View, key: str, members: Sequence[str]) -> Resource | None:
    """Of these clusters the first that has somebody. gRPC wants no word on how it is chosen."""
    if not all(target_named(db, each) for each in members):
        return None
    kind = cluster.Cluster.CustomClusterType(
        name="envoy.clusters.aggregate",
        typed_config=packed(aggregate.ClusterConfig(clusters=members)),
    )
    return resource(cluster.Cluster(name=key, cluster_type=kind), key, clusters=members)


@query
def client_assignment(db: View, key: str, node: str) -> Resource | None:
    """The endpoints of a target as processes on a node see them."""
    name = target_named(db, key)
    if name is None or name.variant:
        return None
    asked = GetKey(service_of(name), name.port or 0, name.subset, node)
    return assignment_of(db, name, sets(db, asked))


class Place(NamedTuple):
    """Where an endpoint is: the cluster ("" = this one) and its zone ("" = unknown)."""

    cluster: str
    zone: str


@query
def assignment_of(db: View, name: TargetId, parts: tuple[SetKey, ...]) -> Resource:
    """The union of sets by place. gRPC uses no locality without a name and a weight."""
    found: dict[tuple[str, int], tuple[Place, int, bytes]] = {}
    listed = [
        (member, Health.HEALTHY)
        for part in parts
        for group in groups(db, part)
        for member in group.members
    ]
    listed += [(member, Health.DRAINING) for part in parts for member in leaving(db, part)]
    for member, state in listed:
        one = endpoint(db, member)
        if one is not None and one.authority is None:
            weight = max(1, one.weight)
            home = member.target.cluster
            place = Place("" if is_local(db, home) else home, member.zone)
            said = (place, weight, _endpoint(one, state, weight))
            found.setdefault((member.ip, member.port), said)
    places: dict[Place, list[tuple[int, bytes]]] = {}
    for _, (place, weight, wire) in sorted(found.items()):
        places.setdefault(place, []).append((weight, wire))
    key = name.key(trust_domain(db, name.cluster))
    parts_wire = (field(2, _locality(place, some)) for place, some in sorted(places.items()))
    return encoded(ENDPOINTS, key, field(1, key.encode()) + b"".join(parts_wire))


def _endpoint(one: Endpoint, state: Health, weight: int) -> bytes:
    where = address.SocketAddress(address=one.address, port_value=one.port)
    wire = component.LbEndpoint(
        endpoint=component.Endpoint(address=address.Address(socket_address=where)),
        health_status=_HEALTH[state],
        load_balancing_weight=UInt32Value(value=weight),
    )
    return wire.SerializeToString(deterministic=True)


def _locality(place: Place, endpoints: list[tuple[int, bytes]]) -> bytes:
    """A locality weighs as much as its endpoints, so that each gets its share of the whole."""
    where = base.Locality(region=place.cluster, zone=place.zone or "unknown").SerializeToString()
    weight = sum(each for each, _ in endpoints)
    listed = b"".join(field(2, wire) for _, wire in endpoints)
    return field(1, where) + listed + field(3, number(1, weight))
