"""Starting an Envoy in a workload's network namespace, and knowing when it ends.

A namespace belongs to a thread, so one thread does nothing but start processes and touch rules: it
enters a namespace, does one thing, and is home again. No code of ours runs between fork and exec.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from isthmus.agent.binary import Binary
from isthmus.agent.contract import Namespace

T = TypeVar("T")

PROXY_UID: Final = 2102
"""The user of sidecars, as in Linkerd: redirect rules know the proxy by it."""
MARK: Final = 2102
"""SO_MARK of the proxy's own connections, where there is but one user."""


class Ended(NamedTuple):
    """How a process ended: its exit code, or minus a signal's number."""

    code: int


class Process:
    """A running Envoy, the leader of its own session."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self._popen = popen
        self._handle = os.pidfd_open(popen.pid)
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        code = self._popen.poll()
        if code is None:
            return
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._ended.set_result(Ended(code))

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.done()

    async def wait(self) -> Ended:
        """How it ended, when it has."""
        return await asyncio.shield(self._ended)

    def kill(self, number: int) -> None:
        """Send a signal; harmless when it has ended. By its handle: a pid may be another's."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)


class Launch(NamedTuple):
    """What to start."""

    binary: Binary
    arguments: tuple[str, ...]
    folder: Path
    """Its working directory."""
    log: Path
    user: int | None
    """None: as we are."""


class Hand:
    """The one thread that enters namespaces."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agent-hand")

    async def inside(self, namespace: Namespace, work: Callable[[], T]) -> T:
        """Do `work` inside; what was begun is finished, even if the waiter is cancelled."""

        def enter() -> T:
            with namespace.entered():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._pool, enter)

    async def start(self, launch: Launch, namespace: Namespace) -> Process:
        """Start an Envoy. OSError if that cannot be."""
        work = asyncio.get_running_loop().create_task(
            self.inside(namespace, lambda: _start(launch))
        )
        try:
            return Process(await asyncio.shield(work))
        except asyncio.CancelledError:
            work.add_done_callback(_unwanted)
            raise

    def close(self) -> None:
        """Finish what was begun."""
        self._pool.shutdown(wait=True)


def _unwanted(work: asyncio.Task[subprocess.Popen[bytes]]) -> None:
    if not work.cancelled() and work.exception() is None:
        popen = work.result()
        popen.kill()
        popen.wait()


def _start(launch: Launch) -> subprocess.Popen[bytes]:
    launch.log.parent.mkdir(parents=True, exist_ok=True)
    with launch.log.open("ab") as log:
        return subprocess.Popen(
            ["envoy", *launch.arguments],  # noqa: S607  # the handle says which
            executable=launch.binary.executable,
            pass_fds=(launch.binary.handle,),
            cwd=launch.folder,
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=launch.user,
            group=launch.user,
            extra_groups=None if launch.user is None else [],
        )
