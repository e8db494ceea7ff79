"""What every long-running part is given: time, chance, a log, and the wish to go on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import NamedTuple

from isthmus.aio import Clock, Log, supervise

Run = Callable[[], Coroutine[None, None, None]]


class Means(NamedTuple):
    """Clock, chance and log of one server."""

    clock: Clock
    random: Random
    log: Log

    async def keep(self, name: str, run: Run) -> None:
        """Run the part, and again when it fails, while the others go on; until it returns."""
        await supervise(name, run, clock=self.clock, random=self.random, log=self.log)
