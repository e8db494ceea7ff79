from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, TooLarge, UnsupportedMediaType
from isthmus.serve.kube.patch import apply
from isthmus.serve.kube.patch.front import MAX_BODY
from tests.unit.serve.kube.kinds import WIDGET_V1

DOCUMENT = {"metadata": {"name": "w"}, "spec": {"parts": [{"name": "a", "colour": "red"}]}}
PARTS = b'{"spec":{"parts":[{"name":"b"}]}}'


def apply_builtin(content_type: str | None, body: bytes) -> dict[str, object]:
    return apply(content_type, WIDGET_V1, DOCUMENT, body, custom=False)


def test_the_content_type_chooses() -> None:
    merged = apply_builtin("application/merge-patch+json", PARTS)
    assert merged["spec"] == {"parts": [{"name": "b"}]}
    strategic = apply_builtin("application/strategic-merge-patch+json; charset=utf-8", PARTS)
    assert strategic["spec"] == {"parts": [{"name": "b"}, {"name": "a", "colour": "red"}]}
    operations = b'[{"op":"remove","path":"/spec"}]'
    assert apply_builtin("application/json-patch+json", operations) == {"metadata": {"name": "w"}}


def test_an_empty_patch_changes_nothing() -> None:
    # `kubectl annotate` sends one when nothing is to change.
    assert apply_builtin("application/merge-patch+json", b"{}") == DOCUMENT


def test_custom_resources_refuse_strategic_merge_and_say_what_they_take() -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        apply("application/strategic-merge-patch+json", WIDGET_V1, DOCUMENT, PARTS, custom=True)
    assert refused.value.message.endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


@pytest.mark.parametrize("content_type", [None, "", "application/json", "text/plain"])
def test_other_types_are_refused(content_type: str | None) -> None:
    with pytest.raises(UnsupportedMediaType, match="strategic-merge-patch"):
        apply_builtin(content_type, b"{}")


def test_server_side_apply_is_no_patch_of_a_document() -> None:
    with pytest.raises(UnsupportedMediaType, match="not a patch"):
        apply_builtin("application/apply-patch+yaml", b"{}")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a":"\xff"}',
        b"nul",
        b"{}{}",
        b"1" * 5000,
        b'{"a":' * 150 + b"1",
        b"[" * 201 + b"]" * 201,
        b"[" * 100_000,
        b'{"a":1e999}',
    ],
)
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ],
)
def test_a_body_that_is_no_patch_is_a_bad_request(content_type: str, body: bytes) -> None:
    with pytest.raises(BadRequest, match="the patch is malformed"):
        apply_builtin(content_type, body)


def test_a_body_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooLarge):
        apply_builtin("application/merge-patch+json", b" " * (MAX_BODY + 1))


def test_a_stored_document_too_deep_is_refused_not_a_crash() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="nested deeper"):
        apply("application/merge-patch+json", WIDGET_V1, deep, b"{}", custom=True)
