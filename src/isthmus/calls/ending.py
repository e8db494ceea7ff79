"""How things go wrong on a gRPC call: mapped to a status once, with short texts.

What leaves a handler as an exception would reach the client as UNKNOWN, with the name of a class.
Texts travel in HTTP/2 trailers, whose size peers limit: a long one breaks the connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, TypeVar

import grpc

from isthmus.aio import Log
from isthmus.calls.refusal import Refusal, Refused
from isthmus.errors import IsthmusError

LONGEST: Final = 256
"""Characters of a status text."""

Context = grpc.aio.ServicerContext[bytes, bytes]

T = TypeVar("T")


def guarded(
    handler: Callable[[Any, Context], Awaitable[T]], log: Log
) -> Callable[[Any, Context], Awaitable[T]]:
    """A handler that ends with a status, whatever happens in it.

    It is given the request, or the stream of requests, as gRPC hands it to `handler`.
    """

    @wraps(handler)
    async def guard(request: Any, context: Context) -> T:  # noqa: ANN401  # handed on
        try:
            return await handler(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as fault:  # noqa: BLE001  # the edge: nothing of ours passes it
            refusal = refusal_of(fault, log)
        return await context.abort(grpc.StatusCode[refusal.status], shorten(refusal.text))

    return guard


def shorten(text: str) -> str:
    """A text that fits a trailer: printable, on one line, not long."""
    line = "".join(each if each.isprintable() else " " for each in text[: LONGEST + 1])
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def refusal_of(fault: BaseException, log: Log) -> Refusal:
    """The status of an error. One that is none of ours is a bug: logged, told as a number."""
    match fault:
        case Refused():
            return fault.refusal
        case IsthmusError():
            return Refusal(fault.grpc, fault.message)
        case BaseExceptionGroup() if all(_foreseen(each) for each in fault.exceptions):
            return refusal_of(fault.exceptions[0], log)
    number = secrets.token_hex(4)
    log.warning("internal error", id=number, exc_info=fault)
    return Refusal("INTERNAL", f"internal error {number}")


def _foreseen(fault: BaseException) -> bool:
    return isinstance(fault, (IsthmusError, Refused))
