"""The real kubectl, unmodified, with a home of its own."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

PATIENCE = 60.0
"""Seconds that a command may take on a busy machine."""

MANIFESTS = Path(__file__).parent / "manifests"
BINARY = Path(sysconfig.get_path("scripts")) / "kubectl"


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class Kubectl:
    """Commands as one user of one cluster.

    kubectl caches discovery by address, so a home belongs to one server.
    """

    def __init__(self, kubeconfig: Path, home: Path, namespace: str = "") -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
        }
        self._fixed = [str(BINARY), "--cache-dir", str(home / "cache")]
        if namespace:
            self._fixed += ["--namespace", namespace]
        self.home = home
        self._kubeconfig = kubeconfig

    def within(self, namespace: str) -> Kubectl:
        """The same in a namespace."""
        return Kubectl(self._kubeconfig, self.home, namespace)

    def say(self, *words: str, stdin: str = "", **environment: str) -> Said:
        """Run a command, whatever comes of it."""
        done = subprocess.run(
            [*self._fixed, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env={**self._environment, **environment},
            timeout=PATIENCE,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, stdin: str = "", **environment: str) -> str:
        """Run a command that must succeed; its output."""
        said = self.say(*words, stdin=stdin, **environment)
        assert said.code == 0, f"kubectl {' '.join(words)}\n{said.out}{said.err}"
        return said.out

    def fails(self, *words: str, stdin: str = "") -> str:
        """Run a command that must fail; what it says on stderr."""
        said = self.say(*words, stdin=stdin)
        assert said.code != 0, f"kubectl {' '.join(words)} succeeded\n{said.out}"
        return said.err

    def read(self, *words: str) -> Any:  # noqa: ANN401 - bytes become values
        """An object, as `get -o json` shows it."""
        return msgspec.json.decode(self("get", *words, "-o", "json").encode())

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on, with its output to read; ended with the block."""
        process = subprocess.Popen(
            [*self._fixed, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def line_of(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> str:
    """The next line of its output that is wanted; fails at its end."""
    assert process.stdout is not None
    for line in process.stdout:
        if wanted(line):
            return line
    raise AssertionError("the command ended without the line")
