"""Route configurations of clients: the HTTP part of an Outbound.

Every request may be tried again where it cannot have reached the application: the connection was
refused, the stream was, or it broke before the request was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, assert_never

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.config.route.v3 import route_pb2
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2
from envoy.extensions.retry.priority.previous_priorities.v3 import previous_priorities_config_pb2
from envoy.type.v3 import percent_pb2 as percent
from google.protobuf.any_pb2 import Any
from google.protobuf.wrappers_pb2 import UInt32Value, UInt64Value

from isthmus.dialects.envoy import filters as changes
from isthmus.dialects.envoy import names, stats
from isthmus.dialects.envoy.clusters import labelled
from isthmus.dialects.xds import matches
from isthmus.dialects.xds.hosts import Way, by_host
from isthmus.ir.names import Ref, Source, TargetId
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
from isthmus.ir.rules import GrpcMatch, HttpMatch, Retry, Timeouts
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, To
from isthmus.ir.target import Tls as TlsMode
from isthmus.proto.xds import duration, packed

PROTOCOL: Final = "isthmus-protocol"
"""The request header that tells the other sidecar what was spoken before HTTP/2."""

_AGAIN: Final = "connect-failure,refused-stream,reset-before-request"
_TRIES: Final = 2
_MILLION: Final = 1_000_000
_BODY: Final = 64 * 1024
"""Bytes of a request kept for another try; longer ones are passed on and not tried again."""

_GRPC_WORDS: Final = {
    1: "cancelled",
    4: "deadline-exceeded",
    8: "resource-exhausted",
    13: "internal",
    14: "unavailable",
}

TOLD: Final = base.HeaderValueOption(
    header=base.HeaderValue(key=PROTOCOL, value="%PROTOCOL%"),
    append_action=base.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
)
"""The header that does so."""

Route = HttpRoute | GrpcRoute
Rule = HttpRule | GrpcRule


class Parent(NamedTuple):
    """Whose routes these are, for labels."""

    ref: Ref | None
    port: int


def of_outbound(name: str, found: Outbound) -> route_pb2.RouteConfiguration:
    """The routes of an outbound that has HTTP; none of them where it has not."""
    return configuration(name, Parent(found.parent, found.port), http_routes(found))


def http_routes(found: Outbound) -> tuple[Route, ...]:
    """The HTTP part."""
    match found.protocol:
        case Http1(routes=routes) | Http2(routes=routes):
            return routes
        case Grpc(routes=calls):
            return calls
        case Detect(http=routes):
            return routes
        case _:
            return ()


def configuration(
    name: str, parent: Parent, routes: Sequence[Route]
) -> route_pb2.RouteConfiguration:
    """Routes as virtual hosts: one for each host that a route names, one for all others."""
    return route_pb2.RouteConfiguration(
        name=name,
        ignore_port_in_host_matching=True,
        virtual_hosts=[
            pb.VirtualHost(
                name=domain,
                domains=[domain],
                routes=[wire for way in ways for wire in _way(way, parent)],
            )
            for domain, ways in by_host(routes)
        ],
    )


# -------------------------------------------------------------------------------- rules


def _way(way: Way, parent: Parent) -> Iterator[pb.Route]:
    """A match of a rule as Envoy's routes: one, and one more per backend that cannot be."""
    rule = way.rule
    if not isinstance(rule, HttpRule | GrpcRule):
        return
    labels = stats.joined(
        stats.parent_labels(parent.ref, parent.port), stats.route_labels(way.route.source)
    )
    for wire in _shares(rule, route_match(way.match)):
        wire.name = "/".join(filter(None, stats.route_labels(rule.source)))
        wire.metadata.CopyFrom(labelled(labels))
        yield wire


def route_match(match: HttpMatch | GrpcMatch) -> pb.RouteMatch:
    """A match of either kind."""
    if isinstance(match, HttpMatch):
        return matches.http_match(match)
    return matches.grpc_match(match)


def _shares(rule: Rule, match: pb.RouteMatch) -> Iterator[pb.Route]:
    """What cannot be keeps its share: it takes it off the top, the rest goes to the clusters."""
    answer = changes.answer(rule.filters, match)
    if answer is not None:
        yield answer
        return
    backends = _chosen(rule.backends, rule.spread)
    left = sum(one.weight for one in backends)
    for one in backends:
        if isinstance(one, Refuse) and one.weight:
            yield _refusal(one, match, left)
            left -= one.weight
    some = [one for one in backends if not isinstance(one, Refuse) and one.weight]
    if some:
        yield _forward(rule, some, match)
    elif not backends:
        yield changes.reply(match, 500, "no backend")


def _chosen(backends: tuple[Backend, ...], spread: Spread) -> tuple[Backend, ...]:
    match spread:
        case Spread.FIRST:
            return backends[:1]
        case Spread.WEIGHTED:
            return backends
        case Spread.NONE:
            return ()
        case _:
            assert_never(spread)


def _refusal(one: Refuse, match: pb.RouteMatch, whole: int) -> pb.Route:
    wire = changes.reply(match, one.status, one.message)
    if one.weight < whole:
        part = percent.FractionalPercent(
            numerator=one.weight * _MILLION // whole, denominator=percent.FractionalPercent.MILLION
        )
        wire.match.runtime_fraction.CopyFrom(base.RuntimeFractionalPercent(default_value=part))
    return wire


