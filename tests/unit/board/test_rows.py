"""Events and lists to changes: the last word counts, what is unreadable is left out alone."""

from __future__ import annotations

import msgspec

from isthmus.board import UNREADABLE, Intake, Intakes, Unreadable
from isthmus.board.rows import Rows
from isthmus.engine import Database, Delete, Put, Table
from isthmus.mesh.census import CensusKey
from isthmus.model.key import Key, ObjectKey
from isthmus.store.contract import Event, Record
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


def put(value: bytes, key: Key = KEY) -> Event:
    return Event(1, key, record(value, key), None)


def gone(key: Key = KEY) -> Event:
    return Event(2, key, None, record(b"{}", key))


def test_of_several_events_the_last_decides() -> None:
    rows = Rows("east", INTAKES, ListLog())
    assert rows.absorb([put(b'{"size":1}'), gone(), put(b'{"size":2}')]) == [
        Put(THINGS, ROW, Thing(2))
    ]
    assert rows.absorb([put(b'{"size":3}'), gone()]) == [Delete(THINGS, ROW)]


def test_resources_without_an_intake_are_left_alone() -> None:
    rows = Rows("east", INTAKES, ListLog())
    assert rows.absorb([put(b"junk", Key("secrets", "ns", "s"))]) == []
    assert rows.unreadable == 0


def test_a_list_is_a_difference() -> None:
    rows = Rows("east", INTAKES, ListLog())
    other = Key("things", "", "b")
    rows.replace([record(b'{"size":1}'), record(b'{"size":1}', other)])
    assert rows.replace([record(b'{"size":2}')]) == [
        Put(THINGS, ROW, Thing(2)),
        Delete(THINGS, ObjectKey("east", "", "b")),
    ]
    assert rows.replace([]) == [Delete(THINGS, ROW)]
    assert rows.replace([]) == []


def test_an_unreadable_object_is_left_out_alone_and_told_once() -> None:
    log = ListLog()
    rows = Rows("east", INTAKES, log)
    good = Key("things", "ns", "good")
    changes = rows.absorb([put(b'{"size":"big"}'), put(b'{"size":1}', good)])
    assert Put(THINGS, ObjectKey("east", "ns", "good"), Thing(1)) in changes
    [told] = [c.row for c in changes if isinstance(c, Put) and c.table is UNREADABLE]
    assert isinstance(told, Unreadable)
    assert "size" in told.why
    assert rows.unreadable == 1
    assert log.events() == ["unreadable object"]
    assert log.lines[0].fields["name"] == "a"

    assert rows.absorb([put(b'{"size":"big"}')]) == [Delete(THINGS, ROW)]
    assert log.events() == ["unreadable object"]


def test_an_object_that_breaks_loses_its_row_and_gets_it_back() -> None:
    rows = Rows("east", INTAKES, ListLog())
    database = Database()
    steps = [(b'{"size":1}', Thing(1)), (b"{}", None), (b'{"size":3}', Thing(3))]
    for value, held in steps:
        database.commit(rows.absorb([put(value)]))
        assert THINGS.get(database, ROW) == held
        assert (UNREADABLE.get(database, ENTRY) is None) == (held is not None)
    assert rows.unreadable == 0


def test_an_unreadable_object_that_goes_is_forgotten() -> None:
    rows = Rows("east", INTAKES, ListLog())
    rows.absorb([put(b"{}")])
    assert Delete(UNREADABLE, ENTRY) in rows.absorb([gone()])
    rows.absorb([put(b"{}")])
    assert Delete(UNREADABLE, ENTRY) in rows.replace([])
    assert rows.unreadable == 0


def test_a_maker_that_fails_in_any_way_stops_nobody() -> None:
    def explode(_: bytes) -> object:
        raise RecursionError("too deep")

    rows = Rows("east", Intakes({"things": Intake(THINGS, explode)}), ListLog())
    assert Delete(THINGS, ROW) in rows.absorb([put(b"{}")])
    assert rows.unreadable == 1


def test_the_census_holds_every_object_also_what_its_own_table_cannot_read() -> None:
    rows = Rows("east", INTAKES._replace(every=Intake(ALL, fact)), ListLog())
    database = Database()
    broken, foreign = put(b'{"uid":"u"}'), put(b'{"uid":"w"}', Key("secrets", "ns", "s"))
    nothing = put(b"{}", Key("allocations", "", "range"))
    database.commit(rows.absorb([broken, foreign, nothing]))
    assert ALL.rows(database) == {
        ENTRY: Fact("u"),
        CensusKey("east", "secrets", "ns", "s"): Fact("w"),
    }
    assert rows.unreadable == 1
    database.commit(rows.replace([]))
    assert ALL.rows(database) == {}
