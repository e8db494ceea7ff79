"""Logs: their form, following, rotation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from isthmus.aio import ManualClock
from isthmus.lab.pods.logs import LONGEST, Log, Wanted, plain, read


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[Log]:
    made = Log(tmp_path / "c/0.log", clock)
    yield made
    made.close()


async def shown(log: Log, **wanted: object) -> bytes:
    return b"".join([chunk async for chunk in read(log, Wanted(**wanted))])  # type: ignore[arg-type]


async def test_lines_have_a_time_and_a_stream(log: Log) -> None:
    log.write("stdout", b"one\ntw")
    log.write("stderr", b"bad\n")
    log.write("stdout", b"o\n")
    lines = log.path.read_bytes().splitlines()
    assert [line.split(b" ", 1)[1] for line in lines] == [
        b"stdout F one", b"stderr F bad", b"stdout F two",
    ]  # fmt: skip
    assert await shown(log) == b"one\nbad\ntwo\n"


async def test_half_a_line_is_kept_for_its_end(log: Log) -> None:
    log.write("stdout", b"no end")
    assert await shown(log) == b""
    log.close()
    assert await shown(log) == b"no end\n"


async def test_long_lines_are_cut_in_the_file_and_whole_for_the_reader(log: Log) -> None:
    line = b"x" * (3 * LONGEST + 5)
    log.write("stdout", line + b"\nnext\n")
    assert max(map(len, log.path.read_bytes().splitlines())) < LONGEST + 100
    assert await shown(log) == line + b"\nnext\n"
    assert await shown(log, tail=2) == line + b"\nnext\n"


async def test_the_last_lines_since_when_and_how_many_bytes(log: Log, clock: ManualClock) -> None:
    log.write("stdout", b"one\n")
    clock.advance(10)
    log.write("stdout", b"two\nthree\n")
    assert await shown(log, tail=2) == b"two\nthree\n"
    assert await shown(log, tail=0) == b""
    assert await shown(log, since=clock.utc() - timedelta(seconds=5)) == b"two\nthree\n"
    assert await shown(log, limit=5) == b"one\nt"
    stamped = await shown(log, tail=1, timestamps=True)
    assert stamped.endswith(b"Z three\n")


async def test_a_follower_sees_everything_once_across_a_rotation(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = Log(tmp_path / "0.log", clock, limit=400)
    log.write("stdout", b"start\n")
    got: list[bytes] = []

    async def follow() -> None:
        got.extend([chunk async for chunk in read(log, Wanted(follow=True))])

    async with asyncio.TaskGroup() as group:
        group.create_task(follow())
        for number in range(20):
            await asyncio.sleep(0)  # noqa: TID251  # let the follower read
            log.write("stdout", b"line %d\n" % number)
        log.close()
    assert b"".join(got).splitlines() == [b"start", *(b"line %d" % n for n in range(20))]
    assert log.turns > 1
    assert size(tmp_path) <= 800


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_file_of_a_program_s_own(tmp_path: Path) -> None:
    file = tmp_path / "proxy.log"
    assert plain(file, Wanted()) == b""
    file.write_bytes(b"[1] one\n[2] two\n[3] three\n")
    assert plain(file, Wanted()) == file.read_bytes()
    assert plain(file, Wanted(tail=2)) == b"[2] two\n[3] three\n"
    assert plain(file, Wanted(tail=0)) == b""
    assert plain(file, Wanted(tail=9, limit=3)) == b"[1]"
