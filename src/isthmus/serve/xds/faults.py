"""How things go wrong on a stream: mapped to a status once, with short texts."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, NoReturn

import grpc

from isthmus.aio import Log
from isthmus.errors import IsthmusError
from isthmus.serve.xds.contract import Refusal

LONGEST = 256
"""Characters of a status text: it travels in trailers, whose size peers limit."""

Context = grpc.aio.ServicerContext[bytes, bytes]
Handler = Callable[[Any, Context], Awaitable[None]]


async def read(context: Context) -> bytes | None:
    """The next request; None when the peer sends no more."""
    data: Any = await context.read()
    return None if data is grpc.aio.EOF else data


class Refused(Exception):
    """Ends a stream with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def guarded(handler: Callable[[Context], Awaitable[None]], log: Log) -> Handler:
    """A handler of streams that ends with a status, whatever happens in it."""

    @wraps(handler)
    async def guard(_requests: Any, context: Context) -> None:  # noqa: ANN401  # read by `read`
        try:
            await handler(context)
        except Exception as fault:  # noqa: BLE001  # the edge: nothing of ours passes it
            refusal = refusal_of(fault, log)
        else:
            return
        await abort(context, refusal)

    return guard


async def abort(context: Context, refusal: Refusal) -> NoReturn:
    """End the stream with the status."""
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
        case BaseExceptionGroup() if len(fault.exceptions) == 1:
            return refusal_of(fault.exceptions[0], log)
    number = secrets.token_hex(4)
    log.warning("internal error", id=number, exc_info=fault)
    return Refusal("INTERNAL", f"internal error {number}")
