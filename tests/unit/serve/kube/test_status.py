from __future__ import annotations

import pytest

from isthmus import errors
from isthmus.errors import Cause, Subject
from isthmus.serve.kube import status
from isthmus.serve.kube.status import refusal
from tests.unit.serve.kube.kinds import THING, WIDGET

ABOUT = status.subject(WIDGET, "w", "u-1")


def test_not_found_is_said_in_kubernetes_words() -> None:
    told = refusal(errors.NotFound("whatever", about=status.subject(WIDGET, "w")), "id")
    assert told.code == 404
    assert told.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'widgets.example.io "w" not found',
        "reason": "NotFound",
        "details": {"name": "w", "group": "example.io", "kind": "widgets"},
        "code": 404,
    }


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        (errors.NotFound("no such path"), 404, "NotFound", "no such path"),
        (errors.NotFound("", about=status.subject(THING, "t")), 404, "NotFound",
         'things "t" not found'),
        (errors.AlreadyExists("", about=ABOUT), 409, "AlreadyExists",
         'widgets.example.io "w" already exists'),
        (errors.Conflict("it changed", about=ABOUT), 409, "Conflict",
         'Operation cannot be fulfilled on widgets.example.io "w": it changed'),
        (errors.Conflict('Operation cannot be fulfilled on widgets.example.io "w": x', about=ABOUT),
         409, "Conflict", 'Operation cannot be fulfilled on widgets.example.io "w": x'),
        (errors.Conflict("bare"), 409, "Conflict", "bare"),
        (errors.Forbidden("no", about=ABOUT), 403, "Forbidden",
         'widgets.example.io "w" is forbidden: no'),
        (errors.Forbidden("no", about=status.subject(WIDGET)), 403, "Forbidden",
         "widgets.example.io is forbidden: no"),
        (errors.Unauthenticated("Unauthorized"), 401, "Unauthorized", "Unauthorized"),
        (errors.BadRequest("odd"), 400, "BadRequest", "odd"),
        (errors.BadRequest(""), 400, "BadRequest", "BadRequest"),
        (errors.TooLarge("big"), 413, "RequestEntityTooLarge", "big"),
        (errors.UnsupportedMediaType("type"), 415, "UnsupportedMediaType", "type"),
        (errors.MethodNotAllowed("verb"), 405, "MethodNotAllowed", "verb"),
        (errors.Compacted("old"), 410, "Expired", "old"),
        (errors.DeadlineExceeded("slow"), 504, "Timeout", "slow"),
    ],
)  # fmt: skip
def test_each_error_has_its_code_reason_and_words(
    error: errors.IsthmusError, code: int, reason: str, message: str
) -> None:
    told = refusal(error, "id")
    assert (told.code, told.status["code"]) == (code, code)
    assert (told.status["reason"], told.status["message"]) == (reason, message)


def invalid(*causes: Cause) -> status.Refusal:
    return refusal(errors.Invalid("broken", about=ABOUT, causes=causes), "id")


def test_one_fault_is_said_plainly_with_the_kind() -> None:
    told = invalid(Cause("spec.ports", "", "FieldValueRequired"))
    assert told.code == 422
    assert told.status["message"] == 'Widget.example.io "w" is invalid: spec.ports: Required value'
    assert told.status["details"] == {
        "name": "w",
        "group": "example.io",
        "kind": "Widget",
        "uid": "u-1",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.ports"}
        ],
    }


def test_several_faults_are_listed_each_once() -> None:
    small = Cause("spec.size", "must not be negative")
    told = invalid(small, small, Cause("", "Too odd", "Odd"))
    assert told.status["message"] == (
        'Widget.example.io "w" is invalid: '
        "[spec.size: Invalid value: must not be negative, Too odd]"
    )
    assert told.status["details"]["causes"][2] == {"reason": "Odd", "message": "Too odd"}


def test_an_invalid_object_without_causes_says_its_message() -> None:
    assert invalid().status["message"] == 'Widget.example.io "w" is invalid: broken'
    core = errors.Invalid("broken", about=status.subject(THING, "t"))
    assert refusal(core, "id").status["message"] == 'Thing "t" is invalid: broken'


def test_a_hostile_number_of_causes_is_cut() -> None:
    told = invalid(*(Cause(f"spec.x[{i}]", "odd") for i in range(5000)))
    assert len(told.status["details"]["causes"]) == status.MAX_CAUSES
    assert len(told.status["message"]) < 100_000


def test_a_sentence_that_already_begins_well_is_left_alone() -> None:
    assert status.cause_message(Cause("a", "Invalid value: 3: too small")) == (
        "Invalid value: 3: too small"
    )


def test_the_asker_is_told_when_to_try_again() -> None:
    told = refusal(errors.TooManyRequests("slow down", retry_after=7), "id")
    assert (told.code, told.retry_after) == (429, 7)
    assert told.status["details"] == {"retryAfterSeconds": 7}
    assert refusal(errors.Unavailable("later"), "id").retry_after == 1


def test_a_bug_is_told_as_an_id_only() -> None:
    told = refusal(KeyError("a secret"), "3f2a")
    assert told.code == 500
    assert "secret" not in str(told.status)
    assert told.status["message"] == "Internal error occurred: 3f2a"
    assert told.status["details"] == {"causes": [{"message": "3f2a"}]}


def test_success_names_what_was_deleted() -> None:
    assert status.success()["status"] == "Success"
    assert "details" not in status.success()
    assert status.success(ABOUT)["details"] == {
        "name": "w", "group": "example.io", "kind": "widgets", "uid": "u-1",
    }  # fmt: skip
    assert status.success(Subject(kind="Odd"))["details"] == {"kind": "Odd"}