def _forward(rule: Rule, backends: Sequence[Backend], match: pb.RouteMatch) -> pb.Route:
    action = pb.RouteAction(retry_policy=_retry(rule.retry, rule.timeouts))
    if any(isinstance(one, To) and one.failover for one in backends):
        action.retry_policy.retry_priority.CopyFrom(_down_the_line())
    _limits(action, rule.timeouts)
    wire = pb.Route(match=match)
    wire.request_body_buffer_limit.CopyFrom(UInt64Value(value=_BODY))
    if len(backends) == 1:
        action.cluster = cluster_of(backends[0])
        wire.request_headers_to_add.extend(_protocol(backends[0]))
        changes.change_headers(wire, _own_filters(backends[0]))
    else:
        action.weighted_clusters.CopyFrom(
            pb.WeightedCluster(clusters=[_weighted(one) for one in backends])
        )
    changes.apply(wire, action, rule.filters)
    wire.route.CopyFrom(action)
    return wire


def _weighted(one: Backend) -> pb.WeightedCluster.ClusterWeight:
    wire = pb.WeightedCluster.ClusterWeight(
        name=cluster_of(one),
        weight=UInt32Value(value=one.weight),
        request_headers_to_add=_protocol(one),
    )
    changes.change_headers(wire, _own_filters(one))
    return wire


def _own_filters(one: Backend) -> tuple[changes.AnyFilter, ...]:
    return () if isinstance(one, Refuse) else one.filters


def _protocol(one: Backend) -> Iterable[base.HeaderValueOption]:
    """Told wherever a sidecar may be: whether HTTP/2 is used can change at another moment."""
    some = (one.target, *one.failover) if isinstance(one, To) else ()
    if any(each.tls is TlsMode.MESH for each in some):
        yield TOLD


def cluster_of(one: Backend, variant: str = "") -> str:
    """The cluster that a backend is; of targets, in this variant."""
    match one:
        case To(target=target, failover=more):
            keys = tuple(key(each, variant) for each in (target, *more))
            return names.failover(keys) if more else keys[0]
        case OriginalDst():
            return names.PASSTHROUGH
        case Refuse():
            return names.REFUSED
        case _:
            assert_never(one)


def key(target: Target, variant: str = "") -> str:
    """The name of a target's cluster."""
    name = target.id
    if variant == names.RAW and name.variant == names.THROUGH:
        variant = names.THROUGH_RAW
    if variant:
        name = TargetId(name.cluster, name.namespace, name.service, name.port, name.subset, variant)
    return name.key(target.trust_domain)


# ---------------------------------------------------------------------- limits and retries


def _limits(action: pb.RouteAction, said: Timeouts) -> None:
    """Envoy's one limit begins when the request has ended; the shorter of the two is taken."""
    limits = [each for each in (said.request, said.response) if each]
    action.timeout.CopyFrom(duration(min(limits, default=0)))
    if said.idle:
        action.idle_timeout.CopyFrom(duration(said.idle))


def _retry(said: Retry | None, limits: Timeouts) -> pb.RetryPolicy:
    wire = pb.RetryPolicy(
        retry_on=_AGAIN,
        num_retries=UInt32Value(value=_TRIES if said is None else said.limit),
        retry_host_predicate=[_elsewhere()],
        host_selection_retry_max_attempts=3,
    )
    attempt = limits.attempt
    if said is not None:
        _conditions(wire, said)
        attempt = said.attempt_timeout or attempt
        wire.retry_back_off.base_interval.CopyFrom(duration(said.backoff_min))
        wire.retry_back_off.max_interval.CopyFrom(duration(said.backoff_max))
    if attempt:
        wire.per_try_timeout.CopyFrom(duration(attempt))
    return wire


def harmless_retry() -> pb.RetryPolicy:
    """What is tried again in any case."""
    return pb.RetryPolicy(retry_on=_AGAIN, num_retries=UInt32Value(value=_TRIES))


def _conditions(wire: pb.RetryPolicy, said: Retry) -> None:
    words = [_AGAIN, *(_GRPC_WORDS[code] for code in said.grpc if code in _GRPC_WORDS)]
    codes = sorted({code for low, high in said.statuses for code in range(low, high + 1)})
    if codes:
        words.append("retriable-status-codes")
        wire.retriable_status_codes.extend(codes)
    wire.retry_on = ",".join(words)


def _elsewhere() -> pb.RetryPolicy.RetryHostPredicate:
    """Another try goes to another endpoint, if there is one."""
    config: Any = packed(previous_hosts_pb2.PreviousHostsPredicate())
    name = "envoy.retry_host_predicates.previous_hosts"
    return pb.RetryPolicy.RetryHostPredicate(name=name, typed_config=config)


def _down_the_line() -> pb.RetryPolicy.RetryPriority:
    """The last try goes to what a backend falls back to, known to be needed or not."""
    config: Any = packed(
        previous_priorities_config_pb2.PreviousPrioritiesConfig(update_frequency=_TRIES)
    )
    name = "envoy.retry_priorities.previous_priorities"
    return pb.RetryPolicy.RetryPriority(name=name, typed_config=config)


def clusters_of(found: Outbound) -> Iterator[str]:
    """Every cluster that the HTTP part sends to."""
    for route in http_routes(found):
        for rule in route.rules:
            yield from (cluster_of(one) for one in rule.backends if not isinstance(one, Refuse))


def passthrough(source: Source) -> route_pb2.RouteConfiguration:
    """Every request to where it was going."""
    everything = HttpRule(
        source, matches=(HttpMatch(),), backends=(OriginalDst(source),), spread=Spread.FIRST
    )
    return configuration(names.PASSTHROUGH, Parent(None, 0), [HttpRoute(source, (), (everything,))])
