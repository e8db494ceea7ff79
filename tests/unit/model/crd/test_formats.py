from __future__ import annotations

import pytest

from isthmus.model.crd.formats import FORMATS

CASES = {
    "bsonobjectid": ("507f1f77bcf86cd799439011", "507f"),
    "uri": ("https://a.b/c", "not a uri"),
    "email": ("a@b.example", "a b"),
    "hostname": ("a.b-c.example", "a_b"),
    "ipv4": ("10.0.0.1", "10.0.0.256"),
    "ipv6": ("fd00::1", "10.0.0.1"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "mac": ("00:1a:2b:3c:4d:5e", "00:1a"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    "uuid3": ("123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-c456-426614174000"),
    "uuid5": ("123e4567-e89b-52d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000"),
    "isbn": ("978-3-16-148410-0", "978-3-16-148410-1"),
    "isbn10": ("0-306-40615-2", "0-306-40615-3"),
    "isbn13": ("9783161484100", "0306406152"),
    "creditcard": ("4111 1111 1111 1111", "4111"),
    "ssn": ("078-05-1120", "078"),
    "hexcolor": ("#fff", "#ff"),
    "rgbcolor": ("rgb(1, 2, 255)", "rgb(1, 2, 256)"),
    "byte": ("YWJj", "a"),
    "date": ("2026-02-28", "2026-02-30"),
    "duration": ("1h 30m", "an hour"),
    "datetime": ("2026-01-02T03:04:05Z", "2026-01-02"),
    "date-time": ("2026-01-02T03:04:05.678+01:00", "2026-01-02 03:04"),
    "regex": ("^a+$", "("),
}


@pytest.mark.parametrize("name", CASES)
def test_each_format_tells_good_from_bad(name: str) -> None:
    good, bad = CASES[name]
    assert FORMATS[name](good)
    assert not FORMATS[name](bad)


def test_every_format_has_a_case() -> None:
    assert set(CASES) | {"password"} == set(FORMATS)
    assert FORMATS["password"]("anything")


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_falls_over_nonsense(name: str) -> None:
    for text in ("", " ", "\0", "\ud800", "é" * 300, "1" * 5000, "@", "[", "a@[", "//[::", "rgb()"):
        assert FORMATS[name](text) in (True, False)
