"""Finds the Chromium that tests/web drive; installs it with Debian's own tools where it is missing.

Prints its path. Emoji fonts come with it: what a page of faces looks like depends on them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("chromium", "fonts-noto-color-emoji", "fonts-dejavu-core")


def find() -> str | None:
    """Chromium, if it is there."""
    return shutil.which("chromium")


def install() -> str:
    """Chromium, installed if need be. One process at a time installs, the others wait for it."""
    with (Path(tempfile.gettempdir()) / f"isthmus-browser-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find()
        if found is None:
            _apt("update", "-qq")
            _apt("install", "-qq", "-y", "--no-install-recommends", *PACKAGES)
            found = find()
    if found is None:
        sys.exit("browser: chromium was installed and is not on PATH")
    return found


def _apt(*words: str) -> None:
    tool = shutil.which("apt-get")
    if tool is None:
        sys.exit("browser: there is no chromium, and no apt-get to install it with")
    command = [tool, *words] if os.geteuid() == 0 else ["sudo", "-n", tool, *words]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        wanted = " ".join(PACKAGES)
        sys.exit(f"browser: `{' '.join(command)}` failed; install {wanted} by hand")


if __name__ == "__main__":
    print(find() or install())
