"""One type of one stream: what is asked for, what is held, what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine.frames import NOTHING
from isthmus.serve.xds.machine.types import kind_of
from isthmus.serve.xds.machine.values import Error, Rejected, TypeStatus

Held = Resource | str
"""What a proxy has: the resource, or its version where only that is known.

"" is nothing, or one of those in `maybe`.
"""


class Sent(NamedTuple):
    """A resource under way, and what the proxy had before."""

    now: Resource
    before: Held | None


class Flight(NamedTuple):
    """A response that is not answered yet."""

    nonce: str
    at: float
    sent: Mapping[str, Sent]
    removed: Mapping[str, Held | None]


class TypeState:
    """Changed by its stream alone."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.kind = kind_of(url)
        self.asked = False
        self.resumed = False
        """The first request told of versions: the proxy comes back from another stream."""
        self.wildcard = False
        self.names: set[str] = set()
        self.held: dict[str, Held] = {}
        self.look: set[str] = set()
        self.again: set[str] = set()
        self.leaving: set[str] = set()
        self.denied: set[str] = set()
        """Names that the proxy was told do not exist."""
        self.owed = False
        """An answer is due even if it is empty."""
        self.flight: Flight | None = None
        self.last_nonce = ""
        self.suspects: list[dict[str, str]] = []
        self.rejected: dict[str, Rejected] = {}
        self.maybe: dict[str, tuple[Resource, ...]] = {}
        """What a rejected response may have left in use, besides what is held."""
        self._acked_at: float | None = None
        self._error: Error | None = None

    def wants(self, name: str) -> bool:
        """Whether the proxy listens for the name."""
        return self.wildcard or name in self.names

    def accepted(self, name: str) -> bool:
        """Whether the proxy has the resource in some version that it has accepted."""
        if self.flight is not None and name in self.flight.sent:
            return bool(self.flight.sent[name].before)
        return bool(self.held.get(name))

    def forget(self, name: str) -> None:
        """The proxy does not listen for it any more, and drops it by itself."""
        self.held.pop(name, None)
        self.rejected.pop(name, None)
        self.maybe.pop(name, None)
        for names in (self.look, self.again, self.leaving, self.denied):
            names.discard(name)

    def fly(
        self, nonce: str, now: float, sent: Mapping[str, Resource], removed: Iterable[str]
    ) -> None:
        """Note a response as sent."""
        moves = {name: Sent(new, self.held.get(name)) for name, new in sent.items()}
        gone = {name: self.held.pop(name, None) for name in removed}
        self.flight = Flight(nonce, now, moves, gone)
        self.last_nonce, self.owed = nonce, False
        self.held.update(sent)
        self.look.difference_update(sent, gone)
        self.again.difference_update(sent)
        self.leaving.difference_update(gone)
        self.denied |= self.names & gone.keys()

    def ack(self, now: float) -> None:
        """The proxy accepted the response under way."""
        flight, self.flight, self._acked_at = self.flight, None, now
        for name, sent in flight.sent.items() if flight is not None else ():
            self.maybe.pop(name, None)
            rejected = self.rejected.get(name)
            stands_in = sent.now is sent.before or sent.now.version == NOTHING
            if rejected is not None and not (stands_in and rejected.version != NOTHING):
                del self.rejected[name]

    def nack(self, now: float, message: str) -> Rejected | None:
        """The proxy rejected the response under way; return who is guilty if that is certain.

        Nobody is guilty by what the message says: a proxy may name the wrong one, or nobody, and
        may have applied the others or not. So they are sent again in smaller parts.
        """
        flight, self.flight, self._error = self.flight, None, Error(message, now)
        if flight is None or not flight.sent:
            return None
        for name, before in flight.removed.items():
            if before is not None and self.wants(name):
                self.held[name] = before
                self.look.add(name)
        still = {name: sent for name, sent in flight.sent.items() if self.wants(name)}
        if len(flight.sent) == 1:
            return self._convict(still, message, now)
        for name, sent in still.items():
            self.held[name] = sent.before or ""
            self.maybe[name] = (*self.maybe.get(name, ()), sent.now)
        self.again |= still.keys()
        self.suspects[:0] = split({name: sent.now.version for name, sent in still.items()}, message)
        return None

    def _convict(self, alone: Mapping[str, Sent], message: str, now: float) -> Rejected | None:
        for name, (new, before) in alone.items():
            others = tuple(one for one in self.maybe.pop(name, ()) if one.version != new.version)
            if before or others:
                self.held[name] = before or ""
            else:
                self.held.pop(name, None)
            if others:
                self.maybe[name] = others
            self.look.add(name)  # it may have changed meanwhile
            self.rejected[name] = Rejected(name, new.version, message, now, blamed(new, before))
            return self.rejected[name]
        return None

    def in_use(self) -> Iterable[Held]:
        """Everything the proxy may be using now, all versions of it."""
        yield from self.held.values()
        for several in self.maybe.values():
            yield from several
        if self.flight is not None:
            yield from (
                sent.before for sent in self.flight.sent.values() if sent.before is not None
            )
            yield from (before for before in self.flight.removed.values() if before is not None)

    def status(self) -> TypeStatus:
        """For people."""
        under_way = len(self.flight.sent) if self.flight is not None else 0
        return TypeStatus(
            type_url=self.url,
            wildcard=self.wildcard,
            subscribed=len(self.names),
            sent=len(self.held),
            acked=len(self.held) - under_way,
            waiting=len(self.look) + sum(map(len, self.suspects)) + len(self.leaving),
            in_flight_since=self.flight.at if self.flight is not None else None,
            acked_at=self._acked_at,
            error=self._error,
            rejected=tuple(self.rejected[name] for name in sorted(self.rejected)),
        )


def blamed(new: Resource, before: Held | None) -> object:
    """The one object whose part the proxy had not accepted; else whom the whole comes from."""
    good = () if before is None or isinstance(before, str) else before.parts
    fresh = {origin for origin, _ in set(new.parts).difference(good)}
    return fresh.pop() if len(fresh) == 1 else new.origin


NAMED = 8
"""A message that names more of a group than this is not believed to name the guilty."""


def split(group: Mapping[str, str], message: str) -> list[dict[str, str]]:
    """Smaller groups to try one after the other.

    Who is named in the message is tried alone, after the rest; if nobody is, halves. A message that
    names the wrong ones costs some rounds, and nothing else.
    """
    named = [name for name in group if mentions(message, name)]
    if not 0 < len(named) <= NAMED:
        names, half = list(group), len(group) // 2
        return [{name: group[name] for name in part} for part in (names[:half], names[half:])]
    alone = [{name: group[name]} for name in named]
    rest = {name: version for name, version in group.items() if name not in named}
    return [rest, *alone] if rest else alone


def mentions(message: str, name: str) -> bool:
    """Whether the name stands in the message as a word of its own."""
    at = message.find(name)
    while at >= 0:
        around = message[at - 1 : at] + message[at + len(name) : at + len(name) + 1]
        if not any(one.isalnum() or one in "-_" for one in around):
            return True
        at = message.find(name, at + 1)
    return False
