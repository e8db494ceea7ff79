"""What is true for a proxy, and what that means for a name: send it, remove it, or let it be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Protocol

from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine import frames, gates
from isthmus.serve.xds.machine.state import Held, TypeState
from isthmus.serve.xds.machine.types import CLUSTER, Absent
from isthmus.serve.xds.machine.values import UNKNOWN


class Truth(Protocol):
    """What is true for one proxy; all answers belong to one revision of the mesh."""

    def names(self, type_url: str, /) -> Collection[str] | None:
        """A set of the names in sight; empty for a type that is not served; None if all are."""

    def resource(self, type_url: str, name: str, /) -> Resource | None:
        """The resource of a name that was wanted. `UNKNOWN` leaves the proxy with what it has."""

    def want(self, type_url: str, name: str, /) -> None:
        """The stream will ask for this resource, and be told by `touch` when it changes."""

    def drop(self, type_url: str, name: str, /) -> None:
        """The stream does not care for it any more, if it ever did."""


class Act(Enum):
    """What is to be done about a name."""

    REST = "rest"
    SEND = "send"
    REMOVE = "remove"


class Judge:
    """Decides about names of one stream. `removes` says of which types the protocol can remove."""

    def __init__(
        self, truth: Truth, states: Mapping[str, TypeState], removes: Callable[[TypeState], bool]
    ) -> None:
        self._truth = truth
        self._states = states
        self._removes = removes

    def judge(self, state: TypeState, name: str) -> tuple[Act, Resource | None]:
        """What is to be done about a name. A resource comes with SEND."""
        true, held = self.true(state.url, name), state.held.get(name)
        if not state.wants(name):
            return Act.REST, None
        if true is UNKNOWN:
            return Act.REST, None
        rejected = state.rejected.get(name)
        if true is None:
            if rejected is not None and rejected.version != frames.NOTHING:
                del state.rejected[name]
            return self._judge_absent(state, name)
        state.denied.discard(name)
        if rejected is not None and rejected.version == true.version:
            return self._judge_rejected(state, name)
        if _version(held) != true.version or name in state.again:
            return Act.SEND, true
        state.held[name] = true  # where only the version was known
        state.rejected.pop(name, None)
        return Act.REST, None

    def _judge_rejected(self, state: TypeState, name: str) -> tuple[Act, Resource | None]:
        """Nothing, unless the proxy waits for it: then the last good one, or no endpoints."""
        none_good = name in state.again and not state.held.get(name)
        if none_good and state.kind.absent is Absent.EMPTY:
            return Act.SEND, frames.no_endpoints(name)
        return self._again(state, name)

    def _again(self, state: TypeState, name: str) -> tuple[Act, Resource | None]:
        """What is held, if the proxy waits for it.

        Of a bare version nobody knows the content: then Envoy takes what it has after its timeout,
        which harms less than emptying it would.
        """
        held = state.held.get(name)
        if name not in state.again or held is None or isinstance(held, str):
            return Act.REST, None
        return Act.SEND, held

    def _judge_absent(self, state: TypeState, name: str) -> tuple[Act, Resource | None]:
        held = state.held.get(name)
        match state.kind.absent:
            case Absent.SILENT:
                return Act.REST, None
            case Absent.EMPTY:
                return self._judge_empty(state, name)
            case Absent.REMOVED:
                told = held is None and (name not in state.names or name in state.denied)
                if told or not self._removes(state):
                    return Act.REST, None
                return Act.REMOVE, None

    def _judge_empty(self, state: TypeState, name: str) -> tuple[Act, Resource | None]:
        """An assignment that does not exist. While its cluster leaves, routes may still use it."""
        held, nothing = state.held.get(name), frames.no_endpoints(name)
        rejected, clusters = state.rejected.get(name), self._states.get(CLUSTER)
        leaves = clusters is not None and name in clusters.held and self.true(CLUSTER, name) is None
        if held and leaves:
            return self._again(state, name)
        if rejected is not None and rejected.version == nothing.version:
            return Act.REST, None
        if _version(held) == nothing.version and name not in state.again:
            return Act.REST, None
        return Act.SEND, nothing

    def passes(self, state: TypeState, resource: Resource) -> bool:
        if not state.kind.gated:
            return True
        return gates.passes(resource, self._states, lambda name: self.true(CLUSTER, name))

    def true(self, type_url: str, name: str) -> Resource | None:
        return self._truth.resource(type_url, name) if self.in_sight(type_url, name) else None

    def in_sight(self, type_url: str, name: str) -> bool:
        names = self._truth.names(type_url)
        return names is None or name in names


def _version(held: Held | None) -> str | None:
    return held if isinstance(held, str) or held is None else held.version
