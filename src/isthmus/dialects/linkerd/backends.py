"""Backends on linkerd's wire: balancers, the original destination, and what stands in for nothing.

The four kinds of routes each have messages of their own for the same thing; `Kind` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from isthmus.dialects.linkerd.address import duration
from isthmus.dialects.linkerd.rules import metadata
from isthmus.dialects.linkerd.wire import tcp_address
from isthmus.ir.names import Source
from isthmus.ir.outbound import Spread
from isthmus.ir.rules import BackendFilter
from isthmus.ir.target import Backend, OriginalDst, Queue, Refuse, Target, To
from isthmus.mesh.queries import LoadBias
from isthmus.proto.linkerd import destination_pb2
from isthmus.proto.linkerd import outbound_pb2 as pb

DEFAULT_RTT: Final = 30
DECAY: Final = 10_000
"""Milliseconds: what Linkerd tells its balancers to begin with."""

NOTHING_WEIGHS: Final = "no backend weighs more than 0"


class Towards(NamedTuple):
    """Where connections were going, and how endpoints that fail are looked at."""

    ip: str
    port: int
    bias: LoadBias | None = None


class Kind(NamedTuple):
    """A kind of route: its messages, what its filters are, and a filter that refuses.

    `refuse` takes an HTTP status and a text.
    """

    distribution: Any
    weighted: Any
    backend: Any
    filters: Callable[[Iterable[BackendFilter]], list[Any]]
    refuse: Callable[[int, str], Any]
    biased: bool = False


def distribution(kind: Kind, spread: Spread, backends: Sequence[Backend], to: Towards) -> Any:  # noqa: ANN401  # four kinds of messages
    """How a rule chooses. Alternatives of a single backend are taken in order."""
    wire = kind.distribution()
    if spread is Spread.NONE or not backends:
        wire.empty.SetInParent()
    elif spread is Spread.FIRST or _alone(backends):
        wire.first_available.backends.extend(_in_order(kind, backends, to))
    elif not any(each.weight for each in backends):
        # A proxy panics on weights that are all zero; nobody is to be sent anything (Gateway API).
        stand_in = Refuse(500, NOTHING_WEIGHS, backends[0].source)
        wire.first_available.backends.append(_backend(kind, stand_in, to))
    else:
        wire.random_available.backends.extend(_weighted(kind, each, to) for each in backends)
    return wire


def _alone(backends: Sequence[Backend]) -> bool:
    match backends:
        case [To(failover=alternatives, weight=weight)]:
            return bool(alternatives and weight)
    return False


def _in_order(kind: Kind, backends: Iterable[Backend], to: Towards) -> Iterable[Any]:
    for each in backends:
        yield _backend(kind, each, to)
        if isinstance(each, To):
            for alternative in each.failover:
                instead = To(alternative, each.source, filters=each.filters)
                yield _backend(kind, instead, to)


def _weighted(kind: Kind, backend: Backend, to: Towards) -> Any:  # noqa: ANN401
    return kind.weighted(backend=_backend(kind, backend, to), weight=backend.weight)


def _backend(kind: Kind, backend: Backend, to: Towards) -> Any:  # noqa: ANN401
    if isinstance(backend, Refuse):
        refused = [kind.refuse(backend.status, backend.message)]
        return kind.backend(backend=_named(backend.source), filters=refused)
    filters = kind.filters(backend.filters)
    return kind.backend(backend=_reached(backend, to, biased=kind.biased), filters=filters)


def _named(source: Source) -> pb.Backend:
    return pb.Backend(metadata=metadata(source), queue=_queue(Queue()))


def _reached(backend: To | OriginalDst, to: Towards, *, biased: bool) -> pb.Backend:
    wire = _named(backend.source)
    match backend:
        case To(target):
            wire.queue.CopyFrom(_queue(target.queue))
            wire.balancer.CopyFrom(_balancer(target, to.bias if biased else None))
        case OriginalDst():
            address = tcp_address(to.ip, to.port)
            wire.forward.CopyFrom(destination_pb2.WeightedAddr(addr=address, weight=1))
    return wire


def _queue(said: Queue) -> pb.Queue:
    return pb.Queue(capacity=said.capacity, failfast_timeout=duration(said.failfast))


def _balancer(target: Target, bias: LoadBias | None) -> pb.Backend.BalanceP2c:
    wire = pb.Backend.BalanceP2c()
    wire.discovery.dst.path = target.authority
    if bias is None:
        wire.peak_ewma.default_rtt.CopyFrom(duration(DEFAULT_RTT))
        wire.peak_ewma.decay.CopyFrom(duration(DECAY))
        return wire
    load = wire.penalty_peak_ewma
    load.default_rtt.CopyFrom(duration(DEFAULT_RTT))
    load.decay.CopyFrom(duration(DECAY))
    load.penalty.CopyFrom(duration(bias.penalty))
    load.penalty_decay.CopyFrom(duration(DECAY))
    load.max_retry_after.CopyFrom(duration(bias.max_retry_after))
    return wire
