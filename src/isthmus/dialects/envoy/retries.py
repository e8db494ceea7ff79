"""Limits and retries of rules in Envoy's words.

Every request may be tried again where it cannot have reached the application: the connection was
refused, the stream was, or it broke before the request was written.
"""

from __future__ import annotations

from typing import Final

from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2
from envoy.extensions.retry.priority.previous_priorities.v3 import previous_priorities_config_pb2
from google.protobuf.any_pb2 import Any
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.ir.rules import Retry, Timeouts
from isthmus.proto.xds import duration, packed

_AGAIN: Final = "connect-failure,refused-stream,reset-before-request"
_TRIES: Final = 2

_GRPC_WORDS: Final = {
    1: "cancelled",
    4: "deadline-exceeded",
    8: "resource-exhausted",
    13: "internal",
    14: "unavailable",
}


def limit(action: pb.RouteAction, said: Timeouts) -> None:
    """Envoy's one limit begins when the request has ended; the shorter of the two is taken."""
    limits = [each for each in (said.request, said.response) if each]
    action.timeout.CopyFrom(duration(min(limits, default=0)))
    if said.idle:
        action.idle_timeout.CopyFrom(duration(said.idle))


def retry(said: Retry | None, limits: Timeouts, *, falls_back: bool = False) -> pb.RetryPolicy:
    """What is tried again. `falls_back`: some backend has targets to fall back to."""
    wire = pb.RetryPolicy(
        retry_on=_AGAIN,
        num_retries=UInt32Value(value=_TRIES if said is None else said.limit),
        retry_host_predicate=[_elsewhere()],
        host_selection_retry_max_attempts=3,
    )
    attempt = limits.attempt
    if said is not None:
        attempt = said.attempt_timeout or attempt
        _conditions(wire, said, broken=said.connect_failure or attempt is not None)
        wire.retry_back_off.base_interval.CopyFrom(duration(said.backoff_min))
        wire.retry_back_off.max_interval.CopyFrom(duration(said.backoff_max))
    if attempt:
        wire.per_try_timeout.CopyFrom(duration(attempt))
    if falls_back:
        wire.retry_priority.CopyFrom(_down_the_line())
    return wire


def harmless_retry() -> pb.RetryPolicy:
    """What is tried again in any case."""
    return pb.RetryPolicy(retry_on=_AGAIN, num_retries=UInt32Value(value=_TRIES))


def _conditions(wire: pb.RetryPolicy, said: Retry, *, broken: bool) -> None:
    """`broken`: attempts that were cut off are tried again as well, by their limit or the peer."""
    words = [_AGAIN, *(_GRPC_WORDS[code] for code in said.grpc if code in _GRPC_WORDS)]
    codes = sorted({code for low, high in said.statuses for code in range(low, high + 1)})
    if codes:
        words.append("retriable-status-codes")
        wire.retriable_status_codes.extend(codes)
    if broken:
        words.append("reset")
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
