"""What both protocols share: what to send next, in which order.

The shell calls `next` whenever it can write, and writes what it gets before it asks again. Types go
in the order of their rank, one response of each under way; clusters that go come last of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from isthmus.errors import PeerFault
from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine import gates
from isthmus.serve.xds.machine.judge import Act, Judge, Truth
from isthmus.serve.xds.machine.state import TypeState
from isthmus.serve.xds.machine.types import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from isthmus.serve.xds.machine.values import Rejected, Response, TypeStatus

PATIENCE: Final = 60.0
"""Seconds that a proxy may take to answer. It warms clusters first, for 15 s at most by default."""
CALM: Final = 10.0
"""Seconds before clusters are taken from a proxy that comes back and has not told of its routes."""

TYPES: Final = 32
NAMES: Final = 100_000
LONGEST: Final = 4_096
"""Bounds of what one stream may ask for: types, names of each, characters of a name."""
ERROR: Final = 4_096
"""Characters of a NACK's message that are kept."""

Request = TypeVar("Request")


class Convicted:
    """(type, name, version) of what some proxy rejected, shared by all streams; the newest count.

    Such a resource is sent alone from the start, so that it takes no other with it.
    """

    def __init__(self, keep: int = 4_096) -> None:
        self._keep = keep
        self._known: dict[tuple[str, str, str], None] = {}

    def add(self, type_url: str, name: str, version: str) -> None:
        """Remember one."""
        self._known[type_url, name, version] = None
        if len(self._known) > self._keep:
            del self._known[next(iter(self._known))]

    def has(self, type_url: str, resource: Resource) -> bool:
        """Whether this content was rejected before."""
        return (type_url, resource.name, resource.version) in self._known


class Plan(NamedTuple):
    """The content of a response."""

    sent: Mapping[str, Resource]
    removed: Collection[str] = ()


