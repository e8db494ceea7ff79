"""One server per data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.app import lock
from isthmus.errors import UserFault

HOLD = """
import sys, pathlib
from isthmus.app import lock
with lock.hold(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with (
            pytest.raises(UserFault, match=rf"pid {first.pid}\) uses .*--data-dir"),
            lock.hold(tmp_path),
        ):
            pytest.fail("two hold it")
        first.kill()
        first.wait()
    with lock.hold(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_it_can_be_held_again(tmp_path: Path) -> None:
    with lock.hold(tmp_path):
        pass
    with lock.hold(tmp_path):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_place_without_room_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UserFault, match="cannot write in the data directory"),
        lock.hold(tmp_path / "missing"),
    ):
        pytest.fail("held")
