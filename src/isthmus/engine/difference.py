"""Differences between values, made once for all who ask.

A thousand streams that hold the same old value and are told the same new one need the same
difference. Values are shared objects, so the pair of identities is the question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")
D = TypeVar("D")


class ByIdentity(Generic[V, D]):
    """`fn(held, now)`, memoised by the identity of both; the last used pairs are kept.

    At most `keep` of them, and at most `most` in all of what `weigh` finds each answer to weigh
    (bytes, say); the newest is kept whatever it weighs. The pairs are held, so an identity cannot
    be reused while its answer is remembered. Both values must be frozen, and `fn` pure.
    """

    def __init__(
        self,
        fn: Callable[[V, V], D],
        *,
        keep: int = 512,
        weigh: Callable[[D], int] | None = None,
        most: int = 0,
    ) -> None:
        self._fn = fn
        self._keep = keep
        self._weigh = weigh
        self._most = most
        self._weight = 0
        self._known: OrderedDict[tuple[int, int], tuple[V, V, D]] = OrderedDict()

    def __call__(self, held: V, now: V) -> D:
        """The difference from `held` to `now`."""
        pair = (id(held), id(now))
        known = self._known.get(pair)
        if known is not None:
            self._known.move_to_end(pair)
            return known[2]
        answer = self._fn(held, now)
        self._known[pair] = (held, now, answer)
        if self._weigh is not None:
            self._weight += self._weigh(answer)
        self._shrink()
        return answer

    def _shrink(self) -> None:
        known, weigh = self._known, self._weigh
        while len(known) > self._keep or (self._weight > self._most and len(known) > 1):
            answer = known.popitem(last=False)[1][2]
            if weigh is not None:
                self._weight -= weigh(answer)

    @property
    def weight(self) -> int:
        """What the answers that are kept weigh in all."""
        return self._weight

    def __len__(self) -> int:
        return len(self._known)
