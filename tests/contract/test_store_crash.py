"""SIGKILL at random moments, many times: nothing acknowledged is lost, nothing is seen twice."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from isthmus.aio import SystemClock
from isthmus.errors import Compacted
from isthmus.store import Record
from tests.contract.stores import DURABLE, Opener

KILLS = 50
LONGEST = 0.08
"""Seconds after the opening within which the kill comes."""
MOST = 60
"""Acknowledgements before the kill, when it is one of them that it follows."""

ROOT = Path(__file__).parents[2]

Changes = dict[str, str]
"""`namespace/name` -> value, or "-" for a delete."""


class Ledger:
    """What the killed processes said, held against itself and against the store."""

    def __init__(self) -> None:
        self.wrote: dict[int, Changes] = {}
        self.saw: dict[int, Changes] = {}
        self.since = 0
        """Where the watcher resumes: the last batch that it told whole."""
        self.acknowledged = 0

    def take(self, output: bytes) -> None:
        """The lines of one process; the last may have been cut."""
        for line in output.split(b"\n")[:-1]:
            word, revision, *rest = line.decode().split()
            match word:
                case "ready":
                    assert int(revision) >= self.acknowledged, "the revision went back"
                case "wrote":
                    assert int(revision) not in self.wrote, "a revision was given twice"
                    self.wrote[int(revision)] = dict(zip(rest[::2], rest[1::2], strict=True))
                    self.acknowledged = max(self.acknowledged, int(revision))
                case "saw":
                    self.see(int(revision), rest)
                case _:
                    pytest.fail(f"an unknown line: {line!r}")

    def see(self, covered: int, words: list[str]) -> None:
        for revision, key, value in zip(words[::3], words[1::3], words[2::3], strict=True):
            assert self.since < int(revision) <= covered, "an event was missed or repeated"
            changes = self.saw.setdefault(int(revision), {})
            assert key not in changes, "an event was repeated"
            changes[key] = value
        self.since = covered

    def check(self) -> None:
        """Every acknowledged write was seen, whole, as it was written; no revision is missing."""
        assert list(self.saw) == list(range(1, self.since + 1))
        for revision, changes in self.wrote.items():
            assert self.saw[revision] == changes

    def state(self) -> Changes:
        state: Changes = {}
        for changes in self.saw.values():
            state |= changes
        return {key: value for key, value in state.items() if value != "-"}


def killed(arguments: list[str], chance: Random) -> bytes:
    """What a process wrote until it was killed.

    Every second kill follows an acknowledgement as fast as a kill can, because what is told too
    early is lost in the next moment; the others come at any time.
    """
    command = [sys.executable, "-m", "tests.contract.crashing", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        stream = process.stdout.fileno()
        if chance.random() < 0.5:
            output = _until_told(stream, chance.randint(1, MOST))
        else:
            output = b"".join(_until(stream, chance.uniform(0, LONGEST)))
        process.kill()
        output += process.stdout.read()
    assert process.returncode == -9, output
    return output


def _until(stream: int, seconds: float) -> Iterator[bytes]:
    """What comes within `seconds` after the first bytes."""
    yield os.read(stream, 65_536)
    clock = SystemClock()
    end = clock.now() + seconds
    while (left := end - clock.now()) > 0:
        if select.select([stream], [], [], left)[0]:
            yield os.read(stream, 65_536)


def _until_told(stream: int, count: int) -> bytes:
    """What comes until so many transactions are acknowledged."""
    output = b""
    while output.count(b"wrote") < count:
        more = os.read(stream, 65_536)
        assert more, output
        output += more
    return output


async def _read_the_rest(opener: Opener, folder: Path, ledger: Ledger) -> tuple[Record, ...]:
    """A last watcher, here: the events that no process lived to tell."""
    async with opener(folder) as store:
        assert store.revision >= ledger.acknowledged
        async with store.watch(ledger.since) as watch:
            while ledger.since < store.revision:
                batch = await watch.next()
                words: list[str] = []
                for event in batch.events:
                    value = event.record.value.decode() if event.record else "-"
                    words += [str(event.revision), f"{event.key[1]}/{event.key[2]}", value]
                ledger.see(batch.revision, words)
        with pytest.raises(Compacted):
            await store.list(revision=1)
        return (await store.list()).records


@pytest.mark.timeout(600)  # fifty processes start one after another, maybe on a busy machine
@pytest.mark.parametrize("name", list(DURABLE))
async def test_what_was_acknowledged_survives_any_kill(name: str, tmp_path: Path) -> None:
    chance, ledger = Random(name), Ledger()
    for seed in range(KILLS):
        ledger.take(killed([name, str(tmp_path), str(seed), str(ledger.since)], chance))
    records = await _read_the_rest(DURABLE[name], tmp_path, ledger)
    ledger.check()
    assert len(ledger.wrote) > KILLS * 10, "the processes hardly wrote"
    stored = {f"{each.key.namespace}/{each.key.name}": each.value.decode() for each in records}
    assert stored == ledger.state()
