from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from isthmus.errors import BadRequest
from isthmus.model.core import EVENT
from isthmus.serve.kube import table
from isthmus.serve.kube.table import Include, ListMeta, Tables
from tests.unit.serve.kube.kinds import THING, WIDGET

TABLES = Tables(WIDGET.versions[0])
META = {"name": "w", "namespace": "n", "labels": {"a": "b"}, "resourceVersion": "7"}
RAW = msgspec.json.encode(
    {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": META, "spec": {"size": 3}}
)
PARTIAL = {
    "kind": "PartialObjectMetadata",
    "apiVersion": "meta.k8s.io/v1",
    "metadata": META,
}


def test_a_list_is_a_table_with_name_first_and_the_kinds_columns_after() -> None:
    told = json.loads(TABLES.of_list([RAW, RAW], ListMeta(9, "token", 4), now=60.0))
    assert told["kind"] == "Table"
    assert told["apiVersion"] == "meta.k8s.io/v1"
    assert told["metadata"] == {
        "resourceVersion": "9", "continue": "token", "remainingItemCount": 4,
    }  # fmt: skip
    columns = [
        (c["name"], c["type"], c["format"], c["priority"]) for c in told["columnDefinitions"]
    ]
    assert columns == [
        ("Name", "string", "name", 0),
        ("Size", "integer", "", 0),
        ("Since", "string", "", 1),
    ]
    assert told["rows"] == [{"cells": ["w", 3, "60s"], "object": PARTIAL}] * 2


def test_a_kind_without_columns_shows_its_age() -> None:
    thing = b'{"metadata":{"name":"t","creationTimestamp":"1970-01-01T00:00:10Z"}}'
    told = json.loads(Tables(THING.versions[0]).of_object(thing, 7, now=70.0))
    assert [column["name"] for column in told["columnDefinitions"]] == ["Name", "Age"]
    assert told["rows"][0]["cells"] == ["t", "60s"]


def test_an_empty_list_is_a_table_without_rows() -> None:
    told = json.loads(TABLES.of_list([], ListMeta(1), now=0.0))
    assert (told["rows"], told["metadata"]) == ([], {"resourceVersion": "1"})


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (Include.NONE, None),
        (Include.METADATA, PARTIAL),
        (Include.OBJECT, json.loads(RAW)),
    ],
)
def test_a_row_carries_what_was_asked_for(rows: Include, shown: dict[str, Any] | None) -> None:
    told = json.loads(TABLES.of_object(RAW, 7, 0.0, rows))
    assert [row["object"] for row in told["rows"]] == [shown]
    assert told["metadata"] == {"resourceVersion": "7"}


def test_only_the_first_event_of_a_watch_has_headings() -> None:
    first = json.loads(TABLES.of_object(RAW, 7, 0.0))
    later = json.loads(TABLES.of_object(RAW, 7, 0.0, headings=False))
    assert len(first["columnDefinitions"]) == 3
    assert later["columnDefinitions"] is None
    assert later["rows"] == first["rows"]


def test_a_bookmark_is_a_table_too() -> None:
    raw = b'{"kind":"Widget","metadata":{"resourceVersion":"12"}}'
    told = json.loads(TABLES.of_bookmark(raw))
    assert told["metadata"] == {"resourceVersion": "12"}
    assert told["rows"] == [{"cells": [], "object": json.loads(raw)}]
    assert json.loads(TABLES.of_bookmark(raw, headings=True))["columnDefinitions"]


def test_an_object_too_odd_for_a_column_spoils_its_own_cell_only() -> None:
    odd = b'{"metadata":{"name":"odd"},"spec":[]}'
    told = json.loads(TABLES.of_list([odd, RAW], ListMeta(9), now=1.0))
    assert [row["cells"] for row in told["rows"]] == [["odd", "<invalid>", "1s"], ["w", 3, "1s"]]


def test_metadata_alone() -> None:
    assert json.loads(table.partial(RAW)) == PARTIAL
    told = json.loads(table.partial_list([RAW, RAW], ListMeta(9)))
    assert told == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9"},
        "items": [PARTIAL, PARTIAL],
    }


def test_include_object_is_one_of_three() -> None:
    assert table.include("") is Include.METADATA
    assert table.include("Object") is Include.OBJECT
    with pytest.raises(BadRequest, match="unrecognized includeObject value: 'All'"):
        table.include("All")


def test_events_are_shown_by_time_not_by_name() -> None:
    raw = b'{"metadata":{"name":"a.1"},"type":"Normal","reason":"Started"}'
    shown = json.loads(Tables(EVENT.versions[0]).of_object(raw, 7, 0.0))
    headings = [each["name"] for each in shown["columnDefinitions"]]
    assert headings[:3] == ["Last Seen", "Type", "Reason"]
    assert (headings.index("Name"), shown["rows"][0]["cells"][-1]) == (len(headings) - 1, "a.1")
