"""How things go wrong on a gRPC call: mapped once, with short texts.

What leaves a handler as an exception would reach the client as UNKNOWN, with the name of a class.
Texts travel in HTTP/2 trailers, whose size peers limit: a long one breaks the connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc

from isthmus.aio import Log
from isthmus.errors import IsthmusError
from isthmus.serve.linkerd.method import Refusal

LONGEST = 256
"""Characters of a status text."""

Context = grpc.aio.ServicerContext[bytes, bytes]
Handler = Callable[[bytes, Context], Awaitable[None]]
Answer = Callable[[bytes, Context], Awaitable[bytes]]

T = TypeVar("T")


class Refused(Exception):
    """Ends a call with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def guarded(
    handler: Callable[[bytes, Context], Awaitable[T]], log: Log
) -> Callable[[bytes, Context], Awaitable[T]]:
    """A handler that ends with a status, whatever happens in it."""

    @wraps(handler)
    async def guard(request: bytes, context: Context) -> T:
        try:
            return await handler(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as fault:  # noqa: BLE001  # the edge: nothing of ours passes it
            refusal = refusal_of(fault, log)
        return await abort(context, refusal)

    return guard


async def abort(context: Context, refusal: Refusal) -> NoReturn:
    """End the call with the status."""
    await context.abort(grpc.StatusCode[refusal.status], shorten(refusal.text))


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
    fields: dict[str, Any] = {"id": number, "exc_info": fault}
    log.warning("internal error", **fields)
    return Refusal("INTERNAL", f"internal error {number}")


def _foreseen(fault: BaseException) -> bool:
    return isinstance(fault, (IsthmusError, Refused))
