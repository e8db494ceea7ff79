"""Two small containers that can be layered, so that a fork costs what it changes.

`Overlay` is a mapping over another that is never written. `Buckets` files members under keys and
gives each key's members as a sorted tuple; unread buckets cost nothing to change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")

# Up to here a bucket is a sorted tuple; beyond, a set and a sorted list that is made on demand.
_SMALL = 8


class Content(Protocol):
    """What a source reads from: rows (None when absent) or buckets (an empty tuple)."""

    def get(self, key: Any, /) -> Any: ...  # noqa: ANN401


class Rows(Protocol):
    """What a dict and an `Overlay` have in common."""

    def get(self, key: Any, /) -> Any: ...  # noqa: ANN401
    def pop(self, key: Any, default: None, /) -> object: ...  # noqa: ANN401
    def __setitem__(self, key: Any, value: Any, /) -> None: ...  # noqa: ANN401
    def items(self) -> Iterable[tuple[Any, Any]]: ...


class Overlay(Generic[K, V]):
    """A mapping over `base`; None stands for a deleted key, which no row may be."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Any) -> None:  # noqa: ANN401 - rows: a dict or an overlay
        self._base = base
        self._own: dict[K, V | None] = {}

    def get(self, key: K, /) -> V | None:
        """The value here, else in the base, else None."""
        if key in self._own:
            return self._own[key]
        below: V | None = self._base.get(key)
        return below

    def __setitem__(self, key: K, value: V, /) -> None:
        self._own[key] = value

    def pop(self, key: K, default: None = None, /) -> None:
        """Hide `key`."""
        self._own[key] = default

    def items(self) -> Iterator[tuple[K, V]]:
        """What is not hidden; the base's order, then ours."""
        for key, value in self._base.items():
            if key not in self._own:
                yield key, value
        for key, own in self._own.items():
            if own is not None:
                yield key, own


class _Big:
    """A bucket of more than a few members."""

    __slots__ = ("members", "order", "view")

    def __init__(self, members: Iterable[Any]) -> None:
        self.members = set(members)
        self.order: list[Any] | None = None
        self.view: tuple[Any, ...] | None = None

    def sorted(self) -> tuple[Any, ...]:
        if self.view is None:
            if self.order is None:
                try:
                    self.order = sorted(self.members)
                except TypeError:  # no natural order to insert into: sorted by text, every time
                    self.view = tuple(ordered(self.members))
                    return self.view
            self.view = tuple(self.order)
        return self.view

    def add(self, member: Any) -> None:  # noqa: ANN401
        if member in self.members:
            return
        self.members.add(member)
        self.view = None
        if self.order is not None:
            try:
                insort(self.order, member)
            except TypeError:
                self.order = None

    def remove(self, member: Any) -> None:  # noqa: ANN401
        if member not in self.members:
            return
        self.members.remove(member)
        self.view = None
        if self.order is not None:
            try:
                del self.order[bisect_left(self.order, member)]
            except TypeError:
                self.order = None


def ordered(members: Iterable[M]) -> list[M]:
    """Sorted; by text where the members have no order of their own (enums, None beside str)."""
    some: list[Any] = list(members)
    try:
        return sorted(some)
    except TypeError:
        return sorted(some, key=repr)


class Buckets(Generic[K, M]):
    """Key -> set of members. An empty bucket is no bucket."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Buckets[K, M] | None = None) -> None:
        self._base = base
        self._own: dict[K, tuple[M, ...] | _Big] = {}

    def _find(self, key: K) -> tuple[M, ...] | _Big:
        found = self._own.get(key)
        if found is not None:
            return found
        return () if self._base is None else self._base._find(key)  # noqa: SLF001 - same class

    def get(self, key: K, /) -> tuple[M, ...]:
        """The members, sorted."""
        found = self._find(key)
        return found.sorted() if isinstance(found, _Big) else found

    def peek(self, key: K) -> Collection[M]:
        """The members in any order; not to be kept across a change."""
        found = self._find(key)
        return found.members if isinstance(found, _Big) else found

    def _owned(self, key: K, found: _Big) -> _Big:
        if key in self._own:
            return found
        self._own[key] = own = _Big(found.members)  # the base is never written
        return own

    def add(self, key: K, member: M) -> None:
        """File `member` under `key`."""
        found = self._find(key)
        if isinstance(found, _Big):
            self._owned(key, found).add(member)
        elif member not in found:
            grown = (*found, member)
            self._own[key] = tuple(ordered(grown)) if len(grown) <= _SMALL else _Big(grown)

    def remove(self, key: K, member: M) -> None:
        """Take `member` out from under `key`."""
        found = self._find(key)
        if isinstance(found, _Big):
            own = self._owned(key, found)
            own.remove(member)
            if not own.members:
                self._empty(key)
        elif member in found:
            rest = tuple(m for m in found if m != member)
            if rest:
                self._own[key] = rest
            else:
                self._empty(key)

    def _empty(self, key: K) -> None:
        if self._base is None:
            del self._own[key]
        else:
            self._own[key] = ()
