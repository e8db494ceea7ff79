"""What a transaction does to a state: the same decision in every local store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from isthmus.model.key import Key
from isthmus.store.contract import Compare, Delete, Event, Op, Put, Record, Refused


def decide(
    state: Mapping[Key, Record | None],
    compares: Sequence[Compare],
    ops: Sequence[Op],
    revision: int,
) -> Refused | tuple[Event, ...]:
    """The events of a transaction that would be `revision`; none if it changes nothing.

    Writes nothing. The caller has let `contract.examine` look at the transaction.
    """
    for compare in compares:
        found = state.get(compare.key)
        if (found.revision if found is not None else 0) != compare.revision:
            return Refused({each.key: state.get(each.key) for each in compares})
    events = (_event(state.get(op.key), op, revision) for op in ops)
    return tuple(event for event in events if event is not None)


def _event(previous: Record | None, op: Op, revision: int) -> Event | None:
    match op:
        case Put(key, value):
            created = previous.created if previous is not None else revision
            return Event(revision, key, Record(key, value, revision, created), previous)
        case Delete(key):
            return Event(revision, key, None, previous) if previous is not None else None
        case _:
            assert_never(op)
