"""The state-of-the-world protocol: every request repeats what the proxy listens for.

Of clusters and listeners, a response holds everything the proxy shall have; of other types, what is
new. A request with a nonce that is not the newest was sent before the newest response arrived, and
will be repeated after it: it is ignored.
"""

from __future__ import annotations

from collections.abc import Collection

from isthmus.serve.xds.machine import frames
from isthmus.serve.xds.machine.state import TypeState
from isthmus.serve.xds.machine.stream import Plan, Stream
from isthmus.serve.xds.machine.values import Rejected, SotwRequest

ALL = "*"


class Sotw(Stream[SotwRequest]):
    """StreamAggregatedResources."""

    def receive(self, request: SotwRequest, now: float) -> Rejected | None:
        if not request.type_url:
            return None
        state = self._state(request.type_url)
        first, state.asked = not state.asked, True
        if not first and request.nonce != state.last_nonce:
            return None
        guilty = self._answer(state, request.nonce, request.error, now)
        self._listen(state, frozenset(request.names), first=first)
        return guilty

    def _listen(self, state: TypeState, names: frozenset[str], *, first: bool) -> None:
        """Names replace names. No names mean all of them only until some were named."""
        unnamed = not names and state.kind.wild and (first or (state.wildcard and not state.names))
        wild, named = ALL in names or unnamed, names - {ALL}
        if state.wildcard and not wild:
            self._unsubscribe_from_all(state)
        fresh, old = named - state.names, state.names - named
        self._subscribe(state, fresh)
        if wild and not state.wildcard:
            self._subscribe_to_all(state)
        self._unsubscribe(state, old)

    def _retold(self, state: TypeState, plan: Plan) -> Collection[str]:
        """With a whole set, what was rejected before goes back to the last good one."""
        return plan.sent.keys() | state.again if state.kind.whole else plan.sent.keys()

    def _can_remove(self, state: TypeState) -> bool:
        return state.kind.whole

    def _body(self, state: TypeState, nonce: str, plan: Plan) -> bytes:
        told = state.held.values() if state.kind.whole else plan.sent.values()
        chunks = [one.any_chunk for one in told if not isinstance(one, str)]
        return frames.whole(state.url, nonce, chunks)
