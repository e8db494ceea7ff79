"""A shell in which the workshop's words mean what they mean in a lab.

`linkerd` is isthmus, `docker` is `isthmus lab` (docker run, docker stop), `kubectl` is the real
one, `bat` prints a file, and `watch` looks once instead of for ever.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from isthmus.errors import UserFault

PATIENCE: Final = 120.0
"""Seconds that one command may take."""


class Done(NamedTuple):
    """What came of a command. `text` is all it printed, on both outputs, in order."""

    code: int
    text: str


class Shell:
    """Made in an empty folder, which holds its words and the manifests."""

    def __init__(self, folder: Path, *, kubeconfig: Path, state: Path) -> None:
        """UserFault if this machine has no kubectl."""
        self._folder = folder
        words = folder / "bin"
        words.mkdir()
        isthmus = f"{shlex.quote(sys.executable)} -m isthmus"
        for name, command in (
            ("linkerd", isthmus),
            ("docker", f"{isthmus} lab"),
            ("kubectl", shlex.quote(kubectl())),
            ("bat", "cat"),
            ("watch", ""),
        ):
            script = words / name
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o755)
        shutil.copytree(str(files("isthmus.lab.workshop") / "k8s"), folder / "k8s")
        self._env = {
            **os.environ,
            "PATH": f"{words}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "KUBECONFIG": str(kubeconfig),
            "ISTHMUS_LAB_STATE_DIR": str(state),
            "HOME": str(folder),  # kubectl's cache, which would outlive the lab
        }

    def run(self, command: str) -> Done:
        """Run a command line; a part of a pipe that fails is a failure."""
        try:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],  # noqa: S607  # whichever bash there is
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as fault:
            told = (fault.stdout or b"").decode(errors="replace")  # bytes even so
            return Done(124, f"{told}\n(no end after {PATIENCE:g} s)")
        return Done(done.returncode, done.stdout)


def kubectl() -> str:
    """The kubectl beside this Python, else the one on PATH. UserFault if there is none."""
    near = Path(sys.executable).with_name("kubectl")
    found = str(near) if near.exists() else shutil.which("kubectl")
    if found is None:
        raise UserFault("there is no kubectl on PATH, and the walk types its commands")
    return found
