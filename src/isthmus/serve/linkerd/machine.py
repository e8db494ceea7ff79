"""One client's stream, without I/O: from what it holds to what is true.

The shell tells the machine every new truth (`learn`) and asks, whenever the client can take a
message, for the next one (`next`). Truths that come while a client does not read replace each
other: it costs one value, never a queue, and the client finds the newest when it reads again.

Going from one truth to another may take several messages (an Add, then a Remove). They are sent to
the end before the next step is computed, so that at every step it is known what the client holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

V = TypeVar("V")

Steps = Callable[[V | None, V], Sequence[bytes]]
"""Messages that lead a client from what it holds (None: nothing yet) to what is true."""


class Stream(Generic[V]):
    """What to send to one client. Values are never changed after they were given."""

    def __init__(self, steps: Steps[V]) -> None:
        self._steps = steps
        self._held: V | None = None
        self._true: V | None = None
        self._messages: Sequence[bytes] = ()
        self._sent = 0
        self._over = False

    def learn(self, true: V | None) -> None:
        """This is true now, whatever was before. None says nothing: what is held stays."""
        self._true = self._held if true is None else true

    def end(self) -> None:
        """Send nothing any more: the client is to ask anew, and will be told everything then."""
        self._over = True

    @property
    def over(self) -> bool:
        """The stream is to be closed with status OK."""
        return self._over

    def next(self) -> bytes | None:
        """The message to write now; None while the client holds what is true.

        The message counts as sent: ask again only when it was written.
        """
        while self._sent == len(self._messages):
            if self._over or self._true is None or self._true is self._held:
                return None
            self._messages, self._sent = self._steps(self._held, self._true), 0
            self._held = self._true
        if self._over:
            return None
        self._sent += 1
        return self._messages[self._sent - 1]
