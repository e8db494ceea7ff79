"""A real `isthmus lab up`, started as a user would start it, and what may be left of it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.server import PATIENCE
from tests.support.until import until

SETTLING = 10.0
"""Seconds within which what was killed must be gone."""

Json = Any
"""What a command printed as JSON."""

KUBECTL = Path(sys.executable).with_name("kubectl")

CLAIMS = 40_559
"""A port that says of an address of loopback whose it is; nobody is ever answered there."""

_claims: dict[str, socket.socket] = {}
"""What this process has claimed. The kernel gives it back, whatever the process ends of."""


def loopback() -> str:
    """A part of 127.0.0.0/8 that no other lab of this machine's tests uses, until `give_back`."""
    for turn in range(190):
        number = 60 + (os.getpid() * 7 + turn) % 190
        claim = socket.socket()
        try:
            claim.bind((f"127.{number}.0.1", CLAIMS))
        except OSError:
            claim.close()
            continue
        _claims[f"127.{number}.0.0/16"] = claim
        return f"127.{number}.0.0/16"
    raise AssertionError("every part of loopback is taken")


def give_back(part: str) -> None:
    """Nobody uses it any more."""
    claim = _claims.pop(part, None)
    if claim is not None:
        claim.close()


class LabProcess:
    """`with LabProcess(state, topology) as lab:` has one that is ready; leaving ends it."""

    def __init__(
        self, state: Path, topology: Path | str, *flags: str, prefix: tuple[str, ...] = ()
    ) -> None:
        self.state = state
        self.loopback = loopback()
        command = [
            *prefix, sys.executable, "-m", "isthmus", "lab", "up", str(topology),
            "--state-dir", str(state), "--loopback", self.loopback, *flags,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> Self:
        try:
            line = self.line()
            assert line.endswith(" ready\n"), f"no ready line but {line!r}: {self._words()}"
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _words(self) -> str:
        self.process.kill()
        return self.process.communicate()[1].decode()

    def line(self) -> str:
        """The next line of its output; "" when it ended without one."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, f"no output after {PATIENCE} s"
        return self.process.stdout.readline().decode()

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; the exit code and what it wrote to stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()

    def close(self) -> None:
        """End it, in whatever state it is."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.communicate()
        give_back(self.loopback)

    def kubectl(self, *words: str, context: str = "", stdin: str | None = None) -> str:
        """What kubectl prints; it must succeed."""
        done = self.try_kubectl(*words, context=context, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def try_kubectl(
        self, *words: str, context: str = "", stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The same, whatever comes of it."""
        where = ["--context", context] if context else []
        return subprocess.run(
            self.command(*where, *words), input=stdin, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip

    def command(self, *words: str) -> list[str]:
        """The words of a kubectl command against this lab."""
        return [str(KUBECTL), "--kubeconfig", str(self.state / "kubeconfig"), *words]

    def get(self, *words: str, context: str = "") -> Json:
        """What `kubectl get ... -o json` prints."""
        return json.loads(self.kubectl("get", *words, "-o", "json", context=context))

    def get_config(self) -> Json:
        """The kubeconfig."""
        return json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))

    def wait(self, what: str, jsonpath: str, value: str, *, context: str = "") -> None:
        """Until a field of an object has a value."""
        condition = f"--for=jsonpath={{{jsonpath}}}={value}"
        self.kubectl("wait", what, condition, "--timeout=30s", context=context)

    def cli(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """One of the other `isthmus lab` commands."""
        command = [sys.executable, "-m", "isthmus", "lab", *words, "--state-dir", str(self.state)]
        if "--" in words:
            at = command.index("--")
            command = [*command[:at], *command[-2:], *command[at:-2]]
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=PATIENCE, check=False
        )

    @property
    def status(self) -> Json:
        """`isthmus lab status -o json`."""
        done = self.cli("status", "-o", "json")
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)


class Traces:
    """Everything of a lab that the kernel knows: its processes and their network namespaces."""

    def __init__(self, lab: LabProcess) -> None:
        inside = [pid for pid in _pids() if str(lab.state) in _command(pid)]
        spaces = {_namespace(pid, "pid") for pid in inside}
        own = _namespace("self", "pid")
        self._pid_spaces = spaces - {own, None}
        members = [pid for pid in _pids() if _namespace(pid, "pid") in self._pid_spaces]
        self._members = {int(pid): _command(pid) for pid in members}
        self.processes = len(members)
        self._networks = {_namespace(pid, "net") for pid in members} - {None}
        self.networks = len(self._networks)

    def pids(self, part: str = "") -> list[int]:
        """Its processes, by a part of their command line."""
        return [pid for pid, command in self._members.items() if part in command]

    def in_network(self, space: str) -> int:
        """One of its processes in a network namespace, as `readlink /proc/self/ns/net` says it."""
        return next(pid for pid in self._members if _namespace(str(pid), "net") == space)

    def left(self) -> list[str]:
        """Command lines of processes that still belong to it, or hold one of its networks.

        What the kernel has killed takes a moment to be gone.
        """
        with suppress(AssertionError):
            until(lambda: True if not self._left() else None, SETTLING, lambda: "")
        return self._left()

    def _left(self) -> list[str]:
        return [
            _command(pid)
            for pid in _pids()
            if _command(pid)  # a process that has ended and was not yet waited for has none
            and (
                _namespace(pid, "pid") in self._pid_spaces
                or _namespace(pid, "net") in self._networks
            )
        ]


def links() -> list[str]:
    """The machine's own network links."""
    return sorted(each.name for each in Path("/sys/class/net").iterdir())


def _pids() -> list[str]:
    return [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _namespace(pid: str, kind: str) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
    except OSError:
        return None
