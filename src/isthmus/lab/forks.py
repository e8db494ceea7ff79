"""The lab's side of the fork server: control planes that start without importing anything.

`begin` before the lab itself imports what it needs: both then do so at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any, Final, Protocol

from isthmus.errors import Unavailable
from isthmus.lab.pods.process import Launch

ROOM: Final = 3000
"""Characters of a command line that can be shown."""
LARGEST: Final = 1 << 16
LOST: Final = -int(signal.SIGKILL)
"""The exit code of what ended with its fork server."""


class Running(Protocol):
    """A process of the lab, however it was started."""

    pid: int

    async def wait(self) -> int:
        """Its exit code; minus the signal's number if a signal ended it."""
        ...

    def kill(self, number: int) -> None:
        """Send it a signal. Harmless when it has ended."""
        ...


class Forked:
    """A process that was forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def ended(self, code: int) -> None:
        """It is known to have ended."""
        if not self._ended.done():
            self._ended.set_result(code)

    async def wait(self) -> int:
        """See `Running`."""
        return await asyncio.shield(self._ended)

    def kill(self, number: int) -> None:
        """See `Running`."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


class Forks:
    """One fork server. Made outside of any loop, attached to one; it ends with the lab."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "isthmus.lab.forkserver", str(theirs.fileno()),
                    " " * ROOM,
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
            )  # fmt: skip
        self._channel.setblocking(False)
        self._asked: dict[int, asyncio.Future[Forked]] = {}
        self._running: dict[int, Forked] = {}
        self._last = 0
        self._lost = False

    def close(self) -> None:
        """End it, and all that it forked loses its parent."""
        self._channel.close()
        self.process.wait()

    def attach(self) -> None:
        """Hear what it says, on the running loop."""
        asyncio.get_running_loop().add_reader(self._channel, self._hear)

    async def start(self, launch: Launch) -> Forked:
        """A process as `launch` wants it: `isthmus ...`, with a network namespace of its own.

        Raises:
            Unavailable: the fork server has ended.
            OSError: the request cannot be sent.
        """
        if self._lost or launch.stdout is None or launch.stderr is None:
            raise Unavailable("there is no fork server any more")
        self._last += 1
        number = self._last
        asked: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._asked[number] = asked
        request = {"id": number, "argv": list(launch.argv), "env": dict(launch.env)}
        handles = [launch.namespace.handle, launch.stdout, launch.stderr]
        socket.send_fds(self._channel, [json.dumps(request).encode()], handles)
        return await asked

    def _hear(self) -> None:
        try:
            data = self._channel.recv(LARGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        message: dict[str, Any] = json.loads(data)
        pid = int(message["pid"])
        if "code" in message:
            ended = self._running.pop(pid, None)
            if ended is not None:
                ended.ended(int(message["code"]))
            return
        made = self._running[pid] = Forked(pid)
        asked = self._asked.pop(int(message["id"]))
        if not asked.done():
            asked.set_result(made)
        else:  # nobody waits for it any more
            made.kill(signal.SIGKILL)

    def _lose(self) -> None:
        """It has ended: what it forked is nobody's child, and cannot be waited for."""
        self._lost = True
        asyncio.get_running_loop().remove_reader(self._channel)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(Unavailable("the fork server has ended"))
        for each in self._running.values():
            each.kill(signal.SIGKILL)
            each.ended(LOST)
        self._asked.clear()
        self._running.clear()
