"""The log file: what it holds, what it forgets, what it refuses to open."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isthmus.errors import Unavailable
from isthmus.model.key import Key
from isthmus.store import Delete, Event, Op, Put, Record, Refused
from isthmus.store.decide import decide
from isthmus.store.sqlite import SCHEMA, File
from isthmus.store.sqlite.file import TRIM

A = Key("services", "faces", "a")
B = Key("services", "faces", "b")


class Written(File):
    """A file that is written without a store, and can be looked into."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.records = self.load().records

    def write(self, *transactions: tuple[Op, ...]) -> tuple[Event, ...]:
        """All transactions in one append."""
        events: list[Event] = []
        for revision, ops in enumerate(transactions, self.revision + 1):
            done = decide(self.records, (), ops, revision)
            assert not isinstance(done, Refused)
            events += done
            for event in done:
                self.records.pop(event.key, None)
                if event.record is not None:
                    self.records[event.key] = event.record
        self.append(events)
        return tuple(events)

    def rows(self) -> list[tuple[int, str, bytes | None]]:
        """(revision, name, value) of every row."""
        statement = "SELECT id >> 10, name, value FROM log ORDER BY id"
        return self._connection.execute(statement).fetchall()

    def limit(self, pages: int) -> None:
        self._connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def file(path: Path) -> Iterator[Written]:
    opened = Written(path)
    yield opened
    opened.close()


