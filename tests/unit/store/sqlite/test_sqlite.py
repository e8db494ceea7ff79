"""The SQLite store beyond the contract: groups, failing disks, a slow thread, forgetting."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from threading import Event as Flag

import pytest

from isthmus.aio import ManualClock, breathe
from isthmus.errors import DeadlineExceeded, Unavailable
from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Event, History, Put, Refused
from isthmus.store.sqlite import File, SQLite, store, writer

A = Key("services", "faces", "a")
B = Key("services", "faces", "b")


class Trouble(File):
    """A file with a disk that tests can break, fill and stop."""

    pages = 1 << 31
    error: Exception | None = None
    groups: list[int]
    going: Flag

    def append(self, events: Sequence[Event]) -> None:
        self.going.wait(60)
        self.groups.append(len(events))
        if self.error is not None:
            raise self.error
        self._connection.execute(f"PRAGMA max_page_count = {self.pages}")
        super().append(events)

    def trim(self, floor: int) -> None:
        if self.error is not None:
            raise self.error
        super().trim(floor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Trouble]:
    class Mine(Trouble):
        groups: list[int] = []  # noqa: RUF012  # one list per test
        going = Flag()

    Mine.going.set()
    monkeypatch.setattr(writer, "File", Mine)
    return Mine


@pytest.fixture
async def opened(disk: type[Trouble], tmp_path: Path) -> AsyncIterator[SQLite]:
    sqlite = await SQLite.open(tmp_path / "store.db")
    yield sqlite
    disk.going.set()
    await sqlite.close()


def put(key: Key, value: bytes = b"1") -> tuple[Put, ...]:
    return (Put(key, value),)


def numbered(number: int) -> Key:
    return Key("pods", "x", str(number))


# -------------------------------------------------------------------- groups


async def test_writes_that_wait_are_one_group(disk: type[Trouble], opened: SQLite) -> None:
    disk.going.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(opened.txn((), put(A)))
        rest = [group.create_task(opened.txn((), put(numbered(n)))) for n in range(100)]
        await breathe()
        disk.going.set()
    assert len(disk.groups) <= 3
    assert [first.result(), *(task.result() for task in rest)] == [
        Committed(revision) for revision in range(1, 102)
    ]


async def test_a_group_decides_each_transaction_after_those_before_it(opened: SQLite) -> None:
    done = await asyncio.gather(
        opened.txn((Compare(A, 0),), put(A)),
        opened.txn((Compare(A, 0),), put(A, b"2")),
        opened.txn((Compare(A, 1),), put(A, b"3")),
        opened.txn((), ()),
    )
    assert [type(each) for each in done] == [Committed, Refused, Committed, Committed]
    assert done[3] == Committed(2)
    record = await opened.get(A)
    assert record is not None
    assert (record.value, record.revision, record.created) == (b"3", 2, 1)


async def test_groups_are_bounded(disk: type[Trouble], opened: SQLite) -> None:
    disk.going.clear()
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(opened.txn((), put(numbered(number), bytes(1 << 20))))
        for number in range(2 * writer.GROUP):
            group.create_task(opened.txn((), put(numbered(100 + number))))
        await breathe()
        disk.going.set()
    assert max(disk.groups) <= writer.GROUP
    assert sum(disk.groups) == 20 + 2 * writer.GROUP
    assert [size for size in disk.groups[1:] if size < 10], "large values fill a group"


async def test_more_writers_than_slots_all_get_through(opened: SQLite) -> None:
    count = store.WAITING + 300
    done = await asyncio.gather(*(opened.txn((), put(numbered(n))) for n in range(count)))
    assert {type(each) for each in done} == {Committed}
    assert opened.revision == count


async def test_cancelled_writers_leave_their_slots(disk: type[Trouble], opened: SQLite) -> None:
    disk.going.clear()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(opened.txn((), put(numbered(n)))) for n in range(store.WAITING + 50)
        ]
        await breathe()
        for task in tasks:
            task.cancel()
    disk.going.set()
    done = await asyncio.gather(*(opened.txn((), put(A)) for _ in range(store.WAITING + 50)))
    assert {type(each) for each in done} == {Committed}


# -------------------------------------------------------------------- failing disks


async def test_a_full_disk_fails_what_does_not_fit_and_nothing_else(
    disk: type[Trouble], opened: SQLite
) -> None:
    await opened.txn((), put(A))
    disk.pages = 40
    done = await asyncio.gather(
        opened.txn((), put(B)),
        opened.txn((), put(numbered(1), bytes(1 << 20))),
        opened.txn((Compare(B, 2),), put(B, b"2")),
        return_exceptions=True,
    )
    assert done[0] == Committed(2)
    assert isinstance(done[1], Unavailable)
    assert "no space is left" in done[1].message
    assert done[2] == Committed(3)
    assert await opened.get(numbered(1)) is None

    disk.pages = 1 << 31
    assert await opened.txn((), put(numbered(1), bytes(1 << 20))) == Committed(4)


async def test_a_full_disk_tells_watchers_nothing(disk: type[Trouble], opened: SQLite) -> None:
    disk.pages = 1
    async with opened.watch(0) as watch:
        with pytest.raises(Unavailable):
            await opened.txn((), put(A, bytes(1 << 20)))
        disk.pages = 1 << 31
        await opened.txn((), put(A))
        batch = await watch.next()
    assert [event.revision for event in batch.events] == [1]


async def test_after_an_unconfirmed_write_nothing_is_written(
    disk: type[Trouble], opened: SQLite
) -> None:
    await opened.txn((), put(A))
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
    disk.error = error
    done = await asyncio.gather(
        *(opened.txn((), put(numbered(n))) for n in range(3)), return_exceptions=True
    )
    assert all(isinstance(each, Unavailable) for each in done)
    disk.error = None
    with pytest.raises(Unavailable, match="SQLITE_IOERR_FSYNC.*restart the server"):
        await opened.txn((), put(B))
    assert (await opened.list()).revision == 1, "reading goes on"


async def test_a_bug_reaches_who_waits_for_it(disk: type[Trouble], opened: SQLite) -> None:
    disk.error = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        await opened.txn((), put(A))
    with pytest.raises(Unavailable, match="a bug"):
        await opened.txn((), put(A))


async def test_a_disk_that_does_not_answer_is_given_up_on(
    disk: type[Trouble], tmp_path: Path
) -> None:
    clock = ManualClock()
    sqlite = await SQLite.open(tmp_path / "store.db", clock=clock)
    disk.going.clear()
    async with asyncio.TaskGroup() as group:
        late = group.create_task(_late(sqlite))
        await clock.until_waiting(1)
        await clock.turn(store.PATIENCE)
        await late
    disk.going.set()
    await sqlite.close()
    again = await SQLite.open(tmp_path / "store.db")
    assert await again.get(A) is not None, "it was not known, and did happen"
    await again.close()


async def _late(sqlite: SQLite) -> None:
    with pytest.raises(DeadlineExceeded, match="writing to the store: not done after 30 s"):
        await sqlite.txn((), put(A))


# -------------------------------------------------------------------- opening and closing


async def test_a_file_in_use_is_refused(opened: SQLite, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="in use by another process"):
        await SQLite.open(tmp_path / "store.db")
    assert await opened.txn((), put(A)) == Committed(1)


async def test_an_opening_that_is_cancelled_lets_the_file_go(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(SQLite.open(path))
        await breathe()
        opening.cancel()
    for _ in range(100):
        try:
            again = await SQLite.open(path)
        except Unavailable:
            continue
        break
    else:
        pytest.fail("the file stays locked")
    await again.close()


async def test_writers_that_wait_outside_are_told_of_the_end(
    disk: type[Trouble], opened: SQLite
) -> None:
    disk.going.clear()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_outcome(opened, numbered(n))) for n in range(store.WAITING + 10)
        ]
        await breathe()
        closing = group.create_task(opened.close())
        await breathe()
        disk.going.set()
        await closing
    outcomes = [task.result() for task in tasks]
    assert outcomes == [True] * store.WAITING + [False] * 10


async def _outcome(sqlite: SQLite, key: Key) -> bool:
    try:
        return isinstance(await sqlite.txn((), put(key)), Committed)
    except Unavailable:
        return False


# -------------------------------------------------------------------- forgetting


async def test_the_file_forgets_with_the_history(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    clock = ManualClock()
    sqlite = await SQLite.open(path, history=History(revisions=20, seconds=1), clock=clock)
    for number in range(100):
        clock.advance(1)
        await sqlite.txn((), put(A, str(number).encode()))
    floor = sqlite.floor
    assert 76 <= floor <= 80
    await sqlite.close()

    again = await SQLite.open(path)
    assert again.floor == floor
    assert (await again.list(revision=floor)).records[0].value == str(floor - 1).encode()
    await again.close()
    with sqlite3.connect(path) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM log").fetchall()
    connection.close()
    assert count == 100 - floor + 1


async def test_forgetting_that_fails_is_told_and_done_later(
    disk: type[Trouble], opened: SQLite
) -> None:
    for _ in range(10):
        await opened.txn((), put(A))
    disk.error = sqlite3.OperationalError("no room")
    with pytest.raises(Unavailable, match="no room"):
        await opened.compact(5)
    disk.error = None
    await opened.compact(7)
    assert opened.floor == 7
    assert await opened.txn((), put(A)) == Committed(11)
