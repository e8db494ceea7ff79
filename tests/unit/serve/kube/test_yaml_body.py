"""YAML bodies: scalars as kubectl reads them, nothing that JSON cannot say."""

from __future__ import annotations

import pytest

from isthmus.errors import BadRequest, TooLarge
from isthmus.serve.kube.yaml_body import MAX_YAML, strict_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False),
        ("on", True),
        ("'no'", "no"),
        ("y", "y"),
        ("0644", 420),
        ("0x1f", 31),
        ("1_000", 1000),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("1.2.3", "1.2.3"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("~", None),
        ("", None),
        ("08", 8.0),
        ("=", "="),
        ("[a, {b: c}]", ["a", {"b": "c"}]),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    document, repeated = strict_yaml(f"x: {text}\n".encode())
    assert document == {"x": value}
    assert repeated == ()


def test_fields_said_twice_are_noted_and_the_last_counts() -> None:
    document, repeated = strict_yaml(b"a: 1\nb: [{c: 1, c: 2}]\na: 2\n")
    assert document == {"a": 2, "b": [{"c": 2}]}
    assert sorted(repeated) == ["a", "b[0].c"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"- a", b"a", b"a: .nan", b"a: -.inf", b"a: !!binary aGk=", b"a: &x 1\nb: *x",
        b"? {a: b}\n: c", b"a: b: c", b"\xff", b"a: 1\n---\nb: 2\n",
        b"a: " + b"[" * 200 + b"]" * 200, b"a: \x00",
    ],
)  # fmt: skip
def test_what_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        strict_yaml(body)


def test_a_large_body_is_refused_unread() -> None:
    with pytest.raises(TooLarge):
        strict_yaml(b" " * (MAX_YAML + 1))
