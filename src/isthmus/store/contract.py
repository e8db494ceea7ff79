"""What every store does, in types. memory, sqlite, etcd and kube pass one contract suite.

A store keeps records under keys. Each transaction that changes something is one revision; revisions
are strictly increasing integers, never reused, never going back, also over a crash. What was
acknowledged survives SIGKILL. History is kept until `compact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from isthmus.errors import BadRequest, TooLarge
from isthmus.model.key import Key

MAX_OPS: Final = 1_000
"""Compares, and ops, in one transaction."""

MAX_VALUE: Final = 2 * 1024 * 1024
"""Bytes of one value."""


class Record(NamedTuple):
    """One object as stored.

    `revision` is of its last change (Kubernetes: resourceVersion), `created` of its first.
    """

    key: Key
    value: bytes
    revision: int
    created: int


class Page(NamedTuple):
    """Part of a list at one revision.

    `more`: keys follow the last one; `remaining` says how many, if known.
    """

    records: tuple[Record, ...]
    revision: int
    more: bool
    remaining: int | None


class Compare(NamedTuple):
    """The key's last change must be `revision`; 0 means that it must not exist."""

    key: Key
    revision: int


class Put(NamedTuple):
    """Write `value` under `key`: a change even if the value is the one that stands there."""

    key: Key
    value: bytes


class Delete(NamedTuple):
    """Remove `key`; nothing happens if it does not exist."""

    key: Key


Op = Put | Delete


class Committed(NamedTuple):
    """The transaction is durable.

    `revision` is its own, or the store's present one if it changed nothing.
    """

    revision: int


class Refused(NamedTuple):
    """A compare did not hold; nothing was written.

    `present`: what is stored for each compared key.
    """

    present: dict[Key, Record | None]


class Event(NamedTuple):
    """One change of one key. `record` is None when deleted, `previous` None when created."""

    revision: int
    key: Key
    record: Record | None
    previous: Record | None


class Batch(NamedTuple):
    """Events in order, never cutting a transaction, covering everything up to `revision`."""

    events: tuple[Event, ...]
    revision: int


class Watch(Protocol):
    """A cursor over the store's history."""

    async def next(self) -> Batch:
        """The next events; waits until there is something.

        Compacted when the cursor fell behind compaction.
        """
        ...


class Store(Protocol):
    """The contract. All methods may raise Unavailable and DeadlineExceeded."""

    @property
    def revision(self) -> int:
        """The newest revision known to be durable (0 for a store never written)."""
        ...

    async def get(self, key: Key) -> Record | None:
        """The newest record of a key."""
        ...

    async def list(
        self,
        resource: str = "",
        namespace: str = "",
        *,
        revision: int = 0,
        after: Key | None = None,
        limit: int = 0,
    ) -> Page:
        """Records in key order at `revision` (0: the newest), beyond `after`.

        At most `limit`, 0: all.

        Empty `resource` means every resource, empty `namespace` every namespace. Compacted if the
        revision is no longer kept; BadRequest if it is of the future.
        """
        ...

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Committed | Refused:
        """All compares hold and all ops are written, atomically and durably; or nothing is.

        BadRequest if one key stands in two ops, or no store could keep a key; TooLarge above
        MAX_OPS or MAX_VALUE. A caller that is cancelled while it waits does not know whether it
        happened.
        """
        ...

    def watch(self, since: int) -> AbstractAsyncContextManager[Watch]:
        """Every change after revision `since`.

        On entering (or in `next`, when history is forgotten meanwhile) Compacted if those are no
        longer kept; on entering BadRequest if `since` is of the future.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Forget history up to `revision`; newest records stay.

        Lists at `revision` and watches since `revision` still work, older ones are Compacted.
        Nothing happens if that much is forgotten already; BadRequest if `revision` is of the
        future.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, release everything. Afterwards everything is Unavailable."""
        ...


def examine(compares: Sequence[Compare], ops: Sequence[Op]) -> None:
    """Refuse a transaction that no store may take: see `Store.txn`."""
    if len(compares) > MAX_OPS or len(ops) > MAX_OPS:
        raise TooLarge(
            f"a transaction of {len(compares)} compares and {len(ops)} writes; "
            f"the limit is {MAX_OPS} of each"
        )
    keys = {op.key for op in ops}
    if len(keys) != len(ops):
        raise BadRequest("a transaction writes one key twice")
    for op in ops:
        if isinstance(op, Put):
            _examine_put(op)


def _examine_put(put: Put) -> None:
    if len(put.value) > MAX_VALUE:
        where = "/".join(put.key)
        raise TooLarge(f"{where}: a value of {len(put.value)} bytes; the limit is {MAX_VALUE}")
    if not (put.key.resource and put.key.name):
        raise BadRequest(f"a store key without a resource or a name: {put.key!r}")
    if not all(part.isprintable() for part in put.key):
        raise BadRequest(f"a store key with characters that are not printable: {put.key!r}")
