"""Objects to changes: lists are differences, what is unreadable is left out alone."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from isthmus.board import UNREADABLE, Intake, Intakes, Unreadable
from isthmus.board.rows import Draft, Rows
from isthmus.engine import Change, Database, Delete, Put, Table
from isthmus.mesh.census import CensusKey
from isthmus.model.key import Key, ObjectKey
from isthmus.store.contract import Record
from tests.support.log import ListLog


class Thing(msgspec.Struct, frozen=True):
    size: int


class Fact(msgspec.Struct, frozen=True):
    uid: str = ""


THINGS: Table[ObjectKey, Thing] = Table("things")
ALL: Table[CensusKey, Fact] = Table("all")


def fact(value: bytes) -> Fact | None:
    read = msgspec.json.decode(value, type=Fact)
    return read if read.uid else None


INTAKES = Intakes(
    {"things": Intake(THINGS, msgspec.json.Decoder(Thing).decode)},
)
KEY = Key("things", "ns", "a")
ROW = ObjectKey("east", "ns", "a")
ENTRY = CensusKey("east", "things", "ns", "a")


def record(value: bytes, key: Key = KEY, revision: int = 1) -> Record:
    return Record(key, value, revision, 1)


Objects = Mapping[Key, bytes | None]


def absorb(rows: Rows, objects: Objects) -> list[Change]:
    draft = Draft()
    for key, value in objects.items():
        rows.note(draft, key, record(value, key) if value is not None else None)
    rows.accept(draft)
    return draft.changes


def replace(rows: Rows, objects: Objects) -> list[Change]:
    return absorb(rows, {**dict.fromkeys(rows.gone(objects)), **objects})


def test_resources_without_an_intake_are_left_alone() -> None:
    rows = Rows("east", INTAKES, ListLog())
    assert absorb(rows, {Key("secrets", "ns", "s"): b"junk"}) == []
    assert rows.unreadable == 0


def test_a_list_is_a_difference() -> None:
    rows = Rows("east", INTAKES, ListLog())
    other = Key("things", "", "b")
    replace(rows, {KEY: b'{"size":1}', other: b'{"size":1}'})
    assert replace(rows, {KEY: b'{"size":2}'}) == [
        Delete(THINGS, ObjectKey("east", "", "b")),
        Put(THINGS, ROW, Thing(2)),
    ]
    assert replace(rows, {}) == [Delete(THINGS, ROW)]
    assert replace(rows, {}) == []


def test_an_unreadable_object_is_left_out_alone_and_told_once() -> None:
    log = ListLog()
    rows = Rows("east", INTAKES, log)
    good = Key("things", "ns", "good")
    changes = absorb(rows, {KEY: b'{"size":"big"}', good: b'{"size":1}'})
    assert Put(THINGS, ObjectKey("east", "ns", "good"), Thing(1)) in changes
    [told] = [c.row for c in changes if isinstance(c, Put) and c.table is UNREADABLE]
    assert isinstance(told, Unreadable)
    assert "size" in told.why
    assert rows.unreadable == 1
    assert log.events() == ["unreadable object"]
    assert log.lines[0].fields["name"] == "a"

    absorb(rows, {KEY: b'{"size":"big"}'})
    assert log.events() == ["unreadable object"]


def test_an_object_that_breaks_loses_its_row_and_gets_it_back() -> None:
    rows = Rows("east", INTAKES, ListLog())
    database = Database()
    steps = [(b'{"size":1}', Thing(1)), (b"{}", None), (b'{"size":3}', Thing(3))]
    for value, held in steps:
        database.commit(absorb(rows, {KEY: value}))
        assert THINGS.get(database, ROW) == held
        assert (UNREADABLE.get(database, ENTRY) is None) == (held is not None)
    assert rows.unreadable == 0


def test_an_unreadable_object_that_goes_is_forgotten() -> None:
    rows = Rows("east", INTAKES, ListLog())
    absorb(rows, {KEY: b"{}"})
    assert Delete(UNREADABLE, ENTRY) in absorb(rows, {KEY: None})
    absorb(rows, {KEY: b"{}"})
    assert Delete(UNREADABLE, ENTRY) in replace(rows, {})
    assert rows.unreadable == 0


def test_a_maker_that_fails_in_any_way_stops_nobody() -> None:
    def explode(_: bytes) -> object:
        raise RecursionError("too deep")

    rows = Rows("east", Intakes({"things": Intake(THINGS, explode)}), ListLog())
    assert Delete(THINGS, ROW) in absorb(rows, {KEY: b"{}"})
    assert rows.unreadable == 1


def test_the_census_holds_every_object_also_what_its_own_table_cannot_read() -> None:
    rows = Rows("east", INTAKES._replace(every=Intake(ALL, fact)), ListLog())
    database = Database()
    foreign, nothing = Key("secrets", "ns", "s"), Key("allocations", "", "range")
    objects = {KEY: b'{"uid":"u"}', foreign: b'{"uid":"w"}', nothing: b"{}"}
    database.commit(absorb(rows, objects))
    assert ALL.rows(database) == {
        ENTRY: Fact("u"),
        CensusKey("east", "secrets", "ns", "s"): Fact("w"),
    }
    assert rows.unreadable == 1
    database.commit(replace(rows, {}))
    assert ALL.rows(database) == {}


def test_a_draft_that_is_not_accepted_has_done_nothing() -> None:
    log = ListLog()
    rows = Rows("east", INTAKES, log)
    absorb(rows, {KEY: b'{"size":1}'})
    rows.note(Draft(), KEY, None)
    assert rows.gone([]) == [KEY]
    rows.note(Draft(), KEY, record(b"{}"))
    assert rows.unreadable == 0
    assert log.lines == []
