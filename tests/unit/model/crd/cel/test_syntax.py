from __future__ import annotations

import pytest

from isthmus.model.crd.cel.syntax import MAX_DEPTH, MAX_TEXT, SyntaxFault, parse
from isthmus.model.crd.cel.tree import Both, Call, Choice, Fold, Literal, Name, Present, Select
from isthmus.model.crd.cel.values import Uint

A, B, C = Name("a"), Name("b"), Name("c")


def test_operators_bind_as_the_specification_says() -> None:
    assert parse("a + b * c") == Call("_+_", (A, Call("_*_", (B, C))))
    assert parse("a - b - c") == Call("_-_", (Call("_-_", (A, B)), C))
    assert parse("a == b && b < c || c") == Both(
        (Both((Call("_==_", (A, B)), Call("_<_", (B, C))), False), C), True
    )
    assert parse("a ? b : c ? a : b") == Choice(A, B, Choice(C, A, B))
    assert parse("!a.b in c") == Call("_in_", (Call("!_", (Select(A, "b"),)), C))
    assert parse("--a") == A
    assert parse("(a)") == A


def test_chains_of_and_are_flat() -> None:
    assert parse(" && ".join(["a"] * 500)) == Both((A,) * 500, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("0x1F", 31),
        ("7u", Uint(7)),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-9223372036854775808", -(2**63)),
        ("true", True),
        ("null", None),
        (r"'a\n\x41é\U0001F600\101'", "a\nAé\U0001f600A"),
        (r"r'\d+'", r"\d+"),
        ('"""a\n"b"\'"""', 'a\n"b"\''),
        (r"b'\xff\u00e9'", b"\xff\xc3\xa9"),
        (r"rb'\x'", b"\\x"),
    ],
)
def test_literals(text: str, value: object) -> None:
    found = parse(text)
    assert isinstance(found, Literal)
    assert (type(found.value), found.value) == (type(value), value)


def test_macros_are_nodes() -> None:
    assert parse("has(a.b)") == Present(A, "b")
    assert parse("a.all(b, c)") == Fold("all", A, ("b",), (C,))
    assert parse("a.exists_one(b, c)") == Fold("existsOne", A, ("b",), (C,))
    assert parse("a.map(b, c, b)") == Fold("map", A, ("b",), (C, B))
    assert parse("a.all(b, c, c)") == Fold("all", A, ("b", "c"), (C,))
    # With other arguments it is a method like others.
    assert parse("a.filter()") == Call("filter", (A,), method=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unexpected the end"),
        ("a +", "unexpected the end"),
        ("a b", "position 3: unexpected b"),
        ("(a", "expected )"),
        ("a ? b", "expected :"),
        ("'a", "the string does not end"),
        ("'a\nb'", "the string does not end"),
        (r"'\q'", "invalid escape"),
        (r"'\ud800'", "invalid escape"),
        ("9223372036854775808", "invalid int literal"),
        ("1 + 9223372036854775808", "invalid int literal"),
        ("18446744073709551616u", "invalid uint literal"),
        ("a # b", "unexpected '#'"),
        ("for", "unexpected for"),
        ("has(a)", "has() takes one selection"),
        ("a.all(b.c, c)", "must be a simple name"),
        ("a.all(b, b, c)", "must be a simple name"),
        ("cel.bind(a.b, c, a)", "cel.bind() takes a name"),
        ("a{b: c}", "messages"),
        ("a.optMap(b)", "optMap() takes a name"),
    ],
)
def test_faults_say_where_and_why(text: str, says: str) -> None:
    with pytest.raises(SyntaxFault) as caught:
        parse(text)
    assert says in str(caught.value)


BOMBS = {
    "brackets": "(" * 5000 + "1" + ")" * 5000,
    "lists": "[" * 5000 + "]" * 5000,
    "maps": "{1:" * 5000,
    "sums": "1" + "+1" * 5000,
    "fields": "a" + ".b" * 5000,
    "items": "a" + "[0]" * 4000,
    "conditions": "".join("true ? 1 : " for _ in range(1000)) + "1",
    "macros": "a.all(x, " * 1000,
    "length": "a" * (MAX_TEXT + 1),
    "mixed": "(a" + ".b" * 30 + " + (a" * 39 + ".b" * 50 + ")" * 40,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused(text: str) -> None:
    with pytest.raises(SyntaxFault):
        parse(text)


def test_what_people_write_is_not_too_deep() -> None:
    nested = "(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1)
    assert parse(nested) == A
