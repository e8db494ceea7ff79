"""The addresses that one Get stream should hold, and the messages that lead there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from isthmus.dialects.linkerd.wire import field, tcp_address
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


class AddressBook(msgspec.Struct, frozen=True):
    """What is true now, sorted by address and port, each pair once. Empty = nobody is there.

    A stream that holds an older book is led here by `delta`; it need not end for any change.
    """

    entries: tuple[Entry, ...] = ()


EMPTY: Final = AddressBook()
_NOTHING: Final = AddressBook()
"""Stands for "nothing was sent yet", by identity."""

_NO_ENDPOINTS: Final = pb.Update(no_endpoints=pb.NoEndpoints(exists=True)).SerializeToString()

LARGEST: Final = 2 << 20
"""Bytes of addresses in one message; gRPC clients refuse more than 4 MiB by default."""


def delta(held: AddressBook | None, now: AddressBook) -> tuple[bytes, ...]:
    """The Update messages that lead a client from `held` to `now`; None = it was told nothing.

    New and changed addresses in an Add, then vanished ones in a Remove, so that a replacement never
    leaves a client without endpoints. The first message of a stream is an Add with everything
    there is, or `no_endpoints`. Made once for all streams that take the same step.
    """
    return _DELTA(_NOTHING if held is None else held, now)


def _delta(held: AddressBook, now: AddressBook) -> tuple[bytes, ...]:
    if not now.entries and held is _NOTHING:
        return (_NO_ENDPOINTS,)
    before = {(entry.ip, entry.port): entry for entry in held.entries}
    fresh = [entry for entry in now.entries if before.pop((entry.ip, entry.port), None) != entry]
    return (*map(add, batches(fresh)), *_removes(list(before.values())))


_DELTA: Final = ByIdentity(_delta)


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
    common = set.intersection(*map(set, kinds))
    own = {labels: _address_labels(set(labels) - common) for labels in kinds}
    addresses = b"".join(field(1, own[entry.labels] + entry.encoded) for entry in entries)
    labels = pb.WeightedAddrSet(metric_labels=dict(sorted(common)))
    return field(1, addresses + labels.SerializeToString(deterministic=True))


def _address_labels(labels: set[tuple[str, str]]) -> bytes:
    """Labels as the beginning of a WeightedAddr: what follows wins."""
    address = pb.WeightedAddr(metric_labels=dict(sorted(labels)))
    return address.SerializeToString(deterministic=True)


def _removes(entries: list[Entry]) -> Iterator[bytes]:
    if entries:
        gone = pb.AddrSet(addrs=[tcp_address(entry.ip, entry.port) for entry in entries])
        yield pb.Update(remove=gone).SerializeToString()
