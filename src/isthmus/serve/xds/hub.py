"""All cells that any stream needs, watched once for all of them.

A thousand proxies that are told of the same cluster share one watched cell. The streams ask the hub
for values, which are all of one revision, and are touched when a value they follow changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from isthmus.board import Subscription
from isthmus.engine import ByIdentity
from isthmus.serve.xds.contract import Cell, TypeUrl, View
from isthmus.serve.xds.machine import UNKNOWN

Names = Mapping[TypeUrl, frozenset[str] | None]
Key = tuple[TypeUrl, str]


class Sight:
    """A `View` with its names as sets: made once per view, shared by its streams."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.names: Names = {
            url: None if names is None else frozenset(names) for url, names in view.types.items()
        }
        self.open = frozenset(url for url, names in self.names.items() if names is None)
        """The types of which whatever is named can be had."""


def difference(held: Sight, now: Sight) -> Mapping[TypeUrl, frozenset[str]]:
    """The names that came into sight or went out of it, by type."""
    urls = held.names.keys() | now.names.keys()
    changed = {
        url: (held.names.get(url) or frozenset()) ^ (now.names.get(url) or frozenset())
        for url in urls
    }
    return {url: names for url, names in changed.items() if names}


class Follower(Protocol):
    """A stream, as the hub sees it."""

    round: int
    """The hub's round from which on everything it follows is known."""

    def touch(self, type_url: TypeUrl, names: Iterable[str]) -> None:
        """Values changed, or came into sight, or went."""

    def see(self, sight: Sight | None) -> None:
        """Its view is another now, or None: nothing is known about it."""

    def wake(self) -> None:
        """A round is over."""


class _Slot:
    """A watched cell: its value, and who follows it, under which name."""

    __slots__ = ("asked", "followers", "key", "sight", "value")

    def __init__(self, key: Key | None, asked: int) -> None:
        self.key = key
        self.asked = asked
        self.value: Any = UNKNOWN
        self.sight: Sight | None = None
        """Of a view, and shared as its value is."""
        self.followers: dict[Follower, None] = {}


class Hub:
    """The values of one board for all streams of one server."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._slots: dict[Cell, _Slot] = {}
        self._waiting: set[Follower] = set()
        self._over = False
        self.round = 0
        """Counts how often everything that was asked for was up to date."""
        self.difference = ByIdentity(difference)

    async def run(self) -> None:
        """Follow the board until cancelled."""
        try:
            async with self._subscription as cells:
                while True:
                    self._tell(await cells.settled())
        finally:
            self._over = True

    def follow(self, follower: Follower, cell: Cell, key: Key | None) -> None:
        """Tell `follower` of a cell, from now on: under a type and name, or None for its view."""
        slot = self._slots.get(cell)
        if slot is None:
            slot = self._slots[cell] = _Slot(key, self.round + 1)
            self._subscription.add(*cell)
        slot.followers[follower] = None
        if slot.asked > self.round:
            follower.round = slot.asked
            self._waiting.add(follower)

    def leave(self, follower: Follower, cell: Cell) -> None:
        """Stop telling; harmless if it never did."""
        slot = self._slots.get(cell)
        if slot is None or slot.followers.pop(follower, self) is self or slot.followers:
            return
        del self._slots[cell]
        if not self._over:  # a stream may outlive the hub for a moment, and everything is dropped
            self._subscription.drop(*cell)

    def value(self, cell: Cell) -> Any:  # noqa: ANN401  # of any query
        """The value at the last round: UNKNOWN if the cell is not followed, or its query fails."""
        slot = self._slots.get(cell)
        return slot.value if slot is not None else UNKNOWN

    def sight(self, cell: Cell) -> Sight | None:
        """The sight of a view that is followed, if it is known already."""
        slot = self._slots.get(cell)
        return slot.sight if slot is not None else None

    @property
    def fresh(self) -> bool:
        """Whether all values are those of the board's newest revision."""
        return not self._subscription.woken

    def __len__(self) -> int:
        return len(self._slots)

    def _tell(self, changes: Mapping[Cell, Any]) -> None:
        self.round += 1
        woken, self._waiting = self._waiting, set()
        changed = [slot for cell in changes if (slot := self._slots.get(cell)) is not None]
        # All values first, and views before names: a follower may look at any of them.
        for cell, value in changes.items():
            if cell in self._slots:
                self._slots[cell].value = value
        followers = [(slot, one) for slot in changed for one in slot.followers]
        for slot, follower in followers:
            if slot.key is None:
                follower.see(_sight(slot))
        for slot, follower in followers:
            if slot.key is not None:
                follower.touch(slot.key[0], (slot.key[1],))
            woken.add(follower)
        for follower in woken:
            follower.wake()


def _sight(slot: _Slot) -> Sight | None:
    if slot.sight is None or slot.sight.view is not slot.value:
        slot.sight = None if slot.value is None else Sight(slot.value)
    return slot.sight
