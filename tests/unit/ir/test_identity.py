from __future__ import annotations

import pytest

from isthmus.ir.identity import (
    account,
    accounts,
    parse_identity,
    parse_identity_match,
    satisfies,
)
from isthmus.ir.names import AnyIdentity, Dns, IdentityMatch, IdentitySuffix, Spiffe
from isthmus.model.identity import identity_problems

SUFFIX = "pantry.serviceaccount.identity.isthmus.example"


def match(text: str) -> IdentityMatch:
    found = parse_identity_match(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b", Dns("a.b")),
        ("spiffe://td", Spiffe("td", ())),
        ("spiffe://td/ns/a/sa/B_1.x", Spiffe("td", ("ns", "a", "sa", "B_1.x"))),
    ],
)
def test_what_certificates_prove(text: str, value: object) -> None:
    found = parse_identity(text)
    assert found == value
    assert text == (found.uri if isinstance(found, Spiffe) else getattr(found, "name", None))


BAD = [
    "", "A.b", "a.b.", ".a", "a..b", "a b", "*", "*.a", "a\n", "spiffe://", "spiffe://td/",
    "spiffe://td/a//b", "spiffe://td/../a", "spiffe://TD/a", "spiffe://td/a%2fb", "SPIFFE://td/a",
    "spiffe://td/a\n", "a" * 254,
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_what_proves_nothing(text: str) -> None:
    assert parse_identity(text) is None


def test_what_policies_name() -> None:
    assert match("*") == AnyIdentity()
    assert match("*.a.b") == IdentitySuffix(("a", "b"))
    assert match("a.b") == Dns("a.b")
    for text in ("*.", "*.*.a", "a.*", "*a", "*.spiffe://td", "*.A"):
        assert parse_identity_match(text) is None


@pytest.mark.parametrize("text", [*BAD, "a.b", "*", "*.a", "spiffe://td/x", "*.*", "a.*", "-a"])
def test_admission_and_reading_agree(text: str) -> None:
    assert (identity_problems(text) == ()) == (parse_identity_match(text) is not None)


def test_a_suffix_asks_for_one_more_label_and_never_for_spiffe() -> None:
    suffix = match(f"*.{SUFFIX}")
    assert satisfies(Dns(f"kettle.{SUFFIX}"), suffix)
    assert satisfies(Dns(f"a.kettle.{SUFFIX}"), suffix)
    for name in (SUFFIX, f"kettle.x{SUFFIX}", "identity.isthmus.example", f".{SUFFIX}", ""):
        assert not satisfies(Dns(name), suffix), name
    assert not satisfies(Spiffe("isthmus.example", ("ns", "pantry", "sa", "kettle")), suffix)
    assert not satisfies(Spiffe(f"kettle.{SUFFIX}", ()), suffix)


def test_names_are_compared_whole() -> None:
    wanted = Spiffe("example.test", ("ns", "team[1]", "sa", "a.b"))
    assert satisfies(wanted, wanted)
    for other in (
        Spiffe("example.test", ("ns", "team[1]", "sa", "axb")),
        Spiffe("example.test", ("ns", "team1", "sa", "a.b")),
        Spiffe("example.testing", ("ns", "team[1]", "sa", "a.b")),
        Spiffe("example.test", ("ns", "team[1]", "sa", "a.b", "c")),
        Spiffe("example.test", ("ns", "team[1]", "sa")),
        Spiffe("Example.test", ("ns", "team[1]", "sa", "a.b")),
        Dns("a.b"),
    ):
        assert not satisfies(other, wanted)
    assert satisfies(Spiffe("example.testing", ()), AnyIdentity())


def test_accounts() -> None:
    one = account("face", "faces", control_plane="linkerd", trust_domain="cluster.local")
    assert one.name == "face.faces.serviceaccount.identity.linkerd.cluster.local"
    all_ = accounts("faces", control_plane="linkerd", trust_domain="cluster.local")
    other = account("face", "xfaces", control_plane="linkerd", trust_domain="cluster.local")
    assert satisfies(one, all_)
    assert not satisfies(other, all_)
