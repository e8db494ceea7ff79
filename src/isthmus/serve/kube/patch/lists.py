"""Merging lists: how items are told apart, and in which order they stand afterwards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from isthmus.serve.kube.patch.values import Path, malformed

Identity = Hashable
"""What makes two items the same item."""


def _scalar(value: object, path: Path) -> Identity:
    """The identity of a JSON scalar: true is not 1."""
    if isinstance(value, dict | list) or value is None:
        raise malformed(path, "must be a string, a number or a boolean")
    return (isinstance(value, bool), value)


class Plain(NamedTuple):
    """Lists of scalars: an item is its value."""

    def identity(self, item: object, path: Path) -> Identity:
        return _scalar(item, path)

    def path(self, path: Path, item: object) -> Path:
        return path

    def places(self, items: list[Any], path: Path) -> dict[Identity, int]:
        return _places(self, items, path)

    def check_order(self, wanted: list[Any], order: list[Any], path: Path) -> None:
        _check_order(self, wanted, order, path)


class Keyed(NamedTuple):
    """Lists of objects: an item is the value of its merge key."""

    key: str

    def identity(self, item: object, path: Path) -> Identity:
        if not isinstance(item, dict):
            raise malformed(path, f"must be an object with the merge key {self.key!r}")
        if self.key not in item:
            raise malformed(path, f"does not contain declared merge key: {self.key}")
        return _scalar(item[self.key], path.field(self.key))

    def path(self, path: Path, item: dict[str, Any]) -> Path:
        return path.keyed(self.key, item[self.key])

    def places(self, items: list[Any], path: Path) -> dict[Identity, int]:
        return _places(self, items, path)

    def check_order(self, wanted: list[Any], order: list[Any], path: Path) -> None:
        _check_order(self, wanted, order, path)


Strategy = Plain | Keyed


def identities(strategy: Strategy, items: Iterable[Any], path: Path) -> list[Identity]:
    """The identity of each item; BadRequest at the first that has none."""
    return [strategy.identity(item, path.item(at)) for at, item in enumerate(items)]


def _places(strategy: Strategy, items: list[Any], path: Path) -> dict[Identity, int]:
    """Where each identity stands first."""
    places: dict[Identity, int] = {}
    for at, identity in enumerate(identities(strategy, items, path)):
        places.setdefault(identity, at)
    return places


def _check_order(strategy: Strategy, wanted: list[Any], order: list[Any], path: Path) -> None:
    """The wanted items must stand in `order`, in that order; or the patch contradicts itself."""
    rest = iter(identities(strategy, order, path))
    for identity in identities(strategy, wanted, path):
        if identity not in rest:  # consumes up to the match: a subsequence test
            raise malformed(path, "the order in the patch list doesn't match $setElementOrder list")


def without(strategy: Strategy, items: list[Any], gone: list[Any], path: Path) -> list[Any]:
    """The items without all those that have an identity of `gone`."""
    leaving = set(identities(strategy, gone, path))
    here = identities(strategy, items, path)
    return [item for item, identity in zip(items, here, strict=True) if identity not in leaving]


def in_order(
    strategy: Strategy, merged: list[Any], order: list[Any], before: list[Any], path: Path
) -> list[Any]:
    """Order merged items: those in `order` as it says, the others as they stood before.

    The two rows are then zipped: an item of the others comes first only where it stood before the
    ordered item at hand, so new items stand as early as they can (Kubernetes does so).
    """
    wanted = _places(strategy, order, path)
    stood = _places(strategy, before, path)
    ours: list[tuple[int, Identity, Any]] = []
    others: list[tuple[int, Identity, Any]] = []
    for item, identity in zip(merged, identities(strategy, merged, path), strict=True):
        row, at = (ours, wanted) if identity in wanted else (others, stood)
        row.append((at[identity], identity, item))
    ours.sort(key=lambda entry: entry[0])
    others.sort(key=lambda entry: entry[0])
    return _zipped(ours, others, stood)


def _zipped(
    ours: list[tuple[int, Identity, Any]],
    others: list[tuple[int, Identity, Any]],
    stood: dict[Identity, int],
) -> list[Any]:
    ordered: list[Any] = []
    waiting = iter(others)
    other = next(waiting, None)
    for _, identity, item in ours:
        place = stood.get(identity, -1)
        while other is not None and other[0] < place:
            ordered.append(other[2])
            other = next(waiting, None)
        ordered.append(item)
    if other is not None:
        ordered.append(other[2])
    ordered += [left[2] for left in waiting]
    return ordered
