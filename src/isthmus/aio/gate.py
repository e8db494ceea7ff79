"""Who may still come in: connections counted per address, before anybody knows whose they are.

A connection costs memory and, with TLS, a millisecond of processor time before it has said a word.
So it is counted when it is accepted: in all, per address, and, until somebody has proved who they
are on it, as a stranger. Strangers never take more than half of all room: who is known gets in.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address


class Gate:
    """Counts what is inside.

    `most` connections in all, `each` from one address, `strangers` unknown ones from one address.
    """

    def __init__(self, most: int, each: int, strangers: int) -> None:
        self._most = most
        self._each = each
        self._strangers_each = strangers
        self._held: Counter[str] = Counter()
        self._strange: Counter[str] = Counter()
        self.inside = 0
        self.strangers = 0
        self.refused = 0
        """How many were not let in, ever."""

    def enter(self, address: str) -> Visit | None:
        """A visit, to be ended by `leave`; None if there is no room for it."""
        where = neighbourhood(address)
        full = (
            self.inside >= self._most
            or self.strangers * 2 >= max(self._most, 2)
            or self._held[where] >= self._each
            or self._strange[where] >= self._strangers_each
        )
        if full:
            self.refused += 1
            return None
        self.inside += 1
        self.strangers += 1
        self._held[where] += 1
        self._strange[where] += 1
        return Visit(self, where)

    @property
    def addresses(self) -> int:
        """How many addresses anybody is inside from."""
        return sum(1 for count in self._held.values() if count)

    def greeted(self, where: str) -> None:
        """One stranger less."""
        self.strangers -= 1
        _take(self._strange, where)

    def left(self, where: str) -> None:
        """One less inside."""
        self.inside -= 1
        _take(self._held, where)


class Visit:
    """One connection's stay."""

    __slots__ = ("_gate", "_inside", "_strange", "_where")

    def __init__(self, gate: Gate, where: str) -> None:
        self._gate = gate
        self._where = where
        self._inside = True
        self._strange = True

    def greet(self) -> None:
        """It is known whose it is."""
        if self._strange:
            self._strange = False
            self._gate.greeted(self._where)

    def leave(self) -> None:
        """It is over; saying so twice does no harm."""
        if self._inside:
            self.greet()
            self._inside = False
            self._gate.left(self._where)


def neighbourhood(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 that one IPv6 host may have whole."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> 64 << 64))


def _take(counts: Counter[str], where: str) -> None:
    counts[where] -= 1
    if not counts[where]:
        del counts[where]