def change(path: Path, script: str) -> None:
    """Do to the file what no store does."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


# -------------------------------------------------------------------- what it holds


def test_what_is_appended_is_loaded(path: Path) -> None:
    file = Written(path)
    events = file.write((Put(A, b"1"), Put(B, b"1")), (Put(A, b"2"),), (Delete(B), Put(A, b"3")))
    file.close()
    again = File(path)
    loaded = again.load()
    assert tuple(loaded.log) == events
    assert loaded.records == {A: Record(A, b"3", 3, 1)}
    assert (loaded.revision, loaded.floor) == (3, 0)
    again.close()


def test_large_groups_are_whole(file: Written) -> None:
    """Rows go in by chunks of fixed sizes: every remainder must be among them."""
    for count in (1, 3, 4, 15, 16, 63, 64, 65, 85, 200, 1_000):
        file.write(tuple(Put(Key("pods", str(count), str(n)), b"") for n in range(count)))
    assert len(file.rows()) == 1 + 3 + 4 + 15 + 16 + 63 + 64 + 65 + 85 + 200 + 1_000


def test_the_file_is_for_its_owner_alone(file: Written, path: Path) -> None:
    file.write((Put(A, b"secret"),))
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600


def test_a_closed_file_stands_alone(path: Path) -> None:
    file = Written(path)
    file.write((Put(A, b"1"),))
    file.close()
    assert [each.name for each in path.parent.iterdir()] == ["store.db"]


def test_a_failed_append_leaves_nothing(file: Written) -> None:
    file.write((Put(A, b"1"),))
    held = file.rows()
    file.limit(1)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        file.write((Put(A, b"2"),), (Put(B, bytes(100_000)),))
    assert (file.rows(), file.revision) == (held, 1)
    file.limit(1_000)
    file.records = {A: Record(A, b"1", 1, 1)}
    file.write((Put(A, b"2"),))
    assert file.rows() == [(1, "a", b"1"), (2, "a", b"2")]


def test_an_append_that_fails_half_way_is_taken_back(file: Written) -> None:
    events = file.write((Put(A, b"1"),), (Put(B, b"1"),))
    late = Event(0, A, None, None)
    with pytest.raises(sqlite3.IntegrityError):
        file.append([*file.write((Put(A, b"2"),)), late._replace(revision=4), *events])
    assert file.rows() == [(1, "a", b"1"), (2, "b", b"1"), (3, "a", b"2")]
    file.write((Put(A, b"3"),))


# -------------------------------------------------------------------- what it forgets


def test_trimming_keeps_the_state_at_the_floor(file: Written) -> None:
    file.write((Put(A, b"1"),), (Put(A, b"2"), Put(B, b"2")), (Put(A, b"3"),), (Delete(B),))
    file.trim(2)
    assert file.rows() == [(2, "a", b"2"), (2, "b", b"2"), (3, "a", b"3"), (4, "b", None)]
    file.trim(4)
    assert file.rows() == [(3, "a", b"3")]
    file.write((Put(B, b"5"),), (Delete(B),), (Delete(A),))
    file.trim(7)
    assert file.rows() == []


def test_trimming_in_one_append_with_what_it_supersedes(file: Written) -> None:
    file.write((Put(A, b"1"),), (Put(A, b"2"),), (Delete(A),), (Put(A, b"4"),), (Put(A, b"5"),))
    file.trim(4)
    assert file.rows() == [(4, "a", b"4"), (5, "a", b"5")]


def test_trimming_goes_on_where_it_stopped(file: Written, path: Path) -> None:
    for start in range(0, 2 * TRIM + 500, 500):
        file.write(*((Put(A, str(start + n).encode()),) for n in range(500)))
    file.trim(2 * TRIM + 1)
    assert file.floor == 2 * TRIM + 1
    assert [row[0] for row in file.rows()] == list(range(2 * TRIM + 1, 2 * TRIM + 501))
    file.trim(5)
    assert file.floor == 2 * TRIM + 1
    file.close()
    again = Written(path)
    assert again.floor == 2 * TRIM + 1
    again.write((Put(A, b"new"),))
    again.trim(again.revision)
    assert again.rows() == [(again.revision, "a", b"new")]
    again.close()


def test_space_is_used_again(file: Written, path: Path) -> None:
    def churn() -> int:
        for _ in range(100):
            file.write((Put(A, bytes(10_000)),))
        file.trim(file.revision)
        return path.stat().st_size

    churn()
    first = churn()
    for _ in range(5):
        churn()
    assert churn() <= first * 1.5


# -------------------------------------------------------------------- what it refuses


def refusal(path: Path) -> str:
    with pytest.raises(Unavailable) as refused:
        Written(path).close()
    assert str(path) in refused.value.message
    return refused.value.message


def test_a_second_opener_is_refused_and_disturbs_nothing(file: Written, path: Path) -> None:
    file.write((Put(A, b"1"),))
    assert "in use by another process" in refusal(path)
    # Also from another process, and after the attempt in this one.
    script = (
        "import sys; from pathlib import Path\n"
        "from isthmus.store.sqlite import File\n"
        "File(Path(sys.argv[1]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert other.returncode == 1
    assert "in use by another process; one server may use a data directory" in other.stderr
    file.write((Put(A, b"2"),))
    assert len(file.rows()) == 2


def test_a_file_that_was_only_opened_is_kept_from_others(path: Path) -> None:
    Written(path).close()
    file = File(path)
    assert "in use" in refusal(path)
    file.close()
    Written(path).close()


def test_a_database_of_another_program_is_not_touched(path: Path) -> None:
    change(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);")
    before = path.read_bytes()
    assert "a database of another program" in refusal(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["store.db"]


def test_a_later_schema_is_not_touched(path: Path) -> None:
    Written(path).close()
    change(path, f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    assert f"has schema {SCHEMA + 1}, this version of Isthmus knows {SCHEMA}" in refusal(path)
    assert path.read_bytes() == before


def test_what_is_no_database_is_not_touched(path: Path) -> None:
    path.write_bytes(b"dear diary" * 1_000)
    assert "is not an SQLite database" in refusal(path)
    assert path.read_bytes() == b"dear diary" * 1_000


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.touch()
    file = Written(path)
    file.write((Put(A, b"1"),))
    file.close()


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for page in range(2, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 64] = bytes(64)
    path.write_bytes(raw)


def _cut(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


@pytest.mark.parametrize("damage", [_flip, _cut])
def test_a_damaged_file_is_refused(path: Path, damage: Callable[[Path], None]) -> None:
    file = Written(path)
    for number in range(50):
        file.write((Put(Key("pods", "x", str(number)), bytes(2_000)),))
    file.close()
    damage(path)
    said = refusal(path)
    assert "is damaged" in said
    assert "put back a copy of it, or move it and its -wal file away" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "script",
    [
        "DELETE FROM state",
        "UPDATE state SET floor = revision + 1",
        "UPDATE state SET revision = 'one'",
        "UPDATE state SET revision = revision - 1",
        "UPDATE log SET value = 'text' WHERE id >> 10 = 2",
        "UPDATE log SET created = 9 WHERE id >> 10 = 2",
        "UPDATE log SET resource = x'00' WHERE id >> 10 = 2",
        "DELETE FROM log WHERE id >> 10 = 1",
        "DROP TABLE log",
    ],
)
def test_a_log_that_breaks_its_rules_is_refused(path: Path, script: str) -> None:
    file = Written(path)
    file.write((Put(A, b"1"),), (Put(B, b"2"),), (Delete(A),))
    file.close()
    change(path, script)
    said = refusal(path)
    assert "is damaged" in said or "no such table: log" in said


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert "cannot be made (No such file or directory)" in refusal(tmp_path / "none" / "store.db")
    assert "its directory must exist" in refusal(Path("/proc/store.db"))
    assert "cannot be opened" in refusal(tmp_path)
