from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import BadRequest, TooLarge
from isthmus.model import document as doc
from isthmus.model.document import (
    MAX_DEPTH,
    MAX_DUPLICATES,
    MAX_VALUES,
    read_json,
    read_value,
    strict_json,
)


def test_an_object_is_read() -> None:
    assert read_json(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"{}{}", "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b'{"a": "\\ud800"}', "not valid JSON"),
        (b"[]", "a JSON array, not an object"),
        (b"null", "a JSON null, not an object"),
        (b"1", "a JSON number, not an object"),
        (b"1.5", "a JSON number, not an object"),
        (b"true", "a JSON boolean, not an object"),
        (b'"x"', "a JSON string, not an object"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "nested more than"),
        (b'{"a":' + b"[" * 9000 + b"]" * 9000 + b"}", "nested more than"),
    ],
)
def test_what_is_no_object_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        read_json(body)


def test_size_is_bounded() -> None:
    with pytest.raises(TooLarge, match="11 bytes long, the limit is 10"):
        read_json(b'{"a": "bc"}', limit=10)


def test_depth_is_counted_exactly() -> None:
    assert read_value(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(BadRequest):
        read_value(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    assert len(read_json(b'{"a": [' + b"[]," * 500 + b"[]]}")["a"]) == 501


def test_the_number_of_values_is_bounded() -> None:
    assert len(read_json(b'{"a": [' + b"1," * (MAX_VALUES - 10) + b"1]}")["a"]) == MAX_VALUES - 9
    with pytest.raises(BadRequest, match="holds more than"):
        read_json(b'{"a": [' + b"1," * MAX_VALUES + b"1]}")
    commas = b"," * (MAX_VALUES + 1)
    assert read_json(b'{"a": "' + commas + b'"}'), "commas in a text are no values"


def test_fields_said_twice_are_named_with_their_paths() -> None:
    body = b'{"a":1,"b":{"c":1,"c":2},"l":[{"x":1},{"x":1,"x":2,"x":3}],"a":3}'
    found, duplicates = strict_json(body)
    assert found["a"] == 3
    assert sorted(duplicates) == ["a", "b.c", "l[1].x", "l[1].x"]


def test_duplicates_that_are_told_are_bounded() -> None:
    twice = b",".join(b'"k%d":1,"k%d":2' % (i, i) for i in range(500))
    _, duplicates = strict_json(b"{" + twice + b"}")
    assert len(duplicates) == MAX_DUPLICATES


ODD = {"s": "x", "n": 3, "b": True, "f": 1.5, "m": {"k": "v", "i": 1}, "l": [{"a": 1}, 2, "t"]}


def test_look_ups_answer_whatever_stands_there() -> None:
    assert doc.get(ODD, "m.k") == "v"
    assert doc.get(ODD, "s.k") is None
    assert doc.get([], "s") is None
    assert doc.text(ODD, "s") == "x"
    assert doc.text(ODD, "n") == ""
    assert (doc.number(ODD, "n"), doc.number(ODD, "b"), doc.number(ODD, "no", 7)) == (3, 0, 7)
    assert (doc.truth(ODD, "b"), doc.truth(ODD, "n")) == (True, False)
    assert doc.mapping(ODD, "l") == {}
    assert doc.texts(ODD, "m") == {"k": "v"}
    assert doc.items(ODD, "l") == [{"a": 1}, {}, {}]
    assert doc.strings(ODD, "l") == ["", "", "t"]
    assert doc.items(ODD, "s") == []
    assert doc.strings(ODD, "s") == []


def test_ensure_makes_what_is_missing_and_spares_what_is_wrong() -> None:
    document: dict[str, Any] = {"a": None, "s": "x"}
    doc.ensure(document, "a.b")["c"] = 1
    doc.ensure(document, "s.b")["c"] = 1
    assert document == {"a": {"b": {"c": 1}}, "s": "x"}


def test_settle_puts_only_where_nothing_stands() -> None:
    where = {"kept": 0, "empty": "", "null": None}
    for name in ("kept", "empty", "null", "new"):
        doc.settle(where, name, 5)
    assert where == {"kept": 0, "empty": 5, "null": 5, "new": 5}
