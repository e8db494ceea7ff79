"""What a container sees where: bind mounts in its own mount namespace, the machine untouched.

A mount needs something to be mounted on, and a machine seldom has `/var/run/secrets/...`. So the
nearest folder that is there is replaced, in this mount namespace only, by a small file system in
memory that shows everything the folder showed and has room for more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from isthmus.lab.network import system
from isthmus.lab.network.sandbox import SCRATCH


class Mount(NamedTuple):
    """`source`, a file or folder, shown at `target`."""

    source: str
    target: str
    read_only: bool = False


class View:
    """Builds what one container sees, in the calling thread's mount namespace."""

    def __init__(self) -> None:
        self._ours: set[str] = set()
        """Folders that are in memory, by their whole names."""

    def apply(self, mounts: Iterable[Mount]) -> None:
        """Mount everything, shorter targets first; OSError names what cannot be."""
        for mount in sorted(mounts, key=lambda each: len(each.target)):
            target = os.path.realpath(mount.target)
            is_folder = Path(mount.source).is_dir()
            if not os.path.lexists(target):
                self._make_room(target, is_folder=is_folder)
            system.bind(mount.source, target, read_only=mount.read_only)
            if mount.source.startswith(f"{SCRATCH}/") and is_folder and not mount.read_only:
                self._ours.add(target)  # an emptyDir: mounts inside it are made in it
            else:
                self._ours.discard(target)

    def _make_room(self, target: str, *, is_folder: bool) -> None:
        parent = _nearest(target)
        if parent not in self._ours:
            self._replace(parent)
        # What is made here is in memory, and ours: nothing else is ever written to.
        path = Path(target)
        for folder in reversed(path.parents):
            if not os.path.lexists(folder):
                folder.mkdir()
                folder.chmod(0o755)
                self._ours.add(str(folder))
        if is_folder:
            path.mkdir()
        else:
            path.touch()

    def _replace(self, folder: str) -> None:
        name = hashlib.sha256(folder.encode()).hexdigest()[:16]
        if folder == "/":
            self._new_root(SCRATCH / "root")
            return
        stash = SCRATCH / "stash" / name
        stash.mkdir(parents=True, exist_ok=True)
        system.bind(folder, str(stash))
        mode = os.stat(folder).st_mode & 0o7777  # noqa: PTH116
        system.mount("tmpfs", folder, "tmpfs", system.MS_NOSUID, f"mode={mode:o}")
        for entry in os.scandir(stash):
            Path(folder, entry.name).symlink_to(
                os.readlink(entry.path) if entry.is_symlink() else entry.path  # noqa: PTH115
            )
        self._ours.add(folder)

    def _new_root(self, root: Path) -> None:
        """A root of our own with everything of the old one, and the thread moved into it."""
        root.mkdir(exist_ok=True)
        system.mount("tmpfs", str(root), "tmpfs", system.MS_NOSUID, "mode=755")
        for entry in os.scandir("/"):
            here = root / entry.name
            if entry.is_symlink():
                here.symlink_to(os.readlink(entry.path))  # noqa: PTH115
            elif entry.is_dir():
                here.mkdir()
                system.bind(entry.path, str(here))
            else:
                here.touch()
                system.bind(entry.path, str(here))
        os.chroot(root)
        os.chdir("/")
        self._ours.add("/")


def _nearest(target: str) -> str:
    """The closest ancestor that is there."""
    folder = os.path.dirname(target)  # noqa: PTH120
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder
