"""What goes on in a lab while a test does something: frames on the wire, programs beside it."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.lab import LabProcess, Traces
from tests.support.server import PATIENCE

CAPTURE = """
import os, select, socket, sys
from isthmus.lab.network import system
pid = sys.argv[1]
def space(kind): return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
if os.stat(f"/proc/{pid}/ns/user").st_ino != os.stat("/proc/self/ns/user").st_ino:
    system.setns(space("user"), system.CLONE_NEWUSER)
system.setns(space("net"), system.CLONE_NEWNET)
every = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
every.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
print("goes", flush=True)
out = open(1, "wb", buffering=0, closefd=False)
while True:
    ready, _, _ = select.select([every, 0], [], [])
    if every in ready:
        out.write(every.recv(65536))
    elif not os.read(0, 1):
        break
"""


def server(lab: LabProcess) -> int:
    """The control plane's process, as this machine counts."""
    return Traces(lab).pids("isthmus server")[0]


@contextmanager
def beside(command: list[str]) -> Iterator[Callable[[], bytes]]:
    """A process that says `goes`; the value ends it by the end of its input: its further output."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            assert ready and process.stdout.readline() == b"goes\n"  # noqa: PT018

            def end() -> bytes:
                out, errors = process.communicate(timeout=PATIENCE)
                assert process.returncode == 0, errors.decode()
                return out

            yield end
        finally:
            process.kill()


@contextmanager
def capture(lab: LabProcess) -> Iterator[Callable[[], bytes]]:
    """Every frame that the cluster's router carries from pod to pod."""
    with beside([sys.executable, "-c", CAPTURE, str(server(lab))]) as end:
        yield end
