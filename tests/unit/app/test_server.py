"""What a process does to itself: limits, and the end that always comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_all_file_descriptors_we_may_have_are_ours() -> None:
    code = """
import resource
from isthmus.app.limits import raise_file_limit
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""
    assert python(code).stderr == ""


def test_what_is_there_after_the_first_sync_is_frozen() -> None:
    code = """
import gc
from isthmus.app.limits import settle_memory
settle_memory()
assert gc.get_freeze_count() > 1000
"""
    assert python(code).stderr == ""


STUBBORN = """
import asyncio, os, signal, sys
from isthmus.app import server
from isthmus.config import resolve

class Stubborn(server.Parts):
    async def _start(self):
        await super()._start()
        self.runs.append(("stubborn", self.never_ends))

    async def never_ends(self):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("no", flush=True)

server.Parts = Stubborn
server.LAST_RESORT = 0.2
surfaces = ("kube", "destination", "policy", "identity", "xds", "dns", "admin")
listen = [f"{name}=off" for name in surfaces]
flags = {"data_dir": sys.argv[1], "store": "memory:", "listen": listen}
server.serve(resolve(flags, {}))
print("ended by itself")
"""


def test_a_part_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "isthmus: cluster default ready\n"
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    assert rest == "no\n"
    assert process.returncode == 0


def test_a_reader_that_left_before_the_ready_line_stops_nobody(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "isthmus", "server", "--data-dir", str(tmp_path),
        "--store", "memory:", "--log-format", "json",
        "--listen", "kube=off,destination=off,policy=off,identity=off,xds=off",
        "--listen", "dns=off,admin=127.0.0.1:0",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b'"ready"' in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()