class Stream(ABC, Generic[Request]):
    """One proxy's stream. `now` is in seconds by any clock that does not go back."""

    def __init__(self, truth: Truth, convicted: Convicted, now: float) -> None:
        self._truth = truth
        self._convicted = convicted
        self._started = now
        self._count = 0
        self._states: dict[str, TypeState] = {}
        """By rank."""
        self._judge = Judge(truth, self._states, self._can_remove)

    # ---------------------------------------------------------------- what comes in

    @abstractmethod
    def receive(self, request: Request, now: float) -> Rejected | None:
        """Take a request; return the resource that it has proved to be unacceptable, if any.

        Raises:
            PeerFault: no client in its right mind says this; the stream should end.
        """

    def touch(self, type_url: str, names: Iterable[str]) -> None:
        """The truth about these names may have changed."""
        state, endpoints = self._states.get(type_url), self._states.get(ENDPOINTS)
        for name in names:
            if state is not None and state.wants(name):
                state.look.add(name)
            if type_url == CLUSTER and endpoints is not None and name in endpoints.names:
                endpoints.look.add(name)  # whether it may be empty depends on its cluster

    def reveal(self, type_url: str, names: Collection[str]) -> None:
        """These names came into sight, or went out of it."""
        state = self._states.get(type_url)
        if state is not None:
            for name in names:
                self._follow(state, name)
        self.touch(type_url, names)

    def open(self, type_url: str) -> None:
        """Whatever it names of a type can be had from now on, or no longer."""
        state = self._states.get(type_url)
        if state is not None:
            self.reveal(type_url, tuple(state.names))

    def close(self) -> None:
        """The stream is over: drop all that it wanted."""
        for state in self._states.values():
            if state.wildcard:
                self._unsubscribe_from_all(state)
            self._unsubscribe(state, tuple(state.names))

    def _answer(
        self, state: TypeState, nonce: str, error: str | None, now: float
    ) -> Rejected | None:
        """The part of a request that is about a response. One to an older response says nothing."""
        if state.flight is None or nonce != state.flight.nonce:
            return None
        if error is None:
            state.ack(now)
            return None
        guilty = state.nack(now, error[:ERROR])
        if guilty is not None:
            self._convicted.add(state.url, guilty.name, guilty.version)
        return guilty

    def _state(self, type_url: str) -> TypeState:
        state = self._states.get(type_url)
        if state is None:
            if len(self._states) >= TYPES or len(type_url) > LONGEST:
                raise PeerFault(f"more than {TYPES} types of resources on one stream")
            state = self._states[type_url] = TypeState(type_url)
            ranked = sorted(self._states.items(), key=lambda one: one[1].kind.rank)
            self._states.clear()
            self._states.update(ranked)
        return state

    # ---------------------------------------------------------------- subscriptions

    def _subscribe(self, state: TypeState, names: Iterable[str]) -> None:
        for name in names:
            if len(name) > LONGEST:
                raise PeerFault(f"a name of {len(name)} characters")
            state.names.add(name)
            state.denied.discard(name)
            state.look.add(name)
            self._follow(state, name)
        if len(state.names) > NAMES:
            raise PeerFault(f"more than {NAMES} names of one type")

    def _subscribe_to_all(self, state: TypeState) -> None:
        state.wildcard = state.owed = True
        for name in self._truth.names(state.url) or ():
            state.look.add(name)
            self._follow(state, name)

    def _unsubscribe(self, state: TypeState, names: Iterable[str]) -> None:
        """The proxy forgets them, unless they are in all that it wants: then it is told anew."""
        for name in names:
            if name not in state.names:
                continue
            state.names.discard(name)
            state.denied.discard(name)
            if state.wildcard:
                state.again.add(name)
                state.look.add(name)
            else:
                state.forget(name)
            self._follow(state, name)

    def _unsubscribe_from_all(self, state: TypeState) -> None:
        state.wildcard = state.owed = False
        rest = state.held.keys() | state.look | set(self._truth.names(state.url) or ())
        for name in rest - state.names:
            state.forget(name)
            self._follow(state, name)

    def _follow(self, state: TypeState, name: str) -> None:
        if state.wants(name) and self._judge.in_sight(state.url, name):
            self._truth.want(state.url, name)
        else:
            self._truth.drop(state.url, name)

    # ---------------------------------------------------------------- what goes out

    def next(self, now: float) -> Response | None:
        """The response to write now, which counts as sent; None if there is nothing to say."""
        for state in self._states.values():
            if state.asked and state.flight is None:
                plan = self._plan(state)
                if plan is not None:
                    return self._send(state, plan, now)
        clusters = self._states.get(CLUSTER)
        if clusters is not None and clusters.flight is None and clusters.leaving:
            gone = self._leaving(clusters, now)
            if gone:
                return self._send(clusters, Plan({}, sorted(gone)), now)
        return None

    def due(self, now: float) -> float | None:
        """The moment to call `next`, or look at `overdue`, although nothing happened."""
        moments = [
            state.flight.at + PATIENCE
            for state in self._states.values()
            if state.flight is not None
        ]
        clusters = self._states.get(CLUSTER)
        if clusters is not None and clusters.leaving and now < self._started + CALM:
            moments.append(self._started + CALM)
        return min(moments, default=None)

    def overdue(self, now: float) -> str | None:
        """The type of a response that was not answered in time: the stream should end.

        The proxy goes on with what it has, comes back, and says what that is.
        """
        for state in self._states.values():
            if state.flight is not None and now >= state.flight.at + PATIENCE:
                return state.url
        return None

    def _send(self, state: TypeState, plan: Plan, now: float) -> Response:
        self._count += 1
        nonce = str(self._count)
        state.fly(nonce, now, plan.sent, plan.removed)
        self._make_forget(state, self._retold(state, plan))
        body = self._body(state, nonce, plan)
        return Response(state.url, nonce, body, tuple(plan.sent), tuple(plan.removed))

    @abstractmethod
    def _body(self, state: TypeState, nonce: str, plan: Plan) -> bytes:
        """The response as bytes."""

    @abstractmethod
    def _retold(self, state: TypeState, plan: Plan) -> Collection[str]:
        """The names in a response, just sent, that may be news to the proxy."""

    @abstractmethod
    def _can_remove(self, state: TypeState) -> bool:
        """Whether the protocol has words for "does not exist" for resources of this type."""

    def _make_forget(self, state: TypeState, told: Iterable[str]) -> None:
        """What was told replaces something whose child the proxy now waits for anew."""
        child = self._states.get(state.kind.child)
        if child is None and state.kind.child and state.resumed:
            child = self._state(state.kind.child)  # not asked for yet, but it has it
        if child is None or state.flight is None:
            return
        for name in told:
            sent = state.flight.sent.get(name)
            if name in child.held or (sent is not None and sent.before is not None):
                child.again.add(name)
                if name in child.names:
                    child.look.add(name)

    # ---------------------------------------------------------------- deciding

    def _plan(self, state: TypeState) -> Plan | None:
        if state.suspects:
            group = self._next_suspects(state)
            if state.suspects or group:
                return Plan(group) if group else None
        sent, removed, waits = self._sort_out(state)
        if waits and state.owed:
            return None  # the first answer is whole, or a proxy would start with a part
        if waits:
            removed = []  # one listener may take the place of another, at the same address
        known_bad = [name for name, one in sent.items() if self._convicted.has(state.url, one)]
        if len(sent) > 1:
            for name in known_bad:
                state.suspects.append({name: sent.pop(name).version})
                state.look.discard(name)
        if sent or removed or state.owed:
            return Plan(sent, removed)
        return self._plan(state) if state.suspects else None

    def _sort_out(self, state: TypeState) -> tuple[dict[str, Resource], list[str], bool]:
        """Look at names: what to send, what to remove, and whether something waits at a gate."""
        sent, removed, waits = dict[str, Resource](), list[str](), False
        for name in sorted(state.look):
            act, resource = self._judge.judge(state, name)
            state.leaving.discard(name)
            if act is Act.REMOVE and state.url == CLUSTER and name in state.held:
                state.leaving.add(name)
                state.look.discard(name)
            elif act is Act.REMOVE:
                removed.append(name)
            elif resource is None:
                state.look.discard(name)
                state.again.discard(name)
            elif self._judge.passes(state, resource):
                sent[name] = resource
            else:
                waits = True
        return sent, removed, waits

    def _next_suspects(self, state: TypeState) -> dict[str, Resource]:
        """The next group to try; empty if it waits at a gate, or there is none left.

        Those whose content has changed meanwhile are suspects no more.
        """
        while state.suspects:
            group = state.suspects[0]
            live: dict[str, Resource] = {}
            for name, version in group.items():
                act, resource = self._judge.judge(state, name)
                if act is Act.SEND and resource is not None and resource.version == version:
                    live[name] = resource
                elif state.wants(name):
                    state.look.add(name)
            state.suspects[0] = {name: one.version for name, one in live.items()}
            if any(not self._judge.passes(state, one) for one in live.values()):
                return {}
            state.suspects.pop(0)
            if live:
                return live
        return {}

    def _leaving(self, clusters: TypeState, now: float) -> set[str]:
        """The clusters that can go now, if the proxy can be told of any."""
        if clusters.look or clusters.suspects:
            return set()
        if clusters.resumed and now < self._started + CALM:
            told = (self._states.get(LISTENER), self._states.get(ROUTES))
            if any(state is None or not state.asked for state in told):
                return set()  # what its routes refer to is not known yet
        return gates.removable(clusters.leaving, self._states)

    # ---------------------------------------------------------------- for people

    def rejections(self) -> tuple[tuple[str, Rejected], ...]:
        """What the proxy does not accept, with its type."""
        return tuple(
            (state.url, one) for state in self._states.values() for one in state.rejected.values()
        )

    def status(self) -> tuple[TypeStatus, ...]:
        """What was told, type by type."""
        return tuple(state.status() for state in self._states.values() if state.asked)

    def has(self, type_url: str, name: str) -> bool:
        """Whether the proxy has accepted the newest there is of a resource, or does not use it."""
        state = self._states.get(type_url)
        if state is None or not state.wants(name):
            return True
        if state.flight is not None and (name in state.flight.sent or name in state.flight.removed):
            return False
        return self._judge.judge(state, name)[0] is Act.REST
