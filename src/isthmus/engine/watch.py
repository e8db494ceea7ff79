"""A watch: many cells, one owner, told only of what changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from isthmus.engine.cell import UNSET, Cell, hold, let_go, same
from isthmus.engine.faults import ClosedWatch

if TYPE_CHECKING:
    from isthmus.engine.database import Database
    from isthmus.engine.query import Query

P = ParamSpec("P")

_log = logging.getLogger("isthmus.engine")


class Watch:
    """Names cells somebody cares about. Made by `Database.watch`; a context manager that closes.

    The rhythm: `wake()` is called once; the owner calls `settle` in slices, then `take`; from then
    on the next change wakes again. Between wake and take any number of revisions may pass: the
    owner sees the newest only.
    """

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake
        self._cells: dict[Cell, None] = {}
        # What the owner was last told, of each cell that may have changed since.
        self._told: dict[Cell, object] = {}
        # Those of them that are not yet known to be up to date.
        self._unsettled: dict[Cell, None] = {}
        self._awake = False
        self._open = True

    def add(self, query: Query[P, object], /, *key: P.args, **named: P.kwargs) -> None:
        """Watch a cell; its value is told at the next take. Adding twice is adding once."""
        self._check_open()
        self._database.outside("add to a watch")
        cell = self._database.cell(query, key)
        if cell in self._cells:
            return
        self._cells[cell] = None
        hold(cell, self)
        self._told[cell] = UNSET
        self._unsettled[cell] = None
        self.alert()

    def drop(self, query: Query[P, object], /, *key: P.args, **named: P.kwargs) -> None:
        """Stop watching a cell; nothing happens if it was not watched."""
        self._check_open()
        self._database.outside("drop from a watch")
        cell = self._database.memo[query].get(query.fold(key))
        if cell is not None and cell in self._cells:
            self._leave(cell)
            self._database.sweep()

    def _leave(self, cell: Cell) -> None:
        del self._cells[cell]
        self._told.pop(cell, None)
        self._unsettled.pop(cell, None)
        if let_go(cell, self):
            self._database.release(cell)

    def settle(self, budget: Callable[[], bool] | None = None) -> bool:
        """Bring what was touched up to date; True when all of it is.

        `budget` answers "is there time left?" and is asked between evaluations; each call makes
        some progress first. Between two slices anything may happen, a newer commit included.
        """
        self._check_open()
        while self._unsettled:
            # From the end: a dict that loses its first entries is slow to find the next one.
            cell = next(reversed(self._unsettled))
            if cell.state and not self._database.bring(cell, budget):
                return False
            self._unsettled.popitem()
            if budget is not None and self._unsettled and not budget():
                return False
        return True

    def take(self) -> dict[tuple[Any, ...], Any]:
        """`{(query, *key): value}` of the cells whose value differs from what was last taken.

        All values are of the current revision; what is not settled yet is settled first. A cell
        whose query raises is left out: the owner keeps what it was last told (see `failed`).
        """
        self.settle()
        self._awake = False
        news: dict[tuple[Any, ...], Any] = {}
        before, self._told = self._told, {}  # not emptied: an emptied dict keeps its size
        for cell, told in before.items():
            if cell.error is not None:
                self._told[cell] = told
            elif not same(told, cell.value):
                news[cell.query.address(cell.key)] = cell.value
        return news

    def failed(self) -> dict[tuple[Any, ...], Exception]:
        """`{(query, *key): exception}` of the settled cells whose query raises: bugs."""
        return {
            cell.query.address(cell.key): cell.error
            for cell in self._told
            if cell.error is not None and cell not in self._unsettled
        }

    def close(self) -> None:
        """Drop everything; no wake comes any more. Closing twice is closing once."""
        self._open = False
        self._database.watches.pop(self, None)
        for cell in list(self._cells):
            self._leave(cell)
        self._database.sweep()

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, address: tuple[Any, ...]) -> bool:
        query, *key = address
        return self._database.memo[query].get(query.fold(tuple(key))) in self._cells

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the database and its forks call.

    @property
    def unsettled(self) -> Iterable[Cell]:
        """The cells that `settle` has yet to look at."""
        return self._unsettled

    def remember(self, cell: Cell) -> None:
        """`cell` is being marked: keep what its owner was told, before anybody refreshes it."""
        self._told.setdefault(cell, cell.value)
        self._unsettled[cell] = None

    def alert(self) -> None:
        """Wake the owner, unless it was woken and has not taken since."""
        if self._awake or not self._open:
            return
        self._awake = True
        try:
            self._wake()
        except Exception:  # noqa: BLE001 - the owner's bug must not keep others asleep
            _log.exception("a wake failed")

    def _check_open(self) -> None:
        if not self._open:
            raise ClosedWatch("the watch is closed")
