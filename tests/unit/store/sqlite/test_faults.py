"""Real errors of SQLite, in our words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from isthmus.store.sqlite import faults

PATH = Path("/data/store.db")


def caught(database: str, *statements: str) -> sqlite3.Error:
    connection = sqlite3.connect(database, uri=True, isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    pytest.fail("SQLite did not mind")


def made(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_SOMETHING"
    return error


def test_a_full_disk() -> None:
    error = caught(
        ":memory:", "PRAGMA max_page_count = 2", "CREATE TABLE a (x)", "CREATE TABLE b (x)"
    )
    said = faults.fault(error, PATH)
    assert said.message == (
        "no space is left for /data/store.db; nothing was written. "
        "Free some space: then writes succeed again"
    )
    assert said.http == 503
    assert not faults.fatal(error)


def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    caught(f"file:{path}", "CREATE TABLE a (x)", "nonsense")
    error = caught(f"file:{path}?mode=ro", "CREATE TABLE b (x)")
    assert "give this user the right to write it" in faults.fault(error, PATH).message
    assert not faults.fatal(error)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError) as error:
        sqlite3.connect(tmp_path / "none" / "x.db")
    assert "its directory must exist" in faults.fault(error.value, PATH).message


def test_damage_and_unconfirmed_writes_are_fatal(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"no database" * 1_000)
    assert faults.fatal(caught(f"file:{path}", "SELECT * FROM a"))
    assert faults.fatal(made(sqlite3.SQLITE_CORRUPT_INDEX))
    assert faults.fatal(made(sqlite3.SQLITE_IOERR_FSYNC))
    assert not faults.fatal(made(sqlite3.SQLITE_IOERR_WRITE))


def test_anything_else_is_told_with_its_name() -> None:
    said = faults.fault(made(sqlite3.SQLITE_IOERR_WRITE), PATH).message
    assert said == "/data/store.db: disk I/O error (SQLITE_SOMETHING)"
    assert "?" in faults.fault(sqlite3.ProgrammingError("closed"), PATH).message
