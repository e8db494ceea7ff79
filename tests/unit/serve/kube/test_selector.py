from __future__ import annotations

import msgspec
import pytest

from isthmus.errors import BadRequest
from isthmus.serve.kube import selector
from isthmus.serve.kube.selector import Selector, parse_fields, parse_labels
from tests.unit.serve.kube.kinds import WIDGET


def selects(text: str, labels: dict[str, str]) -> bool:
    return Selector(parse_labels(text)).matches({"metadata": {"labels": labels}})


FACES = {"app": "face", "tier": "web", "n": "5", "app.kubernetes.io/name": "faces", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "app=face",
        "app==face",
        " app = face , tier = web ",
        "app!=smiley",
        "absent!=x",
        "app in (face,smiley)",
        "app in ( face )",
        "app notin (smiley, color)",
        "absent notin (x)",
        "app",
        "!absent",
        "! absent",
        "n>4",
        "n<6",
        "app.kubernetes.io/name=faces",
        "empty=",
        "empty=,app",
        "empty in (a,)",
        "app,tier,n>4,!absent",
    ],
)
def test_labels_that_are_selected(text: str) -> None:
    assert selects(text, FACES)


@pytest.mark.parametrize(
    "text",
    [
        "app=smiley",
        "app!=face",
        "app in (smiley)",
        "absent in (x)",
        "app notin (face)",
        "absent",
        "!app",
        "n>5",
        "n<5",
        "app>1",
        "absent>1",
        "app=face,tier=db",
        "absent=",
    ],
)
def test_labels_that_are_not_selected(text: str) -> None:
    assert not selects(text, FACES)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("=x", "expected: a label key"),
        ("a=b,", "found end of selector"),
        ("a=b,,c", "expected: a label key"),
        ("a b", "expected one of"),
        ("a=b c", "expected: ','"),
        ("a in b", "expected: '\\('"),
        ("a in (b", "found end of selector, expected: '\\)'"),
        ("a in ()", "empty set"),
        ("a in (b c)", "expected: '\\)'"),
        ("a=(b)", "expected: a label value"),
        ("a>b", "no integer"),
        ("a>", "no integer"),
        ("a/b/c=d", "prefix"),
        ("UPPER/x=d", "prefix"),
        ("-a=b", "label key"),
        ("a=-b", "label value"),
        ("a=" + "x" * 64, "label value"),
        ("x" * 64, "label key"),
        ("a=" + "x" * 400, "too long"),
        ("a/", "label key"),
        ("a=b\x00c", "label value"),
        ("!", "expected: a label key"),
        ("a in (" + ",".join(f"v{i}" for i in range(1100)) + ")", "more than 1024 values"),
        (",".join("a" for _ in range(1100)), "more than 1024 requirements"),
        ("x" * 70_000, "longer than"),
        ("a" * 253 + "." * 200 + "/x", "too long"),
    ],
)
def test_a_label_selector_that_makes_no_sense_is_refused(text: str, what: str) -> None:
    with pytest.raises(BadRequest, match=what):
        parse_labels(text)


WIDGET_DOCUMENT = {
    "metadata": {"name": "w", "namespace": "n", "labels": {"a": "b"}},
    "spec": {"size": 3, "odd": [1]},
    "status": {"phase": "Ready"},
}


def fields(text: str) -> Selector:
    return Selector(fields=parse_fields(text, WIDGET))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("metadata.name=w", True),
        ("metadata.name==w,metadata.namespace=n", True),
        ("metadata.name!=w", False),
        ("metadata.name=w,status.phase!=Ready", False),
        ("status.phase=Ready", True),
        ("spec.size=3", True),
        ("status.phase=", False),
        (r"metadata.name=a\,b", False),
    ],
)
def test_fields_are_compared_as_text(text: str, holds: bool) -> None:
    assert fields(text).matches(WIDGET_DOCUMENT) is holds


def test_odd_values_count_as_their_text_or_as_nothing() -> None:
    holds = fields("status.phase=true").matches
    assert holds({"status": {"phase": True}})
    assert not holds({"status": {"phase": False}})
    empty = fields("status.phase=").matches
    assert empty({})
    assert empty({"status": "text"})
    assert empty({"status": {"phase": ["x"]}})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("spec.other=x", "field label not supported: spec.other"),
        ("metadata.name", "invalid selector"),
        ("metadata.name=a=b", "invalid selector"),
        ("metadata.name!w", "invalid selector"),
        ("metadata.name=a\\", "escape"),
        (r"metadata.name=\n", "escape"),
        (",".join(["metadata.name=x"] * 1100), "more than 1024"),
        ("x" * 70_000, "longer than"),
    ],
)
def test_a_field_selector_that_makes_no_sense_is_refused(text: str, what: str) -> None:
    with pytest.raises(BadRequest, match=what):
        fields(text)


@pytest.mark.parametrize(
    ("labels", "terms"),
    [
        ("", ""),
        ("a=b", ""),
        ("a=c", ""),
        ("a=b", "metadata.name=w"),
        ("!a", "metadata.name=w"),
        ("a=b", "status.phase=Ready"),
        ("", "status.phase=Gone"),
    ],
)
def test_stored_bytes_are_selected_as_their_document_is(labels: str, terms: str) -> None:
    both = Selector(parse_labels(labels), parse_fields(terms, WIDGET))
    raw = msgspec.json.encode(WIDGET_DOCUMENT)
    assert both.matches_raw(raw) is both.matches(WIDGET_DOCUMENT)


def test_bytes_without_labels_have_none() -> None:
    assert Selector(parse_labels("!a")).matches_raw(b'{"metadata":{"labels":null}}')
    assert selector.EVERYTHING.matches_raw(b"not even looked at")


def test_a_list_of_one_name_knows_that_name() -> None:
    assert fields("status.phase=x,metadata.name=w").name == "w"
    assert fields("metadata.name!=w").name == ""
