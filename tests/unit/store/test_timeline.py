from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, Compacted
from isthmus.model.key import Key
from isthmus.store import Compare, Delete, Event, Put, Record, Refused
from isthmus.store.decide import decide
from isthmus.store.timeline import BATCH, Timeline

A = Key("services", "faces", "a")
B = Key("services", "faces", "b")


def write(timeline: Timeline, *ops: Put | Delete) -> None:
    events = decide(timeline.live, (), ops, timeline.revision + 1)
    assert not isinstance(events, Refused)
    timeline.apply(events)


def test_a_decision_writes_nothing() -> None:
    timeline = Timeline()
    events = decide(timeline.live, (Compare(A, 0),), (Put(A, b"1"), Delete(B)), 5)
    assert events == (Event(5, A, Record(A, b"1", 5, 5), None),)
    assert timeline.live == {}


def test_large_batches_end_with_their_transaction() -> None:
    timeline = Timeline()
    half = [Put(Key("pods", "x", str(i)), b"") for i in range(BATCH // 2 + 1)]
    write(timeline, *half)
    write(timeline, *half)
    write(timeline, Put(A, b""))
    batch = timeline.since(0)
    assert (len(batch.events), batch.revision) == (2 * len(half), 2)
    rest = timeline.since(batch.revision)
    assert (len(rest.events), rest.revision) == (1, 3)
    assert timeline.since(3) == ((), 3)


def test_a_batch_that_just_fits_is_the_last() -> None:
    timeline = Timeline()
    for index in range(BATCH):
        write(timeline, Put(A, str(index).encode()))
    batch = timeline.since(0)
    assert (len(batch.events), batch.revision) == (BATCH, BATCH)


def test_a_restored_timeline_goes_on() -> None:
    timeline = Timeline()
    write(timeline, Put(A, b"1"), Put(B, b"1"))
    write(timeline, Put(A, b"2"))
    timeline.compact(1)
    again = Timeline.restore(
        timeline.live.values(), list(timeline.since(1).events), timeline.revision, timeline.floor
    )
    assert again.since(1) == timeline.since(1)
    assert again.superseded == timeline.superseded
    assert again.kept == timeline.kept == 1
    for revision in (1, 2):
        here, there = (
            each.page("", "", revision=revision, after=None, limit=0) for each in (again, timeline)
        )
        assert here == there


def test_forgetting_gives_back_what_history_took() -> None:
    timeline = Timeline()
    write(timeline, Put(A, bytes(1_000)))
    write(timeline, Put(A, b""))
    assert timeline.superseded > 1_000
    timeline.compact(2)
    assert (timeline.superseded, timeline.kept) == (0, 0)


def test_revisions_outside_history_are_told_apart() -> None:
    timeline = Timeline()
    write(timeline, Put(A, b"1"))
    write(timeline, Put(A, b"2"))
    timeline.compact(1)
    with pytest.raises(Compacted, match=r"too old resource version: 0 \(1\)"):
        timeline.check(0)
    with pytest.raises(BadRequest, match="revision 3 is of the future; the newest is 2"):
        timeline.check(3)
    with pytest.raises(BadRequest, match="future"):
        timeline.check(-1)
