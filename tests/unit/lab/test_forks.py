"""The process that control planes are forked from, as far as it needs no namespaces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from isthmus.errors import Unavailable
from isthmus.lab.forks import LOST, Forked, Forks
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.process import Launch

SHOW = """
import sys
from pathlib import Path
from isthmus.lab.forkserver import show
show(sys.argv[1].split())
print(Path("/proc/self/cmdline").read_bytes().rstrip(bytes(1)).replace(bytes(1), b" ").decode())
"""


@pytest.mark.parametrize("words", ["python -m isthmus server --cluster east", "x"])
def test_a_command_line_can_be_shown(words: str) -> None:
    command = [sys.executable, "-c", SHOW, words, " " * 200]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{words}\n"


def test_no_more_is_shown_than_there_is_room_for() -> None:
    long = "w" * 5000
    command = [sys.executable, "-c", SHOW.replace("sys.argv[1]", f"{long!r}")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.strip()) == {"w"}


@pytest.mark.anyio
async def test_without_its_fork_server_a_lab_starts_no_server() -> None:
    forks = Forks()
    forks.attach()
    forks.process.send_signal(signal.SIGKILL)
    forks.process.wait()
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123  # it blocks nothing
        launch = Launch(
            argv=["isthmus"], env={}, namespace=Namespace.current("here"),
            stdout=nowhere.fileno(), stderr=nowhere.fileno(),
        )  # fmt: skip
        with pytest.raises((Unavailable, BrokenPipeError, ConnectionError)):
            await forks.start(launch)
        launch.namespace.close()
    forks.close()


@pytest.mark.anyio
async def test_what_has_ended_is_not_signalled() -> None:
    made = Forked(2**22 + 1)  # no process has such a number
    made.kill(signal.SIGTERM)
    made.ended(LOST)
    made.ended(0)
    assert await made.wait() == LOST
    made.kill(signal.SIGTERM)
