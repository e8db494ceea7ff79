"""One server per data directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isthmus.errors import UserFault

NAME = "lock"


@contextmanager
def hold(data_dir: Path) -> Iterator[None]:
    """Own the directory for the block. The kernel releases the lock however the process ends.

    Raises:
        UserFault: another server owns it (its pid is named), or the directory cannot be written.
    """
    path = data_dir / NAME
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise _unwritable(data_dir, fault) from fault
    try:
        _acquire(handle, data_dir)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, data_dir: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        owner = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
        raise UserFault(
            f"another isthmus server (pid {owner}) uses {data_dir}; "
            "stop it, or name another --data-dir"
        ) from fault
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except OSError as fault:
        raise _unwritable(data_dir, fault) from fault


def _unwritable(data_dir: Path, fault: OSError) -> UserFault:
    return UserFault(
        f"cannot write in the data directory {data_dir}: {fault.strerror}; "
        "make room and give it to this user, or name another --data-dir"
    )
