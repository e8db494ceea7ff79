"""The addresses that one Get stream should hold, and the messages that lead there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from isthmus.dialects.linkerd.wire import field, tcp_bytes
from isthmus.engine import ByIdentity
from isthmus.proto.linkerd import destination_pb2 as pb

Labels = tuple[tuple[str, str], ...]
"""Metric labels, sorted by key."""


class Entry(NamedTuple):
    """One address: `encoded` is its WeightedAddr, `labels` are those of the set it is in."""

    ip: str
    port: int
    labels: Labels
    encoded: bytes


Run = tuple[Entry, ...]
"""Entries sorted by address and port, each pair once."""


class AddressBook(msgspec.Struct, frozen=True):
    """What is true now: runs that have no address in common. No run = nobody is there.

    A run stays the same object while nothing in it changes, so a difference looks at the others
    only. A stream that holds an older book is led here by `delta`; it need not end for any change.
    """

    runs: tuple[Run, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything, run by run."""
        return tuple(chain.from_iterable(self.runs))


EMPTY: Final = AddressBook()
_NOTHING: Final = AddressBook()
"""Stands for "nothing was sent yet", by identity."""

_NO_ENDPOINTS: Final = pb.Update(no_endpoints=pb.NoEndpoints(exists=True)).SerializeToString()

LARGEST: Final = 2 << 20
"""Bytes of addresses in one message; gRPC clients refuse more than 4 MiB by default."""

REMEMBERED: Final = 16 << 20
"""Bytes of messages that are kept for streams that take the same step a little later."""


def delta(held: AddressBook | None, now: AddressBook) -> tuple[bytes, ...]:
    """The Update messages that lead a client from `held` to `now`; None = it was told nothing.

    New and changed addresses in an Add, then vanished ones in a Remove, so that a replacement never
    leaves a client without endpoints. The first message of a stream is an Add with everything
    there is, or `no_endpoints`. Made once for all streams that take the same step.
    """
    return _DELTA(_NOTHING if held is None else held, now)


def _delta(held: AddressBook, now: AddressBook) -> tuple[bytes, ...]:
    if not now.runs and held is _NOTHING:
        return (_NO_ENDPOINTS,)
    before, fresh = _difference(held.runs, now.runs)
    added = () if not fresh else map(add, batches(fresh))
    return (*added, *_removes(before.values()))


def _difference(
    held: tuple[Run, ...], now: tuple[Run, ...]
) -> tuple[dict[tuple[str, int], Entry], list[Entry]]:
    """What vanished, and what is new or another. Runs that both have are not looked into."""
    shared = {id(run) for run in held}.intersection([id(run) for run in now]) if held else ()
    before = {entry[:2]: entry for run in held if id(run) not in shared for entry in run}
    fresh = [
        entry
        for run in now
        if id(run) not in shared
        for entry in run
        if before.pop(entry[:2], None) != entry
    ]
    return before, fresh


def _weight(messages: tuple[bytes, ...]) -> int:
    """What remembering a step costs: its messages, and the old entries it keeps from going."""
    return _STEP + 2 * sum(map(len, messages))


_STEP: Final = 1024

_DELTA: Final = ByIdentity(_delta, weigh=_weight, most=REMEMBERED)


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Runs of entries that fit one message each; one run, unless there are very many."""
    start = size = 0
    for at, entry in enumerate(entries):
        if size and size + len(entry.encoded) > LARGEST:
            yield entries[start:at]
            start, size = at, 0
        size += len(entry.encoded)
    if entries[start:]:
        yield entries[start:]


def add(entries: Sequence[Entry]) -> bytes:
    """An Update that adds these.

    Labels that all have in common are the set's; the others go to the addresses they belong to,
    since clients merge the two and let the address win.
    """
    kinds = {entry.labels for entry in entries}
    if len(kinds) == 1:
        addresses = b"".join([field(1, entry.encoded) for entry in entries])
        return field(1, addresses + _set_labels(entries[0].labels))
    common = set.intersection(*map(set, kinds))
    own = {labels: _address_labels(set(labels) - common) for labels in kinds}
    addresses = b"".join([field(1, own[entry.labels] + entry.encoded) for entry in entries])
    return field(1, addresses + _set_labels(tuple(sorted(common))))


@lru_cache(maxsize=4096)
def _set_labels(labels: Labels) -> bytes:
    """Labels as the end of a WeightedAddrSet."""
    return pb.WeightedAddrSet(metric_labels=dict(labels)).SerializeToString(deterministic=True)


def _address_labels(labels: set[tuple[str, str]]) -> bytes:
    """Labels as the beginning of a WeightedAddr: what follows wins."""
    address = pb.WeightedAddr(metric_labels=dict(sorted(labels)))
    return address.SerializeToString(deterministic=True)


def _removes(entries: Collection[Entry]) -> Iterator[bytes]:
    if entries:
        gone = b"".join([field(1, tcp_bytes(entry.ip, entry.port)) for entry in entries])
        yield field(2, gone)
