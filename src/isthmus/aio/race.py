"""Several tasks for one result, of which no cancellation is lost.

In Python 3.11 a TaskGroup whose child fails in the moment in which its own task is cancelled raises
the failure, and the cancellation is forgotten: whoever then goes on after failures, goes on for
ever. `Task.cancelling()` does not tell either, because a group that fails while it is being left
counts one too many. Here the group is left only when all is done, so the count is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def race(first: Coroutine[Any, Any, T], *others: Coroutine[Any, Any, object]) -> T:
    """What `first` returns; the others end with it. The first that fails ends all, and is raised.

    Raises:
        CancelledError: the caller is cancelled, whatever else happened in that moment.
    """

    async def run(group: asyncio.TaskGroup) -> T:
        main = group.create_task(first)
        rest = [group.create_task(each) for each in others]
        await asyncio.wait([main])
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest)
        return main.result()

    return await _grouped(run)


async def together(*every: Coroutine[Any, Any, T]) -> list[T]:
    """What all return. The first that fails ends all, and is raised; CancelledError as `race`."""

    async def run(group: asyncio.TaskGroup) -> list[T]:
        tasks = [group.create_task(each) for each in every]
        if tasks:
            await asyncio.wait(tasks)
        return [task.result() for task in tasks]

    return await _grouped(run)


async def _grouped(run: Callable[[asyncio.TaskGroup], Coroutine[Any, Any, T]]) -> T:
    me = asyncio.current_task()
    assert me is not None  # noqa: S101  # a coroutine runs in a task
    before = me.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            return await run(group)
    except BaseExceptionGroup as failed:
        if me.cancelling() > before:
            raise asyncio.CancelledError from failed
        raise failed.exceptions[0] from None
