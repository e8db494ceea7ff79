from __future__ import annotations

import json

import msgspec
import pytest

from isthmus.model.key import Key
from isthmus.serve.kube import events
from isthmus.serve.kube.events import EventType, Seen, relative
from isthmus.store.contract import Event, Record

KEY = Key("widgets.example.io", "n", "w")
OLD = Record(KEY, b'{"colour":"red"}', 7, 7)
NEW = Record(KEY, b'{"colour":"blue"}', 9, 7)


def red(record: Record) -> bool:
    return b"red" in record.value


def blue(record: Record) -> bool:
    return b"blue" in record.value


def test_a_line_is_the_object_spliced() -> None:
    line = events.line(EventType.ADDED, b'{"a": 1 }')
    assert line == b'{"type":"ADDED","object":{"a": 1 }}\n'


def test_a_bookmark_has_a_revision_and_nothing_else() -> None:
    line = json.loads(events.bookmark("apps/v1", "Deployment", 12))
    assert line == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {"resourceVersion": "12"},
        },
    }


def test_the_bookmark_that_ends_initial_events_says_so() -> None:
    line = json.loads(events.bookmark("v1", "Pod", 12, initial_end=True))
    assert line["object"]["metadata"] == {
        "resourceVersion": "12",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


def test_a_watch_that_cannot_go_on_gets_410() -> None:
    line = json.loads(events.gone(events.expired(3, 9)))
    assert line["type"] == "ERROR"
    assert line["object"]["code"] == 410
    assert line["object"]["reason"] == "Expired"
    assert line["object"]["message"] == "too old resource version: 3 (9)"


CREATED = Event(7, KEY, OLD, None)
CHANGED = Event(9, KEY, NEW, OLD)
REMOVED = Event(11, KEY, None, NEW)


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        (CREATED, Seen(EventType.ADDED, OLD.value, 7)),
        (CHANGED, Seen(EventType.MODIFIED, NEW.value, 9)),
        (REMOVED, Seen(EventType.DELETED, NEW.value, 11)),
        (Event(11, KEY, None, None), None),
    ],
)
def test_without_a_selector_every_event_is_seen(event: Event, seen: Seen | None) -> None:
    assert relative(event) == seen


@pytest.mark.parametrize(
    ("event", "seen_by_red", "seen_by_blue"),
    [
        (CREATED, Seen(EventType.ADDED, OLD.value, 7), None),
        # It ceases to be red: shown as it was, at the revision of the change. It becomes blue.
        (CHANGED, Seen(EventType.DELETED, OLD.value, 9), Seen(EventType.ADDED, NEW.value, 9)),
        (REMOVED, None, Seen(EventType.DELETED, NEW.value, 11)),
        (Event(9, KEY, NEW, NEW), None, Seen(EventType.MODIFIED, NEW.value, 9)),
    ],
)
def test_events_are_relative_to_the_selector(
    event: Event, seen_by_red: Seen | None, seen_by_blue: Seen | None
) -> None:
    assert relative(event, red) == seen_by_red
    assert relative(event, blue) == seen_by_blue


def test_every_line_is_one_line_of_json() -> None:
    raw = msgspec.json.encode({"text": "two\nlines"})
    for kind in EventType:
        line = events.line(kind, raw)
        assert line.count(b"\n") == 1
        assert json.loads(line)["type"] == kind
