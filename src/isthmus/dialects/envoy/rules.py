"""One rule as Envoy's routes: what answers for a share of the requests first, then what is sent on.

Envoy throws the dice once a request, and compares every share with the same throw. So shares are
told as ends of neighbouring ranges, not as parts of what earlier routes left over; and clusters are
chosen among by the throw modulo their weights, which therefore are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd
from typing import Final, NamedTuple, assert_never

from envoy.config.route.v3 import route_components_pb2 as pb
from google.protobuf.wrappers_pb2 import UInt32Value, UInt64Value

from isthmus.dialects.envoy import filters as changes
from isthmus.dialects.envoy import paths, retries
from isthmus.dialects.envoy.filters import MILLION, AnyFilter
from isthmus.dialects.envoy.sending import cluster_of, protocol
from isthmus.dialects.xds import matches
from isthmus.ir.outbound import GrpcRule, HttpRule, Spread
from isthmus.ir.rules import Fail, GrpcMatch, HeaderChange, HttpMatch, Rewrite
from isthmus.ir.target import Backend, OriginalDst, Refuse, To

Rule = HttpRule | GrpcRule

BODY: Final = 64 * 1024
"""Bytes of a request kept for another try; longer ones are passed on and not tried again."""

_MOST: Final = 10_000
"""What weights may add up to where shares are told besides."""

UNAVAILABLE: Final = 14
NOBODY: Final = "there is no backend with a weight"


class _Told(NamedTuple):
    """A rule and one of its matches, at the port that was dialled (0 if it is not known)."""

    rule: Rule
    match: pb.RouteMatch
    port: int

    @property
    def grpc(self) -> bool:
        """Whether only gRPC calls match."""
        return isinstance(self.rule, GrpcRule)


def route_match(match: HttpMatch | GrpcMatch) -> pb.RouteMatch:
    """A match of either kind."""
    if isinstance(match, HttpMatch):
        return matches.http_match(match)
    return matches.grpc_match(match)


def wires(rule: Rule, match: HttpMatch | GrpcMatch, port: int) -> Iterator[pb.Route]:
    """The routes of a match of a rule, in the order in which they are to be tried."""
    told = _Told(rule, route_match(match), port)
    taken = Fraction(0)
    for one in rule.filters:
        if changes.is_share(one):
            taken += (1 - taken) * _share(one)
            yield from _for_share(_answers(one, told), taken)
        elif found := list(_answers(one, told)):
            yield from found
            return
    yield from _sent(told, taken)


def _share(one: AnyFilter) -> Fraction:
    return Fraction(one.numerator, one.denominator) if isinstance(one, Fail) else Fraction(1)


def _answers(one: AnyFilter, told: _Told) -> Iterator[pb.Route]:
    return changes.answers(one, _copied(told.match), port=told.port, grpc=told.grpc)


def _copied(match: pb.RouteMatch) -> pb.RouteMatch:
    wire = pb.RouteMatch()
    wire.CopyFrom(match)
    return wire


def _for_share(found: Iterator[pb.Route], end: Fraction) -> Iterator[pb.Route]:
    for wire in found:
        yield changes.for_share(wire, int(end * MILLION)) if end < 1 else wire


# --------------------------------------------------------------------------------- backends


def _sent(told: _Told, taken: Fraction) -> Iterator[pb.Route]:
    """Backends that answer, or change more than headers, have a route each; the rest share one."""
    some = [one for one in _chosen(told.rule) if one.weight or told.rule.spread is Spread.FIRST]
    apart = [one for one in some if _stands_apart(one, told, alone=len(some) == 1)]
    together = [one for one in some if one not in apart]
    whole = sum(one.weight for one in some) or 1
    for one in apart:
        taken += (1 - taken) * Fraction(one.weight, whole) if len(some) > 1 else 1 - taken
        whole -= one.weight
        yield from _for_share(_alone(one, told), taken)
    if together:
        yield _forward(together, told, mixed=taken > 0)
    elif not some:
        yield _nobody(told)


def _chosen(rule: Rule) -> tuple[Backend, ...]:
    match rule.spread:
        case Spread.FIRST:
            return rule.backends[:1]
        case Spread.WEIGHTED:
            return rule.backends
        case Spread.NONE:
            return ()
        case _:
            assert_never(rule.spread)


def _stands_apart(one: Backend, told: _Told, *, alone: bool) -> bool:
    """Unless its filters can be told of a cluster among others; of the only one, more can."""
    if isinstance(one, Refuse):
        return True
    rewrites = [each for each in one.filters if isinstance(each, Rewrite)]
    if any(not alone or not paths.possible(each.path, told.match) for each in rewrites):
        return True
    return any(not isinstance(each, HeaderChange | Rewrite) for each in one.filters)


def _alone(one: Backend, told: _Told) -> Iterator[pb.Route]:
    """One backend's own routes."""
    if isinstance(one, Refuse):
        yield _refusal(told, one.status, one.message)
        return
    for each in one.filters:
        if found := list(_answers(each, told)):
            yield from found
            return
    yield _forward([one], told, mixed=False)


