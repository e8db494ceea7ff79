"""A process that has imported a control plane, and becomes one for each request: by fork.

Importing takes longer than everything else that a server does before it is ready, and a lab has
several: so it is done once, while the lab itself still starts, and their memory is shared. What is
forked then runs `isthmus ARGUMENTS...` just as a process started with these words would, shows them
in its command line, and ends as that one would.

    python -m isthmus.lab.forkserver HANDLE PADDING

speaks over the Unix socket HANDLE; see `isthmus.lab.forks`. PADDING is room for command lines.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

LARGEST: Final = 1 << 20
"""Bytes of a request."""
HANDLES: Final = 3
"""Open files that come with one: network namespace, standard output, standard error."""
QUIET: Final = {"GRPC_ENABLE_FORK_SUPPORT": "0"}
"""gRPC's own preparations for forks: nothing of it has begun when we fork."""


def main(arguments: Sequence[str]) -> int:
    """Serve requests until the lab goes away; in a forked process: be what was asked for."""
    os.environ.update(QUIET)
    import isthmus.app.parts  # noqa: PLC0415  # all that takes time

    del isthmus
    gc.collect()
    gc.freeze()
    channel = socket.socket(fileno=int(arguments[0]))
    request, handles = _Forkserver(channel).run()
    if request is None:
        return 0
    return _become(request, handles)


class _Forkserver:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._children: dict[int, int] = {}
        """Process numbers by the handles that tell of their end."""

    def run(self) -> tuple[dict[str, Any] | None, list[int]]:
        """In the parent: until the channel closes. In a child: its request, with open files."""
        self._poll.register(self._channel.fileno(), select.POLLIN)
        while True:
            for handle, _ in self._poll.poll():
                if handle in self._children:
                    self._ended(handle)
                    continue
                data, handles, _, _ = socket.recv_fds(self._channel, LARGEST, HANDLES)
                if not data:
                    return None, []
                request = json.loads(data)
                if self._fork(request, handles):
                    return request, handles

    def _fork(self, request: dict[str, Any], handles: list[int]) -> bool:
        """Whether we are the child."""
        pid = os.fork()
        if pid == 0:
            self._channel.close()
            for each in self._children:
                os.close(each)
            return True
        for each in handles:
            os.close(each)
        tells = os.pidfd_open(pid)
        self._children[tells] = pid
        self._poll.register(tells, select.POLLIN)
        self._say({"id": request["id"], "pid": pid})
        return False

    def _ended(self, handle: int) -> None:
        pid = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(pid, 0)
        self._say({"pid": pid, "code": os.waitstatus_to_exitcode(status)})

    def _say(self, message: dict[str, int]) -> None:
        try:
            self._channel.send(json.dumps(message).encode())
        except OSError:
            return  # the lab is gone, and we go with it


def _become(request: dict[str, Any], handles: list[int]) -> int:
    """Be the process that was asked for."""
    from isthmus.lab.network import system  # noqa: PLC0415  # in the child alone

    network, output, errors = handles
    os.setsid()
    os.umask(0o022)
    system.setns(network, system.CLONE_NEWNET)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for held, number in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(held, number)
    for each in {nothing, *handles}:
        os.close(each)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir("/")
    words = [str(each) for each in request["argv"]]
    show(words)
    # `python -m isthmus ...`: the interpreter and its switch are us already.
    sys.argv = words[2:]
    runpy.run_module("isthmus", run_name="__main__", alter_sys=True)
    return 0


def show(words: Sequence[str]) -> None:
    """Make /proc/PID/cmdline say these words, as far as there is room."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, the 48th and 49th
    room = end - start
    if room > 1:
        text = b"\0".join(os.fsencode(each) for each in words)[: room - 1]
        ctypes.memmove(start, text.ljust(room, b"\0"), room)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
