from __future__ import annotations

import pytest

from isthmus.aio import ManualClock
from isthmus.errors import Compacted, IsthmusError, PeerFault, TooLarge, Unavailable
from isthmus.model.key import Key
from isthmus.store.kubernetes import MIRRORED, Bounds, View
from isthmus.store.kubernetes.objects import Seen, event

A, B, OTHER = Key("services", "s", "a"), Key("services", "s", "b"), Key("pods", "s", "a")
SERVICES = MIRRORED[0]


async def test_a_new_list_becomes_the_difference() -> None:
    view = View(ManualClock())
    assert [view.synced] == [False]
    view.replace({"services", "pods"}, {A: b"1", B: b"2", OTHER: b"3"})
    assert view.synced
    assert (view.revision, len(view), view.bytes) == (1, 3, 3)
    async with view.watch(1) as watch:
        view.replace({"services"}, {A: b"1", B: b"22"})
        view.put(OTHER, None)
        first, second = (await watch.next()).events
    assert (first.key, first.revision, second.key, second.record) == (B, 2, OTHER, None)
    assert (len(view), view.bytes) == (2, 3)
    view.put(A, b"1")
    view.put(OTHER, None)
    assert view.revision == 3  # nothing differed
    await view.compact(3)
    with pytest.raises(Compacted):
        await view.list(revision=1)
    await view.close()
    with pytest.raises(Unavailable):
        await view.list()


async def test_what_is_too_much_changes_nothing() -> None:
    view = View(ManualClock(), Bounds(objects=2, bytes=10))
    view.replace({"services"}, {A: b"1", B: b"2"})
    for key, value in ((OTHER, b"3"), (A, b"x" * 10)):
        with pytest.raises(TooLarge):
            view.put(key, value)
    assert (view.revision, len(view), view.bytes) == (1, 2, 2)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"type":"ERROR","object":{"code":410,"message":"old"}}', Compacted),
        (b'{"type":"ERROR","object":{"code":504}}', Compacted),
        (b'{"type":"ERROR","object":{"code":500}}', Unavailable),
        (b'{"type":"ERROR","object":7}', PeerFault),
        (b'{"type":"SURPRISE","object":{}}', PeerFault),
        (b'{"type":"ADDED"}', PeerFault),
        (b"[" * 50_000, PeerFault),
        (b"\xff", PeerFault),
    ],
)
def test_a_line_that_is_no_news_says_what_it_is(line: bytes, error: type[IsthmusError]) -> None:
    with pytest.raises(error):
        event(line, SERVICES, "v1")


def test_events_say_what_changed_and_where_the_watch_stands() -> None:
    meta = b'{"metadata":{"name":"a","namespace":"s","resourceVersion":"7"}}'
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}'
    assert event(bookmark, SERVICES, "v1") == Seen(None, None, "9")
    gone = event(b'{"type":"DELETED","object":' + meta + b"}", SERVICES, "v1")
    assert gone == Seen(A, None, "7")
    new = event(b'{"type":"ADDED","object":' + meta + b"}", SERVICES, "v1")
    assert new.value == (
        b'{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"s"}}'
    )
