"""Shares of the server: how much one client may ask for at a time.

A client is a user, or, while it is anonymous, an address. Over its share a request is refused at
once (429 with Retry-After): nothing waits in line, so nothing can pile up. The table of clients
is bounded by itself: a client is forgotten when it asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum

import msgspec

from isthmus.errors import TooManyRequests

LARGE = 128 * 2**10
"""Bytes of a body from which on it counts as large."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the server puts up with. Times are in seconds, sizes in bytes."""

    body: int = 3 * 2**20
    """Largest request body, after decompression (Kubernetes: 3 MiB)."""
    requests: int = 400
    """Requests of one client at a time, watches not counted."""
    watches: int = 2000
    """Watches of one client at a time."""
    large: int = 8
    """Of its requests, how many with a body of more than `LARGE`: a megabyte may keep the loop for
    a second, and whoever else asks meanwhile waits for all of one client's that are ready."""
    connections: int = 8192
    """Open connections of all clients together."""
    connections_each: int = 4096
    """Open connections from one address (or IPv6 /64)."""
    strangers: int = 512
    """Of these, how many on which nobody has yet proved who they are; TLS handshakes count."""
    request_time: float = 60.0
    """A request that is no watch must be answered, to the last byte, within this."""
    header_time: float = 60.0
    """A connection must send its next request's headers within this; idle ones are closed then."""
    handshake_time: float = 10.0
    """A TLS handshake must be done within this."""
    write_time: float = 30.0
    """A watcher that takes nothing for so long is cut off."""
    watch_time: float = 3600.0
    """Longest watch; the client starts the next one from its last revision."""
    trust_time: float = 5.0
    """Who watches is asked for their rights again with the first event after so long."""
    bookmark_time: float = 60.0
    """Pause between bookmarks."""


DEFAULT_LIMITS = Limits()

SPARE = 64
"""Files that a server needs for itself at least: its store, its log, its listeners, and what was
accepted (`AT_ONCE`) before it was counted."""

FEWEST = 8
"""Connections there is always room for."""

AT_ONCE = 16
"""Connections accepted in one turn of the loop."""


def within(limits: Limits, files: int) -> Limits:
    """The limits, with room for no more connections than `files` open files leave.

    A connection that is accepted and refused costs a moment; one that cannot be accepted for want
    of a file stays, and all the others with it.
    """
    room = max(files - max(files // 4, SPARE), FEWEST)
    return msgspec.structs.replace(limits, connections=min(limits.connections, room))


class Share(Enum):
    """What is counted of a client, in the words it is told."""

    REQUEST = "requests"
    WATCH = "watches"
    LARGE = "requests with large bodies"


class Shares:
    """Counts what each client holds."""

    def __init__(self, limits: Limits) -> None:
        self._most = {Share.REQUEST: limits.requests, Share.WATCH: limits.watches}
        self._most[Share.LARGE] = limits.large
        self._held: dict[tuple[str, Share], int] = {}

    @contextmanager
    def hold(self, client: str, share: Share) -> Iterator[None]:
        """One share of this sort while the block lasts; TooManyRequests if none is left."""
        key = (client, share)
        held = self._held.get(key, 0)
        if held >= self._most[share]:
            raise TooManyRequests(f"{client} has {held} {share.value} open, and may have no more")
        self._held[key] = held + 1
        try:
            yield
        finally:
            left = self._held[key] - 1
            if left:
                self._held[key] = left
            else:
                del self._held[key]

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return sum(held for (_, share), held in self._held.items() if share is Share.WATCH)

    @property
    def clients(self) -> int:
        """How many clients hold anything."""
        return len({client for client, _ in self._held})


class Claim:
    """What one request holds of its client's shares, until `close`.

    It knows neither the request nor its verdict: they know it, and would live in a ring with it.
    """

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._client = ""
        self._held = ExitStack()

    def begin(self, client: str, share: Share) -> None:
        """The request is this client's; TooManyRequests."""
        self._client = client
        self._held.enter_context(self._shares.hold(client, share))

    def large(self) -> None:
        """Its body is large; TooManyRequests."""
        self._held.enter_context(self._shares.hold(self._client, Share.LARGE))

    def close(self) -> None:
        """Give everything back."""
        self._held.close()
