"""What is known of another cluster: a store that is filled by sessions and only read by others.

It outlives connections. A new list, of one resource or of all, becomes the difference to what is
held, in one revision; so neither a broken connection nor other credentials empty anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from isthmus.aio import Clock
from isthmus.errors import MethodNotAllowed, TooLarge
from isthmus.model.key import Key
from isthmus.store.contract import Committed, Compare, Event, Op, Page, Record, Refused
from isthmus.store.history import History
from isthmus.store.kubernetes.objects import BOUNDS, Bounds
from isthmus.store.local import Local
from isthmus.store.timeline import Timeline

KEPT: Final = History(revisions=500, seconds=30.0, bytes=4 * 2**20)
"""A feed that is further behind lists again, which costs no request."""


class View(Local):
    """See `contract.Store`; `list` waits until the first session has synced, `txn` is refused."""

    def __init__(self, clock: Clock, bounds: Bounds = BOUNDS) -> None:
        super().__init__(Timeline(), KEPT, clock)
        self._bounds = bounds
        self._synced = asyncio.Event()
        self.bytes = 0
        """Of all objects held."""

    def __len__(self) -> int:
        return len(self._timeline.live)

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return self._synced.is_set()

    async def list(
        self,
        resource: str = "",
        namespace: str = "",
        *,
        revision: int = 0,
        after: Key | None = None,
        limit: int = 0,
    ) -> Page:
        await self._synced.wait()
        return await super().list(resource, namespace, revision=revision, after=after, limit=limit)

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op]) -> Committed | Refused:
        raise MethodNotAllowed("another cluster's objects are only read")

    async def compact(self, revision: int) -> None:
        self._timeline.compact(revision)

    async def close(self) -> None:
        self._closed = True
        self._synced.set()
        self._wake()

    def records(self) -> tuple[Record, ...]:
        """Everything that is held now."""
        return tuple(self._timeline.live.values())

    # ------------------------------------------------------------------------------- for sessions

    def replace(self, resources: Collection[str], objects: Mapping[Key, bytes]) -> None:
        """From now on exactly `objects` are there of these resources. TooLarge, changing nothing.

        One revision; none if nothing differs. The first call makes the view synced.
        """
        live = self._timeline.live
        gone = [key for key in live if key.resource in resources and key not in objects]
        new = [key for key, value in objects.items() if _value(live.get(key)) != value]
        changes: dict[Key, bytes | None] = {key: objects[key] for key in new}
        changes.update(dict.fromkeys(gone))
        self._change(changes)
        self._synced.set()

    def put(self, key: Key, value: bytes | None) -> None:
        """One object is so now, or gone (None). TooLarge, changing nothing."""
        if _value(self._timeline.live.get(key)) != value:
            self._change({key: value})

    def _change(self, changes: Mapping[Key, bytes | None]) -> None:
        live = self._timeline.live
        revision = self.revision + 1
        events = [
            self._event(key, changes[key], live.get(key), revision) for key in sorted(changes)
        ]
        count = len(live) + sum(_more(event) for event in events)
        size = self.bytes + sum(_growth(event) for event in events)
        if count > self._bounds.objects or size > self._bounds.bytes:
            raise TooLarge(
                f"{count} objects of {size} bytes; the limits are {self._bounds.objects} "
                f"and {self._bounds.bytes}"
            )
        self.bytes = size
        self._land(events)

    def _event(self, key: Key, value: bytes | None, before: Record | None, revision: int) -> Event:
        if value is None:
            return Event(revision, key, None, before)
        created = revision if before is None else before.created
        return Event(revision, key, Record(key, value, revision, created), before)


def _value(record: Record | None) -> bytes | None:
    return record.value if record is not None else None


def _more(event: Event) -> int:
    return (event.record is not None) - (event.previous is not None)


def _growth(event: Event) -> int:
    return len(_value(event.record) or b"") - len(_value(event.previous) or b"")
