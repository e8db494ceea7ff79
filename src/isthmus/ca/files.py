"""Files that others read while we write them, and files nobody else may read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from isthmus.errors import UserFault


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` in one step: a reader sees the old bytes or the new, never half.

    The temporary file stands in the same directory and is made with `mode` before it holds a byte.
    OSError passes through: the caller knows what the file was for.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def private_directory(path: Path) -> None:
    """Make `path` (and its parents) if needed, and close it to everybody else (0700)."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except (FileExistsError, NotADirectoryError) as fault:
        raise UserFault(f"{path} is not a directory; name another one") from fault
    except OSError as fault:
        raise UserFault(f"cannot make the directory {path}: {fault.strerror}") from fault


def _sync_directory(path: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
