"""What went wrong with the file, in words that say what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from isthmus.errors import Unavailable

_PRIMARY: Final = 0xFF
"""The low byte of an extended result code is the code that SQLite documents first."""

_FATAL: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def fault(error: sqlite3.Error, path: Path) -> Unavailable:
    """The error as ours. What was being written has not happened."""
    code = _code(error) & _PRIMARY
    match code:
        case sqlite3.SQLITE_FULL:
            text = (
                f"no space is left for {path}; nothing was written. "
                "Free some space: then writes succeed again"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            text = f"{path} is in use by another process; one server may use a data directory"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            text = f"{path} cannot be written ({error}); give this user the right to write it"
        case sqlite3.SQLITE_CANTOPEN:
            text = (
                f"{path} cannot be opened ({error}); its directory must exist, "
                "and this user must be able to write in it"
            )
        case sqlite3.SQLITE_CORRUPT:
            return damaged(path, str(error))
        case sqlite3.SQLITE_NOTADB:
            text = f"{path} is not an SQLite database; move it away, or name another file"
        case _:
            text = f"{path}: {error} ({getattr(error, 'sqlite_errorname', '?')})"
    return Unavailable(text)


def fatal(error: sqlite3.Error) -> bool:
    """The file can no longer be trusted: it is damaged, or the disk did not confirm a write.

    After a failed fsync the kernel may have dropped the data, and a second try would report
    success.
    """
    code = _code(error)
    return code & _PRIMARY in _FATAL or code == sqlite3.SQLITE_IOERR_FSYNC


def damaged(path: Path, detail: str) -> Unavailable:
    """The file is ours and breaks its own rules. SQLite tells of it on several lines."""
    shown = " ".join(detail.split())
    return Unavailable(
        f"{path} is damaged ({shown}); put back a copy of it, "
        "or move it and its -wal file away to start with an empty store"
    )


def foreign(path: Path) -> Unavailable:
    """An SQLite file that somebody else made."""
    return Unavailable(f"{path} is a database of another program; name another file")


def other_schema(path: Path, schema: int, ours: int) -> Unavailable:
    """A file of a later version, which must not be touched."""
    return Unavailable(
        f"{path} has schema {schema}, this version of Isthmus knows {ours}: "
        "start the version that wrote it, or name another file"
    )


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code
