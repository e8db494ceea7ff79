"""A cell for state: the newest value wins, and nobody waits for a slow reader."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """A value and its watchers; a slow watcher skips straight to the newest value.

    Belongs to one loop: other threads come in by `loop.call_soon_threadsafe(cell.set, value)`.
    Values are compared by `==` and must not be changed after they were set.
    """

    def __init__(self, value: T) -> None:
        self._value = value
        self._watches: set[Watch[T]] = set()

    @property
    def value(self) -> T:
        """What was set last."""
        return self._value

    def set(self, value: T) -> bool:
        """Replace the value; say whether that changed anything. An equal value wakes nobody."""
        if value == self._value:
            return False
        self._value = value
        for watch in self._watches:
            watch.wake()
        return True

    def watch(self) -> Watch[T]:
        """Watch from now on: `with cell.watch() as watch: ... await watch.next()`."""
        return Watch(self, self._watches)


class Watch(Generic[T]):
    """One reader of a `Latest`. It counts from the start of its `with` block to the end."""

    def __init__(self, cell: Latest[T], watches: set[Watch[T]]) -> None:
        self._cell = cell
        self._watches = watches
        self._changed = asyncio.Event()
        self._told: tuple[T] | None = None

    def __enter__(self) -> Self:
        self._watches.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watches.discard(self)

    def wake(self) -> None:
        """Said by the cell: the value was replaced."""
        self._changed.set()

    async def next(self) -> T:
        """The value: the first time at once, then whenever it differs from what was told last.

        A value that changed and changed back before the reader came tells nothing.
        """
        if self not in self._watches:
            msg = "Watch.next() outside its `with` block would never wake"
            raise RuntimeError(msg)
        while self._told is not None and self._told[0] == self._cell.value:
            self._changed.clear()
            await self._changed.wait()
        self._told = (self._cell.value,)
        return self._cell.value
