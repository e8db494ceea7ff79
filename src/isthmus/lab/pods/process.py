"""A process in the namespaces of a pod.

Namespaces are the thread's own on Linux, so each process is started by a thread that enters them
first and ends afterwards; nothing runs between fork and exec, and no helper process stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.lab.network import system
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.mounts import Mount, View


class World(NamedTuple):
    """Open handles of what a running container sees, for those who join it."""

    mounts: int
    root: int


class Launch(NamedTuple):
    """What to start, and where."""

    argv: Sequence[str]
    env: Mapping[str, str]
    namespace: Namespace
    cwd: str = "/"
    hostname: str = ""
    mounts: Sequence[Mount] = ()
    world: World | None = None
    """Join this instead of making a mount namespace."""
    user: int | None = None
    group: int | None = None
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    """Open files; None: /dev/null."""


class Process:
    """A started process: the leader of its own session and process group."""

    def __init__(self, popen: subprocess.Popen[bytes], world: World | None) -> None:
        self.pid = popen.pid
        self.world = world
        self._popen = popen
        self._handle = os.pidfd_open(popen.pid)
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        code = self._popen.poll()
        if code is None:
            return
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._kill_group(signal.SIGKILL)  # what it left behind
        if self.world is not None:
            os.close(self.world.mounts)
            os.close(self.world.root)
            self.world = None
        self._ended.set_result(code)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.done()

    async def wait(self) -> int:
        """Its exit code; minus the signal's number if a signal ended it."""
        return await asyncio.shield(self._ended)

    def kill(self, number: int) -> None:
        """Send it a signal; SIGKILL reaches all it started too. Harmless when it has ended."""
        if not self.running:
            return
        if number == signal.SIGKILL:
            self._kill_group(number)
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def _kill_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


async def start(launch: Launch) -> Process:
    """Start it.

    Raises:
        OSError: it cannot be started: the program, the folder or a mount is not there.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[subprocess.Popen[bytes], World | None]] = loop.create_future()

    def work() -> None:
        try:
            result = _start(launch)
        except BaseException as error:  # noqa: BLE001  # told to the one who waits
            loop.call_soon_threadsafe(_fail, future, error)
        else:
            loop.call_soon_threadsafe(future.set_result, result)

    threading.Thread(target=work, name="launch", daemon=True).start()
    try:
        popen, world = await asyncio.shield(future)
    except asyncio.CancelledError:
        future.add_done_callback(_unwanted)
        raise
    return Process(popen, world)


def _fail(
    future: asyncio.Future[tuple[subprocess.Popen[bytes], World | None]], error: BaseException
) -> None:
    future.set_exception(error)


def _unwanted(future: asyncio.Future[tuple[subprocess.Popen[bytes], World | None]]) -> None:
    """Nobody waits for it any more."""
    if future.exception() is None:
        popen, world = future.result()
        Process(popen, world).kill(signal.SIGKILL)


def _start(launch: Launch) -> tuple[subprocess.Popen[bytes], World | None]:
    """In a thread of its own, whose namespaces are changed for good."""
    system.setns(launch.namespace.handle, system.CLONE_NEWNET)
    if launch.world is not None:
        system.unshare(system.CLONE_FS)
        system.setns(launch.world.mounts, system.CLONE_NEWNS)
        os.fchdir(launch.world.root)
        os.chroot(".")
    else:
        system.unshare(system.CLONE_NEWNS)
        View().apply(launch.mounts)
    if launch.hostname:
        system.unshare(system.CLONE_NEWUTS)
        system.sethostname(launch.hostname)
    popen = subprocess.Popen(
        list(launch.argv),
        env=dict(launch.env),
        cwd=launch.cwd,
        stdin=_or_nothing(launch.stdin),
        stdout=_or_nothing(launch.stdout),
        stderr=_or_nothing(launch.stderr),
        start_new_session=True,
        umask=0o022,
        user=launch.user,
        group=launch.group,
        extra_groups=None if launch.user is None else [],
    )
    if launch.world is not None:
        return popen, None
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    return popen, World(system.mount_namespace(), root)


def _or_nothing(handle: int | None) -> int:
    return subprocess.DEVNULL if handle is None else handle


def kill_all(namespace: Namespace) -> None:
    """Kill whatever still runs in a network namespace, whoever started it."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):
            if os.stat(f"/proc/{entry.name}/ns/net").st_ino == namespace.inode:  # noqa: PTH116
                os.kill(_own_number(entry.name), signal.SIGKILL)


def _own_number(pid: str) -> int:
    """The process number as this PID namespace counts: the last that /proc tells of."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    raise ValueError(f"process {pid} has no number here")
