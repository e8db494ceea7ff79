from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import BadRequest
from isthmus.serve.kube.apply.fields import parse
from isthmus.serve.kube.apply.managers import (
    ANCIENT,
    MOST_UPDATERS,
    Held,
    Manager,
    bounded,
    read,
    write,
)


def entry(manager: str = "m", operation: str = "Update", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    held = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}
    return {"manager": manager, "operation": operation, **held, **more}


def updates(count: int, version: str = "v1") -> dict[Manager, Held]:
    """So many updaters, the first the oldest, each with a field of its own."""
    return {
        Manager(f"m{n:02}", "Update", version): Held(
            parse({f"f:{n:02}": {}}), version, f"2026-01-02T03:04:{n:02}Z"
        )
        for n in range(count)
    }


def test_what_is_read_is_written() -> None:
    listed = [
        entry("a", "Apply", time="2026-01-02T03:04:05Z"),
        entry("b", "Apply", subresource="status"),
        entry("a", "Update"),
        entry("a", "Update", apiVersion="v2"),
    ]
    assert sorted(write(read(listed)), key=str) == sorted(listed, key=str)
    assert read(None) == {}
    assert write({}) == []


def test_appliers_come_first_then_the_oldest() -> None:
    listed = [
        entry("z", time="2026-01-02T03:04:06Z"),
        entry("a", time="2026-01-02T03:04:06Z"),
        entry("y", time="2026-01-02T03:04:05Z"),
        entry("x", "Apply", time="2026-01-02T03:04:07Z"),
        entry("none", fieldsV1={}),
    ]
    assert [each["manager"] for each in write(read(listed))] == ["x", "y", "a", "z"]


def test_one_manager_said_twice_is_one() -> None:
    listed = [entry(fieldsV1={"f:a": {}}), entry(fieldsV1={"f:b": {}})]
    [found] = write(read(listed))
    assert found["fieldsV1"] == {"f:a": {}, "f:b": {}}


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("x", "not a list"),
        (["x"], "not an object"),
        ([entry(operation="Own")], "operation must be"),
        ([entry(fieldsType="FieldsV2")], "fieldsType must be"),
        ([entry(fieldsV1=[])], "fieldsV1"),
        ([{**entry(), "manager": 7}], "manager is not a string"),
        ([entry(manager="m" * 129)], "no manager can be called"),
        ([entry(manager="a\nb")], "no manager can be called"),
        ([entry(subresource="s" * 257)], "too long"),
        ([entry(time=7)], "time is not a string"),
    ],
)
def test_what_cannot_be_read(listed: object, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read(listed)


@pytest.mark.parametrize(
    ("manager", "said"),
    [
        (Manager("a", "Apply"), '"a"'),
        (Manager("a", "Update", "apps/v1"), '"a" using apps/v1'),
        (Manager('a"', "Update", "v1", "scale"), '"a\\"" with subresource "scale" using v1'),
        (Manager("a", "Apply", "", "status"), '"a" with subresource "status"'),
    ],
)
def test_managers_in_messages(manager: Manager, said: str) -> None:
    assert str(manager) == said


def test_the_oldest_updates_are_gathered() -> None:
    held = updates(MOST_UPDATERS)
    assert bounded(held) is held
    left = bounded(updates(MOST_UPDATERS + 3))
    assert len(left) == MOST_UPDATERS
    ancient = left[Manager(ANCIENT, "Update", "v1")]
    assert list(ancient.fields.paths()) == [("f:00",), ("f:01",), ("f:02",), ("f:03",)]
    assert ancient.time == "2026-01-02T03:04:03Z"


def test_each_version_has_its_own_bucket_and_appliers_do_not_count() -> None:
    held = updates(7, "v1") | updates(7, "v2")
    held |= {Manager(f"a{n}", "Apply"): Held(parse({"f:x": {}}), "v1") for n in range(20)}
    left = bounded(held)
    updaters = [manager for manager in left if manager.operation == "Update"]
    assert len(updaters) == MOST_UPDATERS
    assert len(left) == MOST_UPDATERS + 20
    assert {manager.version for manager in updaters if manager.name == ANCIENT} == {"v1", "v2"}


def test_gathering_goes_on_from_an_older_bucket() -> None:
    left = bounded(updates(MOST_UPDATERS + 1))
    young = Manager("young", "Update", "v1")
    left[young] = Held(parse({"f:y": {}}), "v1", "2026-01-02T03:05:00Z")
    again = bounded(left)
    assert len(again) == MOST_UPDATERS
    ancient = again[Manager(ANCIENT, "Update", "v1")]
    assert list(ancient.fields.paths()) == [("f:00",), ("f:01",), ("f:02",)]


def test_a_bucket_younger_than_others_is_gathered_too() -> None:
    held = updates(MOST_UPDATERS)
    bucket = Manager(ANCIENT, "Update", "v1")
    held[bucket] = Held(parse({"f:old": {}}), "v1", "2026-01-02T03:04:00Z")
    held[Manager("b", "Update", "v1")] = Held(parse({"f:b": {}}), "v1", "2026-01-02T03:04:00Z")
    left = bounded(held)
    assert len(left) == MOST_UPDATERS
    assert ("f:old",) in left[bucket].fields.paths()
    everything = {path for each in left.values() for path in each.fields.paths()}
    assert everything == {path for each in held.values() for path in each.fields.paths()}


def test_a_bucket_that_is_there_is_filled_not_replaced() -> None:
    held = updates(MOST_UPDATERS)
    bucket = Manager(ANCIENT, "Update", "v1")
    held[bucket] = Held(parse({"f:old": {}}), "v1", "2026-01-02T03:04:05Z")
    left = bounded(held)
    assert len(left) == MOST_UPDATERS
    assert set(left[bucket].fields.paths()) == {("f:old",), ("f:01",)}
    assert Manager("m00", "Update", "v1") in left
