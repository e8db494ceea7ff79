"""The order in which a server starts, and in which it stops.

Start: lock, sockets, keys, store, then everything at once; when the first sync is done and all
listen, the files are written and one line is printed. Stop: everything at once is cancelled and
drains (new requests are refused, watches end, what was accepted is written), then the store closes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from random import SystemRandom

import structlog

from isthmus import ca
from isthmus.aio import SystemClock
from isthmus.app import limits, lock, logs
from isthmus.app.means import Means
from isthmus.app.parts import Parts
from isthmus.config import ServerConfig

LAST_RESORT = 4.5
"""Seconds after which a server that was told to stop ends, whatever it still does. What was
acknowledged is durable by then: a request that is still being answered was not."""


def serve(config: ServerConfig) -> int:
    """Run one cluster's control plane until SIGTERM or SIGINT; then return 0.

    Raises:
        UserFault: it cannot start, and somebody must do something: the message says what.
    """
    logs.configure(config.log_format)
    os.umask(0o077)
    limits.raise_file_limit()
    limits.let_threads_in()
    ca.private_directory(config.data_dir)
    with lock.hold(config.data_dir):
        means = Means(SystemClock(), SystemRandom(), structlog.get_logger())
        asyncio.run(Server(config, means).run())
    return 0


class Server:
    """One run of a server, on one loop."""

    def __init__(self, config: ServerConfig, means: Means) -> None:
        self._config = config
        self._clock, _, self._log = means
        self._parts = Parts(config, means, lambda: self._stopping)
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def run(self) -> None:
        """Serve until a signal comes."""
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        try:
            await self._serve()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        self._log.info("stopped", cluster=self._config.cluster)

    async def _serve(self) -> None:
        async with self._parts as parts, asyncio.TaskGroup() as group:
            for name, run in parts.runs:
                group.create_task(run(), name=name)
            await parts.readiness.settled()
            limits.settle_memory()
            await parts.announce(group)
            _say(f"isthmus: cluster {self._config.cluster} ready")
            self._log.info("ready", cluster=self._config.cluster, **parts.told)

    def _stop(self, number: int) -> None:
        if self._stopping or self._task is None:
            return
        self._stopping = True
        self._log.info("stopping", signal=signal.Signals(number).name)
        self._clock.call_later(LAST_RESORT, _give_up)
        self._task.cancel()


def _say(line: str) -> None:
    """The one line on stdout. Nobody need be there to read it."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  # or the exit complains


def _give_up() -> None:
    os._exit(0)
