from __future__ import annotations

import pytest

from isthmus.model.columns import CREATED_AT, at_most, condition_column, text_column, value_column


def test_values_are_shown_as_they_are() -> None:
    column = value_column("X", "spec.x", kind="integer", priority=1)
    shown = [column.cell({"spec": {"x": value}}, 0) for value in (5, "a", True, False, [1], None)]
    assert shown == [5, "a", "true", "false", None, None]
    assert (column.type, column.priority) == ("integer", 1)
    assert text_column("Y", "spec.y", absent="<none>").cell({}, 0) == "<none>"


def test_conditions_are_shown_by_their_status() -> None:
    column = condition_column("Programmed", "Programmed")
    conditions = [{"type": "Accepted", "status": "False"}, {"type": "Programmed", "status": "True"}]
    assert column.cell({"status": {"conditions": conditions}}, 0) == "True"
    assert column.cell({}, 0) is None


def test_a_time_that_is_not_set() -> None:
    assert CREATED_AT.cell({}, 0) == "<unknown>"


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        ([], "<none>"),
        (["a"], "a"),
        (["a", "b", "c"], "a,b,c"),
        (list("abcde"), "a,b,c + 2 more..."),
    ],
)
def test_lists_are_cut(listed: list[str], shown: str) -> None:
    assert at_most(listed) == shown
