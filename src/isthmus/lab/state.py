"""Where a lab keeps its files, and how one tells whether it lives.

A lock that the kernel releases says whether a lab runs; `lab.json` says which process it is. All
else in the folder is the lab's own, and goes with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isthmus.errors import Unavailable, UserFault

DEFAULT = "~/.local/state/isthmus/lab"

_FOLDERS = ("clusters", "pods", "hosts", "trust")
_FILES = ("kubeconfig", "lab.sock", "lab.log", "lab.json")


class State:
    """The files of the lab in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()
        self.kubeconfig = self.folder / "kubeconfig"
        self.socket = self.folder / "lab.sock"
        self.log = self.folder / "lab.log"
        self._facts = self.folder / "lab.json"
        self._lock = self.folder / "lock"

    @contextmanager
    def hold(self, topology: str) -> Iterator[bool]:
        """Own the folder for the block, cleared of whatever a crash left; True if there was any.

        Raises:
            UserFault: a lab runs in it already, or it cannot be written.
        """
        from isthmus import ca  # noqa: PLC0415  # who only looks need not wait for it

        ca.private_directory(self.folder)
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise UserFault(f"cannot write in {self.folder}: {fault.strerror}") from fault
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as fault:
                raise UserFault(
                    f"a lab runs already in {self.folder} (pid {self.pid or 'unknown'}); end it "
                    "with `isthmus lab down`, or name another --state-dir and --loopback, such as "
                    "--state-dir ~/lab2 --loopback 127.56.0.0/16"
                ) from fault
            left = self._clear()
            facts = {"pid": os.getpid(), "topology": topology}
            ca.write_atomic(self._facts, json.dumps(facts).encode())
            yield left
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Remove everything of the lab, and the folder if nothing else is in it."""
        self._clear()
        self._lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody keeps files of his own there
            self.folder.rmdir()

    def _clear(self) -> bool:
        """Remove what a lab made; files of others are left alone."""
        left = False
        for name in _FOLDERS:
            path = self.folder / name
            left = left or path.exists()
            shutil.rmtree(path, ignore_errors=True)
        for name in _FILES:
            path = self.folder / name
            left = left or path.exists()
            path.unlink(missing_ok=True)
        return left

    # ------------------------------------------------------------------------ from other processes

    @property
    def pid(self) -> int:
        """The process that holds the folder, 0 if nobody says."""
        try:
            return int(json.loads(self._facts.read_text()).get("pid") or 0)
        except (OSError, ValueError, AttributeError):
            return 0

    @property
    def running(self) -> bool:
        """Whether a lab runs in it."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(handle)

    def require_running(self) -> None:
        """NotFound's sibling for people: UserFault when no lab runs."""
        if not self.running:
            raise UserFault(f"no lab runs in {self.folder}; start one with `isthmus lab up`")

    def end(self, patience: float) -> bool:
        """End the lab that runs, clear what is left; False if there was nothing at all.

        Raises:
            Unavailable: it does not end within `patience` seconds.
        """
        if not self.folder.exists():
            return False
        ran = self.running
        if ran:
            self._stop(self.pid, patience)
        left = self._clear()
        self.clear()
        return ran or left

    def _stop(self, pid: int, patience: float) -> None:
        try:
            handle = os.pidfd_open(pid)
        except (OSError, OverflowError):
            return
        try:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            ended, _, _ = select.select([handle], [], [], patience)
            if not ended:
                raise Unavailable(f"the lab (pid {pid}) does not end; kill it, then run this again")
        finally:
            os.close(handle)