def _refusal(told: _Told, status: int, message: str) -> pb.Route:
    """What cannot be: HTTP is told a status, gRPC that it is unavailable (Gateway API)."""
    if told.grpc:
        return changes.grpc_reply(_copied(told.match), UNAVAILABLE, message)
    return changes.reply(_copied(told.match), status, message)


def _nobody(told: _Told) -> pb.Route:
    return _refusal(told, 500, NOBODY)


# ------------------------------------------------------------------------------- forwarding


def _forward(backends: Sequence[Backend], told: _Told, *, mixed: bool) -> pb.Route:
    rule = told.rule
    falls_back = any(isinstance(one, To) and one.failover for one in backends)
    policy = retries.retry(rule.retry, rule.timeouts, falls_back=falls_back)
    action = pb.RouteAction(retry_policy=policy)
    retries.limit(action, rule.timeouts)
    wire = pb.Route(match=told.match)
    wire.request_body_buffer_limit.CopyFrom(UInt64Value(value=BODY))
    changes.change_target(action, rule.filters, wire.match)
    if len(backends) == 1:
        _to_one(wire, action, backends[0], told)
    else:
        _to_several(wire, action, backends, rule, mixed=mixed)
    changes.mirrors(action, rule.filters)
    wire.route.CopyFrom(action)
    return wire


def _to_one(wire: pb.Route, action: pb.RouteAction, one: Backend, told: _Told) -> None:
    own = _own_filters(one)
    action.cluster = cluster_of(one)
    wire.request_headers_to_add.extend(protocol(one))
    changes.change_headers(wire, (*told.rule.filters, *own))
    changes.change_target(action, own, wire.match)


def _to_several(
    wire: pb.Route,
    action: pb.RouteAction,
    backends: Sequence[Backend],
    rule: Rule,
    *,
    mixed: bool,
) -> None:
    """Headers that backends change as well are changed with the backend, all of them together."""
    inside = any(_own_filters(one) for one in backends)
    weights = (
        _small([one.weight for one in backends]) if mixed else [one.weight for one in backends]
    )
    for one, weight in zip(backends, weights, strict=True):
        part = pb.WeightedCluster.ClusterWeight(
            name=cluster_of(one),
            weight=UInt32Value(value=weight),
            request_headers_to_add=protocol(one),
        )
        if inside:
            changes.change_headers(part, (*rule.filters, *_own_filters(one)))
        action.weighted_clusters.clusters.append(part)
    if not inside:
        changes.change_headers(wire, rule.filters)


def _small(weights: Sequence[int]) -> list[int]:
    """The same proportions in small numbers."""
    common = gcd(*weights) or 1
    reduced = [each // common for each in weights]
    total = sum(reduced)
    if total <= _MOST:
        return reduced
    return [max(each * _MOST // total, 1) for each in reduced]


def _own_filters(one: Backend) -> tuple[AnyFilter, ...]:
    match one:
        case To(filters=filters) | OriginalDst(filters=filters):
            return filters
        case Refuse():
            return ()
        case _:
            assert_never(one)
