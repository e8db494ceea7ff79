"""The words of decisions: steps on the way and what comes of a request."""

from __future__ import annotations

from isthmus.ir.endpoint import Endpoint
from isthmus.ir.names import Source, Value
from isthmus.ir.request import Request
from isthmus.ir.rules import HeaderChange
from isthmus.ir.target import Target


class Step(Value, frozen=True):
    """One thing that was looked at or done, and the object that it comes from."""

    source: Source
    text: str


class Forward(Value, frozen=True, tag="forward"):
    """Sent to one of `endpoints` of `target`; `request` is what arrives there.

    `failover` counts the targets that had no endpoint, 0 for the first choice. `response` are the
    changes of the response's headers.
    """

    target: Target
    endpoints: tuple[Endpoint, ...]
    request: Request
    source: Source
    failover: int = 0
    response: tuple[HeaderChange, ...] = ()


class ToOriginal(Value, frozen=True, tag="original"):
    """Sent where the client was going in the first place."""

    request: Request
    source: Source
    response: tuple[HeaderChange, ...] = ()


class Reply(Value, frozen=True, tag="reply"):
    """Answered by the proxy itself.

    `status` is the HTTP status; for gRPC it is 200 and `grpc` the code. `location` belongs to
    redirections.
    """

    status: int
    source: Source
    grpc: int | None = None
    message: str = ""
    location: str = ""


class Close(Value, frozen=True, tag="close"):
    """The connection is refused."""

    source: Source
    message: str = ""


class Admit(Value, frozen=True, tag="admit"):
    """Let in, by the authorization `source`; `audited`: only because nobody is kept out yet."""

    request: Request
    source: Source
    audited: bool = False
    response: tuple[HeaderChange, ...] = ()


Verdict = Forward | ToOriginal | Reply | Close | Admit


class Decision(Value, frozen=True):
    """The way and its end."""

    steps: tuple[Step, ...]
    verdict: Verdict


class Trail:
    """Collects the steps of one decision."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def note(self, source: Source, text: str) -> None:
        """One more step."""
        self._steps.append(Step(source, text))

    def end(self, verdict: Verdict) -> Decision:
        """The decision."""
        return Decision(tuple(self._steps), verdict)
