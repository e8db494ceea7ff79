"""The incremental protocol: only differences, each resource with its version.

A request has up to three parts that do not depend on each other: an answer to a response (nonce),
what to listen for from now on, and, first on a stream, what the proxy has from another one.
"""

from __future__ import annotations

from collections.abc import Collection

from isthmus.errors import PeerFault
from isthmus.serve.xds.machine import frames
from isthmus.serve.xds.machine.state import TypeState
from isthmus.serve.xds.machine.stream import NAMES, Plan, Stream
from isthmus.serve.xds.machine.values import DeltaRequest, Rejected

ALL = "*"


class Delta(Stream[DeltaRequest]):
    """DeltaAggregatedResources."""

    def receive(self, request: DeltaRequest, now: float) -> Rejected | None:
        if not request.type_url:
            return None  # says nothing that could be answered
        state = self._state(request.type_url)
        guilty = self._answer(state, request.nonce, request.error, now)
        first, state.asked = not state.asked, True
        if first:
            self._resume(state, request)
        if ALL in request.subscribe or (first and not request.subscribe and state.kind.wild):
            self._subscribe_to_all(state)
        names = [name for name in request.subscribe if name != ALL]
        if not first:  # it may have thrown away what it had: answer always
            state.again.update(names)
        self._subscribe(state, names)
        if ALL in request.unsubscribe and state.wildcard:
            self._unsubscribe_from_all(state)
        self._unsubscribe(state, request.unsubscribe)
        if first and state.held:
            self._drop_unwanted(state)
        return guilty

    def _resume(self, state: TypeState, request: DeltaRequest) -> None:
        if len(request.initial) > NAMES:
            raise PeerFault(f"more than {NAMES} versions of one type")
        state.held.update(request.initial)
        state.look.update(request.initial)
        state.resumed = bool(request.initial)

    def _drop_unwanted(self, state: TypeState) -> None:
        for name in [name for name in state.held if not state.wants(name)]:
            state.forget(name)
        if state.held:
            state.owed = False  # it has had its first answer from another stream

    def _retold(self, state: TypeState, plan: Plan) -> Collection[str]:
        return plan.sent.keys()

    def _can_remove(self, state: TypeState) -> bool:
        return True

    def _body(self, state: TypeState, nonce: str, plan: Plan) -> bytes:
        chunks = [resource.chunk for resource in plan.sent.values()]
        return frames.delta(state.url, nonce, chunks, plan.removed)
